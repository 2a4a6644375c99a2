// When NCCL can be used, and what is said when it cannot.
#include "tandem/comm/backends/nccl/nccl_choice.h"
#include "tests/support/catch.h"

#include <vector>

using namespace tandem::comm;
using tandem::test::ContainsText;

namespace {

NcclCandidate on_gpu(int node, const std::string& uuid, const std::string& pci_address = "") {
  return {
      .node = node, .device = "cuda:0", .uuid = uuid, .pci_address = pci_address, .version = "2.28.9", .problem = ""};
}

std::string obstacle(const std::vector<NcclCandidate>& ranks) { return nccl_obstacle(ranks); }

}  // namespace

TEST_CASE("NCCL takes ranks on GPUs of their own") {
  CHECK(obstacle({on_gpu(0, "GPU-a")}).empty());
  CHECK(obstacle({on_gpu(0, "GPU-a", "0:1"), on_gpu(0, "GPU-b", "0:2"), on_gpu(0, "GPU-c", "0:3")}).empty());
}

TEST_CASE("addresses count within a host only") {
  CHECK(obstacle({on_gpu(0, "GPU-a", "0:1"), on_gpu(1, "GPU-b", "0:1")}).empty());
}

TEST_CASE("GPUs that tell neither UUID nor address are not taken for one") {
  CHECK(obstacle({on_gpu(0, ""), on_gpu(0, "")}).empty());
}

TEST_CASE("ranks on one GPU are named") {
  CHECK(obstacle({on_gpu(0, "GPU-a"), on_gpu(0, "GPU-a")}) ==
        "ranks 0, 1 are on one GPU (GPU-a), where NCCL takes a single rank: start no more ranks than GPUs");
  CHECK_THAT(
      obstacle({on_gpu(0, "GPU-a"), on_gpu(0, "GPU-b"), on_gpu(2, "GPU-c"), on_gpu(0, "GPU-b"), on_gpu(0, "GPU-b")}),
      ContainsText("ranks 1, 3, 4 are on one GPU (GPU-b)"));
}

TEST_CASE("parts of one GPU are found by its address") {
  CHECK_THAT(obstacle({on_gpu(3, "MIG-a", "0000:3b:00"), on_gpu(3, "MIG-b", "0000:3b:00")}),
             ContainsText("ranks 0, 1 are on one GPU (PCI 0000:3b:00)"));
}

TEST_CASE("ranks on the CPU are named") {
  const NcclCandidate cpu{.node = 0, .device = "cpu", .uuid = "", .pci_address = "", .version = "", .problem = ""};
  CHECK_THAT(obstacle({on_gpu(0, "GPU-a"), cpu}), ContainsText("rank 1 computes on the CPU"));
  CHECK_THAT(obstacle({cpu, on_gpu(0, "GPU-a"), cpu}), ContainsText("ranks 0, 2 compute on the CPU"));
}

TEST_CASE("a library that is missing is told with its rank, or without where all miss it") {
  NcclCandidate without = on_gpu(0, "GPU-a");
  without.version = "";
  without.problem = "no libnccl.so.2";
  NcclCandidate other = without;
  other.uuid = "GPU-b";
  CHECK(obstacle({without, other}) == "no libnccl.so.2");
  CHECK(obstacle({on_gpu(0, "GPU-c"), without, other}) == "rank 1: no libnccl.so.2");
}

TEST_CASE("different versions are told") {
  NcclCandidate old = on_gpu(0, "GPU-b");
  old.version = "2.19.3";
  CHECK_THAT(obstacle({on_gpu(0, "GPU-a"), on_gpu(0, "GPU-c"), old}),
             ContainsText("rank 0 has NCCL 2.28.9, rank 2 has 2.19.3"));
}

TEST_CASE("what a rank tells arrives as it was") {
  NcclCandidate candidate = on_gpu(12, "GPU-3f2a", "0000:3b:00");
  CHECK(read_nccl_candidate(to_text(candidate)) == candidate);
  candidate.problem = "two\nlines";
  CHECK(read_nccl_candidate(to_text(candidate)) == candidate);
}
