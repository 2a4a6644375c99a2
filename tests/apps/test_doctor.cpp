// What `tandem doctor` makes of limits and findings; that it finds faults is in check_tandem.py.
#include "apps/tandem_doctor/child_process.h"
#include "apps/tandem_doctor/finding.h"
#include "apps/tandem_doctor/group_limits.h"
#include "tandem/core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

using namespace tandem;
using namespace tandem::apps::doctor;
using tandem::test::ContainsText;
using tandem::test::TemporaryDirectory;

namespace {

void put(const TemporaryDirectory& root, const std::string& file, const std::string& text) {
  const std::filesystem::path path = root / file;
  std::filesystem::create_directories(path.parent_path());
  test::write_bytes(path.string(), text);
}

}  // namespace

TEST_CASE("the smallest limit on the way from a process's group up counts") {
  const TemporaryDirectory root;
  put(root, "cpu.max", "800000 100000\n");
  put(root, "jobs/cpu.max", "150000 100000\n");
  put(root, "jobs/7/cpu.max", "max 100000\n");
  put(root, "jobs/memory.max", "max\n");
  put(root, "jobs/7/memory.max", "1073741824\n");
  put(root, "jobs/7/memory.current", "1000000\n");
  const GroupLimits limits = read_group_limits(root.path(), "0::/jobs/7\n");
  CHECK(limits.cores == 1.5);
  CHECK(limits.memory_bytes == 1073741824);
  CHECK(limits.memory_in_use == 1000000);
  CHECK(read_group_limits(root.path(), "0::/\n").cores == 8.0);
  // A container's own group is the root that it sees, whatever it is called outside.
  CHECK(read_group_limits(root.path(), "0::/docker/1a2b\n").cores == 8.0);
}

TEST_CASE("limits of the first version of control groups, and none") {
  const TemporaryDirectory root;
  put(root, "cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  put(root, "cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  put(root, "cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put(root, "cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put(root, "memory/job/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  const GroupLimits limits = read_group_limits(root.path(), "4:cpu,cpuacct:/job\n3:memory:/job\n");
  CHECK(limits.cores == 0.5);
  CHECK_FALSE(limits.memory_bytes);
  for (const char* const membership : {"", "0::/\n", "nonsense\n", "0::", ":"}) {
    CHECK_FALSE(read_group_limits(root.path(), membership).cores);
    CHECK_FALSE(read_group_limits(root.path(), membership).memory_bytes);
  }
}

TEST_CASE("findings are a line each, with what to do, and the same as JSON") {
  const std::vector<Finding> findings{{State::ok, "disk", "1 GiB free"},
                                      {State::fault, "ranks", "do not start", "install one"}};
  CHECK(text_of(findings) ==
        "ok     disk   1 GiB free\nfault  ranks  do not start\n              -> install one\n1 fault, no notes\n");
  const auto json = nlohmann::json::parse(json_of(findings));
  CHECK(json["faults"] == 1);
  CHECK(json["notes"] == 0);
  CHECK_FALSE(json["findings"][0].contains("remedy"));
  CHECK(json["findings"][1] ==
        nlohmann::json{{"state", "fault"}, {"subject", "ranks"}, {"what", "do not start"}, {"remedy", "install one"}});
  CHECK(has_fault(findings));
  CHECK_FALSE(has_fault(std::span(findings).first(1)));
}

TEST_CASE("a program that does not end is ended, with what it started") {
  const auto begin = std::chrono::steady_clock::now();
  const ChildResult result =
      run_child({"sh", "-c", "echo begun; sleep 100 & sleep 100"}, std::chrono::milliseconds(300));
  CHECK(result.has_run_out);
  CHECK(result.output == "begun\n");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  const ChildResult ended = run_child({"sh", "-c", "echo out; echo err >&2; exit 7"}, std::chrono::seconds(30));
  CHECK_FALSE(ended.has_run_out);
  CHECK(ended.exit_code == 7);
  CHECK(ended.output == "out\nerr\n");
  CHECK(run_child({"sh", "-c", "kill -9 $$"}, std::chrono::seconds(30)).exit_code == 128 + 9);
  CHECK_THROWS_WITH(run_child({"/none/of/these"}, std::chrono::seconds(1)), ContainsText("cannot run /none/of/these"));
}

TEST_CASE("whether a folder can be written is found by writing") {
  const TemporaryDirectory folder;
  CHECK(write_problem(folder.path()).empty());
  CHECK(folder.entries() == 0);
  CHECK_THAT(write_problem(folder / "none"), ContainsText("No such file"));
  CHECK(available_memory() > 0);
}
