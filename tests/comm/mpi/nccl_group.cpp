// Groups over NCCL where every rank has a GPU of its own, and what happens where it has not.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/launch/gpu_sharing.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/skip.h"

#include <optional>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

constexpr DType kReducible[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32};

/// This rank's GPU, and whether each rank has one of its own.
std::pair<Device, bool> own_gpu() {
  const auto group = make_process_group("mpi", environment());
  const Device device = share_out_gpus(*group, kGpu);
  return {device, group->local_size() <= cuda_device_count()};
}

/// The same for tests of NCCL: nothing where they are skipped, which is said.
std::optional<Device> gpu_of_this_rank() {
  if (!has_gpu()) return {};
  const auto [device, is_own] = own_gpu();
  if (!is_own) skip_test("ranks share a GPU");
  return is_own ? std::optional(device) : std::nullopt;
}

}  // namespace

TEST_CASE("without GPUs, nccl is an error and auto takes native silently") {
  CHECK_THAT(agreed_error_of([] { make_process_group("nccl", environment()); }), ContainsText("on the CPU"));
  const auto group = make_process_group("auto", environment());
  CHECK(group->name() == (environment().size() == 1 ? "self" : "native"));
  CHECK(group->notice().empty());
}

TEST_CASE("ranks that share a GPU get native and a notice, or an error where they ask for nccl", "[cuda]") {
  if (!has_gpu()) return;
  if (own_gpu().second) return skip_test("every rank has a GPU of its own");
  CHECK_THAT(agreed_error_of([] { make_process_group("nccl", environment(), own_gpu().first); }),
             ContainsText("are on one GPU"));
  const auto group = make_process_group("auto", environment(), own_gpu().first);
  CHECK(group->name() == "native");
  CHECK_THAT(group->notice(), ContainsText("using backend native instead of nccl: ranks 0, "));
}

TEST_CASE("NCCL's collectives, several at a time", "[cuda]") {
  const std::optional<Device> device = gpu_of_this_rank();
  if (!device) return;
  const auto group = make_process_group("nccl", environment(), *device);
  REQUIRE(group->name() == "nccl");
  const auto host = make_process_group("mpi", environment());
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
    std::vector<Tensor> expected, actual;
    std::vector<std::unique_ptr<Work>> works;
    for (const DType dtype : kReducible) {
      expected.push_back(whole_numbers(group->rank(), {3, 1001}, dtype));
      actual.push_back(expected.back().to(*device));
      works.push_back(group->all_reduce_async(Out(actual.back()), op));
      host->all_reduce(Out(expected.back()), op);
    }
    for (const auto& work : works) work->wait();
    for (std::size_t i = 0; i < actual.size(); ++i)
      CHECK(actual[i].to_vector<double>() == expected[i].to_vector<double>());
  }
  const Tensor tensor = whole_numbers(group->rank(), {4, 5}, DType::bf16).to(*device);
  const Tensor all = group->all_gather(tensor);
  for (int rank = 0; rank < group->size(); ++rank)
    CHECK(all.select(0, rank).to_vector<double>() == whole_numbers(rank, {4, 5}, DType::bf16).to_vector<double>());
  const int root = group->size() - 1;
  group->broadcast(Out(tensor), root);
  CHECK(tensor.to_vector<double>() == whole_numbers(root, {4, 5}, DType::bf16).to_vector<double>());
}

TEST_CASE("NCCL's sums of halves are added in f32, of any size", "[cuda]") {
  const std::optional<Device> device = gpu_of_this_rank();
  if (!device) return;
  const auto group = make_process_group("nccl", environment(), *device);
  const auto host = make_process_group("mpi", environment());
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const std::int64_t count : {1, 15, 64, 1001, 100003}) {
      INFO(tandem::name_of(dtype) << '[' << count << ']');
      const double large = dtype == DType::f16 ? 2048.0 : 256.0;  // + 1 is itself
      const Tensor tensor = Tensor::full({count}, group->rank() == 0 ? large : 1.0, {.dtype = dtype}).to(*device);
      const Tensor sum = Tensor::full({1}, large + group->size() - 1, {.dtype = dtype});
      group->all_reduce(Out(tensor));
      CHECK(tensor.to_vector<double>() == Tensor::full({count}, sum.item(), {.dtype = dtype}).to_vector<double>());
      const Tensor expected = whole_numbers(group->rank(), {count}, dtype), actual = expected.to(*device);
      group->all_reduce(Out(actual), ReduceOp::average);
      host->all_reduce(Out(expected), ReduceOp::average);
      CHECK(actual.to_vector<double>() == expected.to_vector<double>());
    }
  }
}
