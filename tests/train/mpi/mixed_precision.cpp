// Half precision on several ranks: gradients exchanged in f32 or half, and one rank's overflow skipping all ranks'
// steps.
#include "tandem/autograd/precision.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/layers/sequential.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/train/weights.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/train/mixed_net.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;
using autograd::Precision;
using comm::HalfExchange;

namespace {

/// A replica of the network with all that a step needs.
struct Replica {
  std::unique_ptr<layers::Sequential> network;
  optim::Adam adam;
  comm::DistributedDataParallel ddp;
  optim::GradScaler scaler{optim::LossScaling::dynamic};

  Replica(comm::ProcessGroup& group, Precision precision, HalfExchange exchange, Device device)
      : network(make_mixed_net(precision, device)),
        adam(network->parameters(), {.lr = 0.01}),
        ddp(group, train::parameters_and_masters(*network, adam), network->named_buffers(), {.half = exchange}) {}

  /// One step; true if it was taken. An infinite image on `poisoned` ranks spoils the gradients there.
  bool step(comm::ProcessGroup& group, std::uint32_t number, bool poisoned) {
    const Points points = make_points(16, 100 * number + static_cast<std::uint32_t>(group.rank()));
    if (poisoned) points.images.narrow(0, 3, 1).fill(std::numeric_limits<double>::infinity());
    adam.zero_grad();
    const Device device = adam.parameters()[0].device();
    backward_points(*network, {points.images.to(device), points.labels.to(device)}, scaler.scale());
    ddp.finish();
    const bool taken = scaler.step(adam);
    scaler.update();
    return taken;
  }

  std::vector<std::vector<double>> contents() const {
    std::vector<std::vector<double>> result;
    for (const Tensor& parameter : adam.parameters()) result.push_back(parameter.to_vector<double>());
    for (const auto& [name, tensor] : adam.state_dict()) result.push_back(tensor.to_vector<double>());
    return result;
  }
};

void check_skips_together(comm::ProcessGroup& group, Precision precision, HalfExchange exchange, Device device) {
  Replica replica(group, precision, exchange, device);
  CHECK(replica.step(group, 0, false));
  const auto before = replica.contents();
  const int last = group.size() - 1;
  CHECK_FALSE(replica.step(group, 1, group.rank() == last));
  CHECK(replica.contents() == before);
  CHECK(replica.scaler.scale() == 32768.0);
  CHECK(replica.adam.steps() == 1);
  CHECK(replica.step(group, 2, false));
  CHECK(replica.contents() != before);
  replica.ddp.sync_buffers();  // batch norm's running statistics are each rank's own
  replica.ddp.check_replicas();
}

}  // namespace

TEST_CASE("one rank's overflow makes all ranks skip, which then agree to the last bit") {
  const auto group = each_group();
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    for (const HalfExchange exchange : {HalfExchange::in_f32, HalfExchange::as_half})
      check_skips_together(*group, precision, exchange, Device{});
  }
}

TEST_CASE("one rank's overflow makes all ranks skip on GPUs", "[cuda]") {
  if (!has_gpu()) return;
  const auto group = each_group();
  check_skips_together(*group, Precision::fp16, HalfExchange::in_f32, kGpu);
}

TEST_CASE("gradients exchanged in f32 keep what half would round off") {
  const auto group = each_group();
  const int ranks = group->size();
  for (const HalfExchange exchange : {HalfExchange::in_f32, HalfExchange::as_half}) {
    const Tensor half = autograd::set_requires_grad(Tensor::zeros({4}, {.dtype = DType::f16}));
    const Tensor wide = autograd::set_requires_grad(Tensor::zeros({3}));
    comm::DistributedDataParallel ddp(*group, {{"half", half}, {"wide", wide}}, {}, {.half = exchange});
    if (ranks > 1) CHECK(ddp.bucket_count() == (exchange == HalfExchange::in_f32 ? 1 : 2));
    for (int step = 0; step < 2; ++step) {
      autograd::clear_grad(half);
      autograd::clear_grad(wide);
      // 1 on all ranks but the first, which has the next f16 number: their mean lies between the two.
      autograd::set_grad(half, Tensor::full({4}, group->rank() == 0 ? 1.0 + 0x1p-10 : 1.0, {.dtype = DType::f16}));
      autograd::set_grad(wide, Tensor::full({3}, group->rank()));
      ddp.finish();
      const double mean = 1.0 + 0x1p-10 / ranks;
      const bool kept = exchange == HalfExchange::in_f32;
      const Tensor gradient = autograd::grad(half);
      if (ranks == 1) continue;
      CHECK(gradient.dtype() == (kept ? DType::f32 : DType::f16));
      const double expected = kept ? static_cast<float>(mean) : static_cast<float>(Half(static_cast<float>(mean)));
      CHECK(std::abs(gradient.to_vector<double>()[3] - expected) <= (kept ? 0x1p-23 : 0.0));
      CHECK(autograd::grad(wide).to_vector<double>() == std::vector<double>(3, (ranks - 1) / 2.0));
    }
  }
}

TEST_CASE("masters start as rank 0's on all ranks, and a master that drifts is found") {
  const auto group = each_group();
  const auto network = make_mixed_net(Precision::bf16);
  optim::Adam adam(network->parameters(), {});
  adam.set_value(0, Tensor::full(adam.parameters()[0].shape(), 1.0 + 0.001 * group->rank()));
  comm::DistributedDataParallel ddp(*group, train::parameters_and_masters(*network, adam), network->named_buffers());
  CHECK(adam.master(0).to_vector<double>()[0] == 1.0);
  CHECK_NOTHROW(ddp.check_replicas());
  if (group->size() == 1) return;
  if (group->rank() == 1) adam.master(0).narrow(0, 0, 1).fill(1.0001);  // rounds to the same bf16 number
  CHECK_THAT(agreed_error_of([&] { ddp.check_replicas(); }), ContainsText("'0.weight.master' on rank 1"));
}
