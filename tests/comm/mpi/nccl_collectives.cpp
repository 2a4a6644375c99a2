// What every collective must do, of the backend nccl: over NCCL where there are GPUs, else over what stands for it.
#include "tests/comm/collective_checks.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/comm/mpi/nccl_group.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

TEST_CASE("nccl: every collective, every dtype, from and to every root", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  for (const std::int64_t count : {0, 1, group->size(), 101}) {
    INFO(count << " elements");
    CHECK(fault_of_all_collectives(*group, count, device) == "");
  }
  CHECK(fault_of_uneven_rows(*group, 7, device) == "");
  CHECK(fault_of_odd_places(*group, 101, device) == "");
}

TEST_CASE("nccl: every collective of tensors of the CPU", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  CHECK(fault_of_all_collectives(*group, 11) == "");
}

TEST_CASE("nccl: groups of some ranks work at the same time", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group || group->size() == 1) return;
  CHECK(fault_of_split(*group, device) == "");
}
