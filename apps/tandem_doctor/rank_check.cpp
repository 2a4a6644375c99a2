// Two ranks under mpirun: what most often does not work on a new machine.
#include "checks.h"
#include "child_process.h"

#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/error.h"
#include "tandem/core/out.h"

#include <fmt/format.h>

#include <sstream>

namespace tandem::apps::doctor {
namespace {

constexpr std::chrono::seconds kLimit{60};

/// What the launchers say, by words of theirs, and what helps.
struct Complaint {
  std::string_view words;
  std::string_view remedy;
};
constexpr Complaint kComplaints[] = {
    {"as root",
     "Open MPI refuses root, as in containers: set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"},
    {"not enough slots",
     "there are fewer cores than ranks: mpirun --oversubscribe, or OMPI_MCA_rmaps_base_oversubscribe=1"},
    {"another MPI",
     "this mpirun is of another MPI library than the build: put the right one first on the PATH (--mpirun FILE)"},
    {"shared memory", "make room in /dev/shm, or see docs/launching.md"},
};

/// The first line that says something.
std::string first_line(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of("-=* \t\r") != line.npos) return line;
  }
  return "nothing was printed";
}

std::string remedy_of(const std::string& output) {
  for (const Complaint& complaint : kComplaints) {
    if (output.find(complaint.words) != output.npos) return std::string(complaint.remedy);
  }
  return "docs/launching.md tells what ranks need; try: mpirun -np 2 hostname";
}

/// The line that rank 0 printed; "" if there is none.
std::string agreement_in(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kRanksAgree)) return line.substr(kRanksAgree.size());
  }
  return "";
}

}  // namespace

std::vector<Finding> check_ranks(const std::string& mpirun, const std::string& self, const EnvironmentLookup& lookup) {
  if (!comm::missing_mpi().empty()) return {};  // check_libraries() says so
  if (comm::detect_launch(lookup).size > 1)
    return {
        {State::note, "ranks", "not tried: mpirun started this program, too", "start tandem doctor without mpirun"}};
  ChildResult result;
  try {
    result = run_child({mpirun, "-np", "2", self, "--rank-of-doctor"}, kLimit);
  } catch (const Error& error) {
    return {{State::fault, "ranks", error.what(),
             "several ranks need the launcher of the MPI library: install openmpi-bin, or name one by --mpirun FILE"}};
  }
  if (result.has_run_out)
    return {{State::fault, "ranks", fmt::format("2 ranks did not find each other in {} s", kLimit.count()),
             "docs/launching.md tells what ranks need; a firewall on a local network interface is a common cause"}};
  const std::string agreement = agreement_in(result.output);
  if (result.exit_code == 0 && !agreement.empty()) return {{State::ok, "ranks", agreement}};
  return {{State::fault, "ranks",
           fmt::format("{} -np 2 failed (exit code {}): {}", mpirun, result.exit_code, first_line(result.output)),
           remedy_of(result.output)}};
}

int run_as_rank() {
  return comm::run_program([](comm::MpiEnvironment& environment) {
    const auto group = comm::make_process_group("auto", environment);
    require(group->size() == 2, "this rank is one of {}, not of 2: mpirun is of another MPI library than this build",
            group->size());
    constexpr std::int64_t kCount = 1 << 16;  // more than one message
    const Tensor ones = Tensor::full({kCount}, group->rank() + 1.0);
    group->all_reduce(Out(ones));
    for (const float value : ones.to_vector<float>())
      require(value == 3.0F, "the sum of 1 and 2 over both ranks is {}", value);
    if (group->rank() == 0)
      fmt::print("{}2 ranks started and summed up a tensor, {}, backend {}\n", kRanksAgree, environment.mpi_library(),
                 group->name());
    return 0;
  });
}

}  // namespace tandem::apps::doctor
