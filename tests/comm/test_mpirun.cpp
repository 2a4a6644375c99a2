// What mpirun was asked for, by the variables that Open MPI 4.1.4 and 5.0.7 really set.
#include "tandem/comm/launch/mpirun.h"
#include "tests/support/catch.h"

#include <map>

using namespace tandem::comm;

namespace {

using Variables = std::map<std::string, std::string>;

tandem::EnvironmentLookup lookup_in(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

bool is_default(const Variables& variables, const ProcessCall& launcher = {}) {
  return is_default_binding(lookup_in(variables), launcher);
}

const Variables kOpenMpi4{
    {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_MCA_orte_launch", "1"}, {"OMPI_MCA_mpi_oversubscribe", "0"}};
const Variables kOpenMpi5{{"OMPI_COMM_WORLD_SIZE", "2"}, {"PRTE_LAUNCHED", "1"}, {"OMPI_VERSION", "5.0.7"}};

bool is_default_after(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return is_default(variables, {{"prterun", "-np", "2", "./train"}, {}});
}

/// Open MPI 5, called with these words between -np 2 and the program.
bool is_default_with(const std::vector<std::string>& options, const std::vector<std::string>& environment = {}) {
  ProcessCall launcher{{"prterun", "-np", "2"}, environment};
  launcher.words.insert(launcher.words.end(), options.begin(), options.end());
  launcher.words.insert(launcher.words.end(), {"./train", "--epochs", "2"});
  return is_default(kOpenMpi5, launcher);
}

}  // namespace

TEST_CASE("Open MPI's default binding of two ranks is recognised") {
  CHECK(is_default(kOpenMpi4));
  CHECK(is_default_with({}));
  CHECK(is_default_with({}, {"HOME=/root", "PRTE_MCA_plm_ssh_agent=ssh", "no equals sign"}));
  CHECK(is_default(kOpenMpi5, {}));  // nothing could be read
}

TEST_CASE("Open MPI makes better use of more ranks than two") {
  for (Variables variables : {kOpenMpi4, kOpenMpi5}) {
    variables["OMPI_COMM_WORLD_SIZE"] = "3";
    CHECK_FALSE(is_default(variables));
  }
}

TEST_CASE("other launchers' bindings are left alone") {
  CHECK_FALSE(is_default({}));
  CHECK_FALSE(is_default({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}, {"HYDI_CONTROL_FD", "7"}}));  // MPICH
  CHECK_FALSE(is_default({{"PMI_SIZE", "2"}, {"I_MPI_MPIRUN", "mpirun"}}));                   // Intel MPI
  // srun, under which Open MPI sets its own variables as it starts
  CHECK_FALSE(is_default({{"SLURM_STEP_ID", "0"}, {"PMIX_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}));
}

TEST_CASE("Open MPI 4 tells its ranks what was asked for") {
  CHECK_FALSE(is_default_after(kOpenMpi4, "OMPI_MCA_hwloc_base_binding_policy", "core"));
  CHECK_FALSE(is_default_after(kOpenMpi4, "OMPI_MCA_rmaps_base_mapping_policy", "ppr:1:numa"));
  CHECK_FALSE(is_default_after(kOpenMpi4, "OMPI_MCA_rmaps_base_mapping_policy", "slot:PE=1"));
  CHECK_FALSE(is_default_after(kOpenMpi4, "OMPI_MCA_rmaps_base_cpus_per_rank", "2"));
  CHECK_FALSE(is_default_after(kOpenMpi4, "OMPI_MCA_hwloc_base_cpu_set", "0"));
  CHECK(is_default_after(kOpenMpi4, "OMPI_MCA_rmaps_base_mapping_policy", ":OVERSUBSCRIBE"));
}

TEST_CASE("Open MPI 5 is asked itself: options") {
  CHECK_FALSE(is_default_with({"--bind-to", "core"}));
  CHECK_FALSE(is_default_with({"-bind-to", "core"}));
  CHECK_FALSE(is_default_with({"--bind-to=core"}));
  CHECK_FALSE(is_default_with({"--map-by", "ppr:1:numa"}));
  CHECK_FALSE(is_default_with({"--map-by", ":OVERSUBSCRIBE:PE=1"}));
  CHECK_FALSE(is_default_with({"--map-by", ":pe-list=0,1"}));
  CHECK_FALSE(is_default_with({"--cpu-set", "0"}));
  CHECK_FALSE(is_default_with({"-rf", "ranks.txt"}));
  CHECK_FALSE(is_default_with({"--prtemca", "hwloc_default_binding_policy", "core"}));
  CHECK_FALSE(is_default_with({"--prtemca", "rmaps_default_mapping_policy", "numa"}));
  CHECK(is_default_with({"--bind-to", "none"}));  // bound all the same, by what does not concern us
  CHECK(is_default_with({"--map-by", ":OVERSUBSCRIBE"}));
  CHECK(is_default_with({"--mca", "btl", "self,sm"}));
  CHECK(is_default_with({"-", "--", "--mca"}));
}

TEST_CASE("Open MPI 5 is asked itself: environment") {
  CHECK_FALSE(is_default_with({}, {"PRTE_MCA_hwloc_default_binding_policy=core"}));
  CHECK_FALSE(is_default_with({}, {"PRTE_MCA_rmaps_default_mapping_policy=package:PE=2"}));
  CHECK(is_default_with({}, {"PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"}));
  CHECK(is_default_with({}, {"XPRTE_MCA_hwloc_default_binding_policy=core"}));
  // What was written for Open MPI 4 has no effect there, but says what was meant.
  CHECK_FALSE(is_default_after(kOpenMpi5, "OMPI_MCA_hwloc_base_binding_policy", "core"));
  CHECK(is_default_after(kOpenMpi5, "OMPI_MCA_hwloc_base_binding_policy", "none"));
}

TEST_CASE("Open MPI 4 ends all ranks when one fails, unless it was told otherwise") {
  const auto ends = [](const Variables& variables) { return ends_all_ranks_on_failure(lookup_in(variables), {}); };
  CHECK(ends(kOpenMpi4));
  Variables told = kOpenMpi4;
  told["OMPI_MCA_orte_abort_on_non_zero_status"] = "0";
  CHECK_FALSE(ends(told));
  CHECK_FALSE(ends({}));
  CHECK_FALSE(ends({{"PMI_SIZE", "2"}}));
}

TEST_CASE("Open MPI 5 ends all ranks when one fails, unless it was told otherwise") {
  const auto ends = [](const ProcessCall& launcher) {
    return ends_all_ranks_on_failure(lookup_in(kOpenMpi5), launcher);
  };
  CHECK(ends({{"prterun", "-np", "2", "./train"}, {"HOME=/root"}}));
  CHECK(ends({{"/usr/bin/prterun", "--bind-to", "none", "./train"}, {}}));
  CHECK_FALSE(ends({}));
  CHECK_FALSE(ends({{"prted", "--prtemca", "ess", "env"}, {}}));
  CHECK_FALSE(ends({{"prterun", "--runtime-options", "error-nonzero-status=0", "./train"}, {}}));
  CHECK_FALSE(ends({{"prterun", "--rtos=recoverable", "./train"}, {}}));
  CHECK_FALSE(ends({{"prterun", "--enable-recovery", "./train"}, {}}));
  CHECK_FALSE(ends({{"prterun", "./train"}, {"PRTE_MCA_state_base_error_non_zero_exit=0"}}));
}

#ifdef __linux__
TEST_CASE("the call of the process that started this one can be read") { CHECK_FALSE(launcher_call().words.empty()); }
#endif
