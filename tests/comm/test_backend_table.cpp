// docs/comm/backends.md, which is made from the table of backends. TANDEM_RECORD_ERRORS=1 writes it anew.
#include "tandem/comm/backends.h"
#include "tests/support/recorded_lines.h"

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

std::vector<std::string> lines_of_page() {
  std::string heads = "| collective |", rules = "|---|", on_gpus = "| tensors of GPUs |",
              progress = "| works under way move on |";
  std::vector<std::string> rows;
  for (int kind = 0; kind < kCollectiveKinds; ++kind)
    rows.push_back(fmt::format("| {} |", name_of(static_cast<CollectiveKind>(kind))));
  for (const BackendEntry& entry : backends()) {
    if (entry.ways == nullptr) continue;
    heads += fmt::format(" `{}` |", entry.name);
    rules += "---|";
    on_gpus += fmt::format(" {} |", entry.on_gpus);
    progress += fmt::format(" {} |", entry.progress);
    for (std::size_t kind = 0; kind < rows.size(); ++kind) {
      const std::string_view way = (*entry.ways)[kind];
      rows[kind] += fmt::format(" {} |", way.empty() ? "-" : way);
    }
  }
  std::vector<std::string> lines{
      "# What each backend does how",
      "",
      "This page is made from the table in `comm/backends.cpp` by "
      "`tests/comm/test_backend_table.cpp`, which fails where it is",
      "another. Every filled cell is tested with all dtypes, operations and roots, each "
      "element compared with what it must be (`tests/comm/collective_checks.cpp`):",
      "`mpi`, `native` and `gloo` between 1 to 8 processes under `mpirun`, `threads` and `native` between up to 32 "
      "threads, `self` alone. Tensors of GPUs are tested the same way on the",
      "simulated device, for `nccl` with a stand-in for the library that sends by MPI; where a GPU is there, the same "
      "test runs over NCCL itself. NCCL has trained with one rank on one GPU, and not",
      "between GPUs. [launching.md](../launching.md) says what the backends are, and how to choose one.",
      "",
      heads,
      rules};
  lines.insert(lines.end(), rows.begin(), rows.end());
  lines.insert(
      lines.end(),
      {on_gpus, progress, "",
       "Halves are reduced in f32 and rounded once by each of them. `average` is a sum that is divided; of `nccl` "
       "it is ncclAvg, but for halves in all_reduce."});
  return lines;
}

}  // namespace

TEST_CASE("the page of backends is the one that the table makes") {
  check_recorded("docs/comm/backends.md", lines_of_page());
}

TEST_CASE("each backend has a way for every collective, but for messages of one rank") {
  for (const BackendEntry& entry : backends()) {
    INFO(entry.name);
    CHECK((entry.ways == nullptr) == (entry.name == "auto"));
    CHECK(entry.progress.empty() == (entry.name == "auto"));
    if (entry.ways == nullptr) continue;
    for (int kind = 0; kind < kCollectiveKinds; ++kind) {
      const bool is_message = static_cast<CollectiveKind>(kind) == CollectiveKind::send ||
                              static_cast<CollectiveKind>(kind) == CollectiveKind::receive;
      INFO(name_of(static_cast<CollectiveKind>(kind)));
      CHECK((*entry.ways)[static_cast<std::size_t>(kind)].empty() == (entry.name == "self" && is_message));
    }
  }
}
