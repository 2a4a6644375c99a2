// What messages cost, on its way through a file.
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/train/message_costs_file.h"
#include "tests/support/catch.h"
#include "tests/support/damage.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <nlohmann/json.hpp>

#include <filesystem>

using namespace tandem;
using namespace tandem::test;
using comm::CostCurve;
using comm::MessageCosts;
using comm::ProcessGroup;

namespace {

MessageCosts some_costs(double start) {
  return {.start = start,
          .overhead = 2.5e-7,
          .within_host = CostCurve({{4, 1.5e-6}, {1024, 2.25e-6}}),
          .between_hosts = CostCurve::line(3e-5, 1e9),
          .combine = CostCurve({{4, 0.0}, {4096, 1e-6}}),
          .shared_cores = 3,
          .corrections = {{.algorithm = "ring", .ranks = 2, .hosts = 1, .points = {{1024, 1.5}, {4096, 0.75}}},
                          {.algorithm = "direct", .ranks = 2, .hosts = 1}}};
}

}  // namespace

TEST_CASE("message costs come back from a file as they were, each group's by its key") {
  const TemporaryDirectory directory;
  const std::string path = directory / "costs.json";
  CHECK(!train::load_message_costs(path, "two").costs);
  CHECK(train::load_message_costs(path, "two").problem == "");
  train::save_message_costs(path, "two", some_costs(1e-6));
  train::save_message_costs(path, "four", some_costs(2e-6));
  CHECK(train::load_message_costs(path, "two").costs == some_costs(1e-6));
  CHECK(train::load_message_costs(path, "four").costs == some_costs(2e-6));
  CHECK(!train::load_message_costs(path, "eight").costs);
  train::save_message_costs(path, "two", some_costs(3e-6));  // takes the place of the first
  CHECK(train::load_message_costs(path, "two").costs == some_costs(3e-6));
  CHECK(train::load_message_costs(path, "four").costs == some_costs(2e-6));
  CHECK(train::can_hold_message_costs(path));
  CHECK_THAT(error_of([&] { train::save_message_costs(directory / "no/costs.json", "two", {}); }),
             ContainsText("no/costs.json: cannot write"));
}

TEST_CASE("files of message costs that are others, old or damaged are named, and nothing is taken from them") {
  const TemporaryDirectory directory;
  const std::string path = directory / "costs.json";
  train::save_message_costs(path, "two", some_costs(1e-6));
  const auto good = nlohmann::json::parse(read_bytes(path));
  const auto check = [&](const std::string& text, const std::string& reason) {
    INFO(text);
    write_bytes(path, text);
    const train::LoadedCosts loaded = train::load_message_costs(path, "two");
    CHECK(!loaded.costs);
    CHECK_THAT(loaded.problem, ContainsText(path));
    CHECK_THAT(loaded.problem, ContainsText(reason));
  };
  const auto changed = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json json = good;
    json[nlohmann::json::json_pointer(pointer)] = value;
    return json.dump();
  };
  for (const char* text : {"", "[]", "{}", "root:x:0:0:"}) check(text, "not a file of message costs");
  check(good.dump().substr(0, good.dump().size() / 2), "damaged");
  check(changed("/version", 0), "version 0 of the format, this is for 1; measure anew");
  check(changed("/version", 2), "version 2 of the format, this is for 1; name another file");
  CHECK(!train::can_hold_message_costs(path));  // a newer program's is left alone
  CHECK_THAT(error_of([&] { train::save_message_costs(path, "two", {}); }), ContainsText("name another file"));
  check(changed("/groups", 3), "'groups' is no list");
  check(changed("/groups/0/start", -1.0), "a collective starts in -1 s");
  check(changed("/groups/0/start", 1e300), "a collective starts in 1e+300 s");
  check(changed("/groups/0/overhead", -1.0), "keeps a rank busy for -1 s");
  check(changed("/groups/0/start", "soon"), "damaged");
  check(changed("/groups/0/shared_cores", -3), "ranks share -3 cores");
  check(changed("/groups/0/shared_cores", 4294967298), "4294967298 is no whole number up to 1048576");
  check(changed("/groups/0/shared_cores", 1.5), "1.5 is no whole number");
  check(changed("/groups/0/within_host/1/0", 33554432.5), "33554432.5 is no whole number");
  check(changed("/groups/0/within_host/1/0", 18446744073709551615u), "18446744073709551615 is no whole number");
  check(changed("/groups/0/within_host/1", {7, 1.0, 3}), "has a point [7,1.0,3]");
  check(changed("/version", true), "its version is true");
  check(changed("/groups/0/within_host", nlohmann::json::array()), "'within_host' has no points");
  check(changed("/groups/0/within_host/1/0", 4), "both must ascend");
  check(changed("/groups/0/within_host/1/1", 1e-9), "both must ascend");
  check(changed("/groups/0/combine/0", 7), "'combine' has a point 7");
  check(changed("/groups/0/combine/0/1", nullptr), "damaged");
  check(changed("/groups/0/corrections/0/algorithm", "rings"), "did you mean ring?");
  check(changed("/groups/0/corrections/0/ranks", 0), "correction of ring: of 0 ranks on 1 hosts");
  check(changed("/groups/0/corrections/0/points/1/0", 1024), "1024 bytes behind 1024; sizes must ascend");
  check(changed("/groups/0/corrections/0/points/1/1", -1.0), "correction of ring: -1 times as long for 4096 bytes");
  check(changed("/groups/0/corrections/0/points/1", {7, 1.0, 3}), "'corrections' has a point [7,1.0,3]");
  check(changed("/groups/0/corrections/0", 3), "damaged");
  for (const nlohmann::json& none : {nlohmann::json(), nlohmann::json::object(), nlohmann::json("ring")}) {
    check(changed("/groups/0/corrections", none), "'corrections' is no list");
    check(changed("/groups/0/corrections/0/points", none), "'corrections' is no list");
    check(changed("/groups/0/combine", none), "'combine' is no list");
  }
  // Which --tune-comm replaces, as a run that has measured for a while must not lose it all.
  CHECK(train::can_hold_message_costs(path));
  train::save_message_costs(path, "two", some_costs(2e-6));
  CHECK(train::load_message_costs(path, "two").costs == some_costs(2e-6));
  write_bytes(path, "root:x:0:0:");
  CHECK(!train::can_hold_message_costs(path));
  nlohmann::json older = good;
  older["groups"][0].erase("corrections");
  write_bytes(path, older.dump());
  MessageCosts costs = some_costs(1e-6);
  costs.corrections.clear();
  CHECK(train::load_message_costs(path, "two").costs == costs);
}

