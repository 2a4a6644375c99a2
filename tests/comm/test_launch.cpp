// What is made of the environment variables of launchers.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/launch/host_cores.h"
#include "tandem/comm/launch/launch.h"
#include "tandem/comm/launch/threads.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tests/support/catch.h"

#include <map>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;

namespace {

Launch launch_of(const std::map<std::string, std::string>& variables) {
  return detect_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const Launch& launch, bool built_with_mpi) {
  try {
    check_launch(launch, built_with_mpi);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a program started alone is one rank") {
  const Launch launch = launch_of({});
  CHECK(launch.size == 1);
  CHECK(launch.launcher.empty());
  CHECK(refusal(launch, false).empty());
  CHECK(launch_of({{"WORLD_SIZE", "4"}}).size == 1);
  CHECK(launch_of({{"OMPI_COMM_WORLD_SIZE", "many"}}).size == 1);
}

TEST_CASE("Open MPI's mpirun is recognised") {
  const Launch launch =
      launch_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"SLURM_NTASKS", "9"}});
  CHECK(launch.launcher == "mpirun");
  CHECK(launch.size == 4);
  CHECK(launch.rank == 3);
  CHECK_FALSE(launch.has_hosts);
  const Launch second = launch_of({{"OMPI_COMM_WORLD_SIZE", "4"},
                                   {"OMPI_COMM_WORLD_RANK", "3"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(second.local_rank == 1);
  CHECK(second.has_hosts);
  CHECK(refusal(launch, true).empty());
  CHECK_THAT(refusal(launch, false), ContainsText("built without MPI"));
  CHECK_THAT(refusal(launch, false), ContainsText("mpirun as 4 processes"));
}

TEST_CASE("MPICH's mpirun is recognised") {
  const Launch launch = launch_of({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  CHECK(launch.launcher == "mpirun");
  CHECK(launch.size == 2);
  CHECK(launch.rank == 1);
  CHECK(refusal(launch, true).empty());
}

TEST_CASE("srun is recognised, with and without PMI") {
  std::map<std::string, std::string> step{
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "8"}};
  CHECK(launch_of(step).launcher == "srun");
  CHECK(launch_of(step).size == 4);
  CHECK_THAT(refusal(launch_of(step), true), ContainsText("srun --mpi=pmix"));
  step.emplace("PMIX_RANK", "2");
  CHECK(launch_of(step).rank == 2);
  CHECK(refusal(launch_of(step), true).empty());
  // A batch script has Slurm's variables, but nothing was launched yet.
  CHECK(launch_of({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}).size == 1);
}

TEST_CASE("torchrun gets a clear answer") {
  const Launch launch = launch_of({{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"LOCAL_RANK", "1"}});
  CHECK(launch.launcher == "torchrun");
  CHECK_THAT(refusal(launch, true), ContainsText("mpirun -np 2"));
}

TEST_CASE("a launcher of another MPI is found out") {
  const Launch launch = launch_of({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  REQUIRE_THROWS_AS(check_world_size(launch, 1, "Open MPI"), Error);
  CHECK_NOTHROW(check_world_size(launch, 2, "MPICH"));
  CHECK_NOTHROW(check_world_size(launch_of({}), 1, "MPICH"));
}

TEST_CASE("ranks and cores are counted by host, and cores that ranks share are told") {
  const std::vector<std::string> all{"0 2 4 5", "0 1 5 6;what else", "2 1", "2 1", "3 1 1", "3 1 1", "3 1 1"};
  const std::map<int, HostCores> hosts = cores_by_host(all);
  REQUIRE(hosts.size() == 3);
  CHECK(hosts.at(0).ranks == 2);
  CHECK(hosts.at(0).threads == 3);
  CHECK(hosts.at(0).cores == std::set<int>{4, 5, 6});
  CHECK(hosts.at(2).cores.empty());
  CHECK(hosts.at(3).ranks == 3);
  CHECK(shared_cores(hosts) == 1);  // of host 3; nothing is known of host 2
  CHECK(shared_cores(cores_by_host(std::vector<std::string>{"0 1 4 5", "0 1 4 5"})) == 0);
  CHECK(shared_cores(cores_by_host(std::vector<std::string>{"0 1 4 5", "0 1 4 5", "0 1 4", "1 1 1", "1 1 1"})) == 1);
  const std::vector<std::string> mine{place_text(7)};
  CHECK(cores_by_host(mine).at(7).cores.size() == allowed_cores().size());
  CHECK(cores_by_host(mine).at(7).threads == static_cast<std::size_t>(num_threads()));
}

TEST_CASE("cores are to spare where each host has one more for each of its ranks than these compute on") {
  const auto are_spare = [](const std::vector<std::string>& all) { return has_spare_cores(cores_by_host(all)); };
  CHECK(are_spare({"0 1 0 1 2 3", "0 1 0 1 2 3"}));
  CHECK_FALSE(are_spare({"0 1 0 1 2", "0 1 0 1 2"}));  // one of the two threads would be in the way
  CHECK(are_spare({"0 1 0 1", "1 1 0 1"}));
  CHECK_FALSE(are_spare({"0 1 0 1", "1 2 0 1"}));
  CHECK_FALSE(are_spare({"0 1", "0 1"}));  // a system that does not say
}

TEST_CASE("a rank's place is among those of its host, which is numbered by its lowest rank") {
  const std::vector<int> hosts{7, 3, 7, 3, 7};
  const Place last = place_of(hosts, 4), third = place_of(hosts, 3), first = place_of(hosts, 0);
  CHECK((last.rank == 4 && last.size == 5 && last.local_rank == 2 && last.local_size == 3 && last.node == 0));
  CHECK((third.local_rank == 1 && third.local_size == 2 && third.node == 1));
  CHECK((first.local_rank == 0 && first.node == 0));
}
