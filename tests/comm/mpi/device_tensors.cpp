// Collectives and data-parallel training of tensors on a CUDA device, against the same on the CPU: equal bits.
#include "tandem/autograd/record.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tests/comm/collective_checks.h"
#include "tests/comm/mpi/device_groups.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

constexpr DType kReducible[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32};

/// Runs a known backward over leaves on `device` and returns what their gradients become.
std::vector<std::vector<double>> averaged_gradients(ProcessGroup& group, Device device) {
  const int rank = group.rank();
  NamedTensors parameters{{"weight", whole_numbers(rank, {8, 3, 3, 3}, DType::f32).contiguous(Layout::channels_last)},
                          {"bias", whole_numbers(rank, {8}, DType::f32)},
                          {"half", whole_numbers(rank, {5, 7}, DType::f16)},
                          {"unused", whole_numbers(rank, {9}, DType::f32)},
                          {"large", whole_numbers(rank, {10, 2000}, DType::f32)}};
  for (auto& [name, tensor] : parameters) tensor = autograd::set_requires_grad(tensor.to(device));
  const NamedTensors buffers{{"mean", whole_numbers(rank, {8}, DType::f32).to(device)},
                             {"count", whole_numbers(rank, {}, DType::i64)}};
  DistributedDataParallel replicas(group, parameters, buffers, {64, 4096});
  replicas.check_replicas();
  for (int step = 0; step < 3; ++step) {
    std::vector<Tensor> inputs, gradients;
    for (const auto& [name, tensor] : parameters) {
      if (name == "unused") continue;
      inputs.push_back(tensor);
      const auto index = static_cast<int>(inputs.size());
      gradients.push_back(whole_numbers(rank + step + index, tensor.shape(), tensor.dtype()).to(device));
    }
    autograd::backward(autograd::record("known_gradients", inputs, Tensor::zeros({}, {.device = device}),
                                        [gradients](const autograd::BackwardContext&) { return gradients; }));
    replicas.finish();
    if (step < 2) {
      for (const auto& [name, tensor] : parameters) autograd::clear_grad(tensor);
    }
  }
  std::vector<std::vector<double>> result;
  for (const auto& [name, tensor] : parameters) {
    const Tensor gradient = autograd::grad(tensor);
    CHECK(gradient.defined() == (name != "unused"));
    if (!gradient.defined()) continue;
    CHECK(gradient.device() == device);
    CHECK(gradient.strides() == tensor.strides());
    result.push_back(gradient.to_vector<double>());
  }
  for (const auto& [name, tensor] : buffers) result.push_back(tensor.to_vector<double>());
  return result;
}

}  // namespace

TEST_CASE("device tensors are reduced as on the CPU, several at a time", "[cuda]") {
  if (!has_gpu()) return;
  const auto group = each_group();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
    std::vector<Tensor> on_cpu, on_gpu;
    std::vector<std::unique_ptr<Work>> works;
    for (const DType dtype : kReducible) {
      on_cpu.push_back(whole_numbers(group->rank(), {3, 1001}, dtype));
      on_gpu.push_back(on_cpu.back().to(kGpu));
      works.push_back(group->all_reduce_async(Out(on_gpu.back()), op));
      works.push_back(group->all_reduce_async(Out(on_cpu.back()), op));
    }
    for (const auto& work : works) work->wait();
    for (std::size_t i = 0; i < on_cpu.size(); ++i)
      CHECK(on_gpu[i].to_vector<double>() == on_cpu[i].to_vector<double>());
  }
}

TEST_CASE("every collective takes device tensors, of every dtype and of any place", "[cuda]") {
  if (!has_gpu()) return;
  const auto group = each_group();
  for (const std::int64_t count : {0, 1, 101}) CHECK(fault_of_all_collectives(*group, count, kGpu) == "");
  CHECK(fault_of_uneven_rows(*group, 7, kGpu) == "");
  CHECK(fault_of_odd_places(*group, 101, kGpu) == "");
  if (group->size() > 1) CHECK(fault_of_split(*group, kGpu) == "");
}

TEST_CASE("device tensors are broadcast and gathered", "[cuda]") {
  if (!has_gpu()) return;
  const auto group = each_group();
  const int root = group->size() - 1;
  const Tensor tensor = whole_numbers(group->rank(), {4, 5}, DType::f32).to(kGpu);
  const Tensor all = group->all_gather(tensor);
  CHECK(all.device() == kGpu);
  for (int rank = 0; rank < group->size(); ++rank)
    CHECK(all.select(0, rank).to_vector<float>() == whole_numbers(rank, {4, 5}, DType::f32).to_vector<float>());
  group->broadcast(Out(tensor), root);
  CHECK(tensor.to_vector<float>() == whole_numbers(root, {4, 5}, DType::f32).to_vector<float>());
}

TEST_CASE("replicas on a device average their gradients as on the CPU", "[cuda]") {
  if (!has_gpu()) return;
  const auto group = each_group();
  CHECK(averaged_gradients(*group, kGpu) == averaged_gradients(*group, Device{}));
}

TEST_CASE("replicas with parameters on two devices are refused", "[cuda]") {
  if (!has_gpu()) return;
  const auto group = each_group();
  const NamedTensors parameters{{"here", autograd::set_requires_grad(Tensor::zeros({2}))},
                                {"there", autograd::set_requires_grad(Tensor::zeros({2}, {.device = kGpu}))}};
  std::string text;
  try {
    DistributedDataParallel replicas(*group, parameters, {});
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK_THAT(text, ContainsText("parameter 'there' is on cuda:0, 'here' on cpu"));
}

TEST_CASE("ranks with GPUs that exchange messages are told why these share no memory", "[cuda]") {
  if (!has_gpu() || environment().size() == 1) return;
  const auto mpi = make_process_group("mpi", environment());
  const std::vector<int> one_host(static_cast<std::size_t>(mpi->size()), 0);
  const auto notice_of = [&](const NativeOptions& options) {
    return make_native_backend(mpi->place(), one_host, comm::detail::make_mpi_transport(), options)->notice();
  };
  CHECK(notice_of({.all_reduce = "ring", .shared_memory = false, .device = kGpu}) ==
        "tensors of GPUs go through host memory: ranks exchange messages by algorithm ring");
  CHECK(agreed_error_of([] {
          make_native_group({.shared_memory = false, .device = kGpu, .device_copies = DeviceCopies::on});
        }) == "TANDEM_CUDA_IPC=on: ranks exchange messages by algorithm by-cost");
  CHECK(notice_of({.all_reduce = "ring", .shared_memory = false}).empty());
}