TEST_CASE("no file of message costs is written that would be too large to be read") {
  const TemporaryDirectory directory;
  const std::string path = directory / "costs.json";
  train::save_message_costs(path, "two", some_costs(1e-6));
  CHECK_THAT(error_of([&] { train::save_message_costs(path, std::string(1 << 20, 'k'), some_costs(2e-6)); }),
             ContainsText("costs.json: would become larger than any file of message costs; name another"));
  CHECK(train::load_message_costs(path, "two").costs == some_costs(1e-6));
}

TEST_CASE("files of message costs with any damage are named, or hold costs") {
  const TemporaryDirectory directory;
  const std::string path = directory / "costs.json";
  train::save_message_costs(path, "two", some_costs(1e-6));
  int refused = 0;
  for_each_damage(read_bytes(path), 200, [&](const std::string& bytes) {
    write_bytes(path, bytes);
    const train::LoadedCosts loaded = train::load_message_costs(path, "two");
    if (loaded.problem.empty()) return;
    ++refused;
    REQUIRE(loaded.problem.starts_with(path));
    REQUIRE(!loaded.costs);
  });
  CHECK(refused > 200);
}

TEST_CASE("the key of message costs is the same on all ranks, and another for other ranks") {
  std::vector<std::string> of_two(2), of_three(3), texts(3);
  comm::run_thread_ranks(2, [&](ProcessGroup& group) {
    of_two[static_cast<std::size_t>(group.rank())] = train::message_costs_key(group);
  });
  comm::run_thread_ranks(3, {.name = "threads", .shared_memory = false}, [&](ProcessGroup& group) {
    of_three[static_cast<std::size_t>(group.rank())] = train::message_costs_key(group);
    texts[static_cast<std::size_t>(group.rank())] = train::describe(some_costs(0.0), group);
  });
  std::string simulated, text;
  comm::run_thread_ranks(2, comm::native_options("threads", "ring", "alpha=1us"), [&](ProcessGroup& group) {
    const std::string key = train::message_costs_key(group);
    if (group.rank() > 0) return;
    simulated = key;
    text = train::describe(some_costs(0.0), group);
  });
  CHECK_THAT(simulated, ContainsText(", simulated alpha=1us "));
  CHECK_THAT(text, ContainsText("to another host 4 B in "));
  CHECK_THAT(of_two[0], !ContainsText("simulated"));
  CHECK_THAT(of_two[0], ContainsText("backend threads, ranks 2 on "));
  CHECK_THAT(of_two[0], ContainsText(", tandem "));
  CHECK(of_two[1] == of_two[0]);
  CHECK_THAT(of_three[0], ContainsText("backend threads, ranks 3 on "));
  CHECK(of_three[2] == of_three[0]);
  CHECK(texts[0] == "4 B in 1.5 us, 128 KiB in 97.9 us; 128 KiB are added in 32.0 us");
  CHECK(train::describe({{0, "ring"}}) == "by ring");
  CHECK(train::describe({{0, "recursive-doubling"}, {196608, "ring"}}) ==
        "by recursive-doubling, from 192.0 KiB on by ring");
}
