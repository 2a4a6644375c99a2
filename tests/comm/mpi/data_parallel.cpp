// DistributedDataParallel on several ranks, with gradients that are known beforehand.
#include "tandem/comm/ddp/distributed_data_parallel.h"

#include "tandem/autograd/record.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <memory>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// Leaves of several shapes and dtypes; values depend on the rank.
NamedTensors make_parameters(int rank) {
  NamedTensors result{{"conv.weight", whole_numbers(rank, {8, 3, 3, 3}, DType::f32).contiguous(Layout::channels_last)},
                      {"conv.bias", whole_numbers(rank + 1, {8}, DType::f32)},
                      {"norm.weight", whole_numbers(rank + 2, {8}, DType::f64)},
                      {"scale", whole_numbers(rank + 3, {}, DType::f32)},
                      {"half.weight", whole_numbers(rank + 4, {5, 7}, DType::f16)},
                      {"fc.weight", whole_numbers(rank + 5, {10, 200}, DType::f32)},
                      {"fc.bias", whole_numbers(rank + 6, {10}, DType::f32)}};
  for (const auto& [name, tensor] : result) autograd::set_requires_grad(tensor);
  return result;
}

NamedTensors make_buffers(int rank) {
  return {{"norm.running_mean", whole_numbers(rank + 9, {8}, DType::f32)},
          {"norm.count", whole_numbers(rank, {}, DType::i64)},
          {"strided", whole_numbers(rank, {4, 6}, DType::f32).narrow(1, 0, 3)}};
}

/// What backward adds to the gradient of parameter `index` on `rank` in micro-batch `step`.
Tensor gradient_of(const Tensor& parameter, std::size_t index, int rank, int step) {
  return whole_numbers(rank + 3 * step + static_cast<int>(index), parameter.shape(), parameter.dtype());
}

/// A scalar whose gradients are gradient_of(); the order in which they arrive turns with the rank. Parameters for which
/// `used` is false take no part. In odd steps backward writes gradients where they stay, in even ones it makes tensors.
template <typename Used>
Tensor loss_of(const NamedTensors& parameters, int rank, int step, Used&& used) {
  std::vector<Tensor> inputs, gradients;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const std::size_t index = (k + static_cast<std::size_t>(rank)) % parameters.size();
    if (!used(index)) continue;
    inputs.push_back(parameters[index].second);
    gradients.push_back(gradient_of(inputs.back(), index, rank, step));
  }
  return autograd::record("known_gradients", inputs, Tensor::zeros({}),
                          [gradients, step](const autograd::BackwardContext& context) {
                            std::vector<Tensor> result = gradients;
                            for (std::size_t i = 0; i < result.size() && step % 2 == 1; ++i) {
                              const bool images = result[i].rank() == 4;
                              result[i] = context.new_gradient(i, images ? Layout::channels_last : Layout::row_major);
                              result[i].copy_from(gradients[i]);
                            }
                            return result;
                          });
}

void backward_known(const NamedTensors& parameters, int rank, int step) {
  autograd::backward(loss_of(parameters, rank, step, [](std::size_t) { return true; }));
}

void clear_gradients(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) autograd::clear_grad(tensor);
}

/// Checks that each gradient is the sum over ranks of factor(rank, index) * gradient_of, divided by the ranks. Sums of
/// whole numbers are exact; what is left is the rounding of the factor, the products and the division.
template <typename Factor>
void check_average(ProcessGroup& group, const NamedTensors& parameters, int first_step, int steps, Factor&& factor) {
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const auto& [name, tensor] = parameters[index];
    INFO(name);
    const Tensor gradient = autograd::grad(tensor);
    REQUIRE(gradient.defined());
    CHECK(gradient.strides() == tensor.strides());
    std::vector<double> expected(static_cast<std::size_t>(tensor.numel()), 0.0), magnitude = expected;
    for (int rank = 0; rank < group.size(); ++rank) {
      for (int step = first_step; step < first_step + steps; ++step) {
        const auto part = gradient_of(tensor, index, rank, step).template to_vector<double>();
        for (std::size_t i = 0; i < part.size(); ++i) {
          expected[i] += factor(rank, index) * part[i] / group.size();
          magnitude[i] += std::abs(factor(rank, index) * part[i]) / group.size();
        }
      }
    }
    const double unit = tensor.dtype() == DType::f64 ? 0x1p-53 : tensor.dtype() == DType::f32 ? 0x1p-24 : 0x1p-11;
    const auto actual = gradient.to_vector<double>();
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      wrong += !(std::abs(actual[i] - expected[i]) <= (group.size() + 3) * unit * magnitude[i]);
    }
    CHECK(wrong == 0);
  }
}

double one(int, std::size_t) { return 1.0; }

const DistributedOptions kTinyBuckets{64, 1024};

}  // namespace

TEST_CASE("construction gives every rank the parameters and buffers of rank 0") {
  const auto group = each_group();
  const auto parameters = make_parameters(group->rank()), buffers = make_buffers(group->rank());
  DistributedDataParallel ddp(*group, parameters, buffers);
  const auto first_parameters = make_parameters(0), first_buffers = make_buffers(0);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    CHECK(parameters[i].second.to_vector<double>() == first_parameters[i].second.to_vector<double>());
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    CHECK(buffers[i].second.to_vector<double>() == first_buffers[i].second.to_vector<double>());
  }
  CHECK_NOTHROW(ddp.check_replicas());
}

TEST_CASE("gradients become their average over ranks, whatever order they arrive in, step after step") {
  const auto group = each_group();
  const auto parameters = make_parameters(group->rank());
  for (const DistributedOptions& options : {kTinyBuckets, DistributedOptions{}, DistributedOptions{0, 0}}) {
    DistributedDataParallel ddp(*group, parameters, {}, options);
    for (int step = 0; step < 3; ++step) {
      backward_known(parameters, group->rank(), step);
      ddp.finish();
      check_average(*group, parameters, step, 1, one);
      // Optimizers clear gradients or set them to zero; both must do.
      if (step == 0) clear_gradients(parameters);
      for (const auto& [name, tensor] : parameters) {
        if (step > 0) autograd::grad(tensor).zero();
      }
    }
    clear_gradients(parameters);
  }
}

TEST_CASE("buckets are as many as the options say, tagged comm, and go with their owner") {
  const auto group = each_group();
  const auto before = memory_stats().current_of(MemoryTag::comm);
  const auto parameters = make_parameters(group->rank());
  {
    DistributedDataParallel ddp(*group, parameters, {}, DistributedOptions{0, 0});
    CHECK(ddp.bucket_count() == (group->size() == 1 ? 0 : parameters.size()));
    CHECK((memory_stats().current_of(MemoryTag::comm) > before) == (group->size() > 1));
  }
  CHECK(memory_stats().current_of(MemoryTag::comm) == before);
  backward_known(parameters, group->rank(), 0);  // its hooks are asleep
  CHECK(autograd::grad(parameters[0].second).to_vector<double>() ==
        gradient_of(parameters[0].second, 0, group->rank(), 0).to_vector<double>());
}

TEST_CASE("hooks that are added after the replicas change a rank's own gradient before it is averaged") {
  const auto group = each_group();
  const auto parameters = make_parameters(group->rank());
  DistributedDataParallel ddp(*group, parameters, {}, kTinyBuckets);
  for (const auto& [name, tensor] : parameters) {
    autograd::on_gradient_ready(tensor, [rank = group->rank()](const Tensor& gradient) {
      if (rank == 0) gradient.zero();
      return gradient;
    });
  }
  for (int step = 0; step < 2; ++step) {
    backward_known(parameters, group->rank(), step);
    ddp.finish();
    check_average(*group, parameters, step, 1, [](int rank, std::size_t) { return rank == 0 ? 0.0 : 1.0; });
    clear_gradients(parameters);
  }
}

TEST_CASE("within no_sync gradients only add up; the last micro-batch averages all") {
  const auto group = each_group();
  const auto parameters = make_parameters(group->rank());
  DistributedDataParallel ddp(*group, parameters, {}, kTinyBuckets);
  for (int round = 0; round < 2; ++round) {
    const auto sent = group->all_reduce_bytes_sent();
    for (int step = 0; step < 2; ++step) {
      const auto scope = ddp.no_sync();
      backward_known(parameters, group->rank(), step);
    }
    CHECK(group->all_reduce_bytes_sent() == sent);
    backward_known(parameters, group->rank(), 2);
    ddp.finish();
    check_average(*group, parameters, 0, 3, one);
    clear_gradients(parameters);
  }
}

TEST_CASE("weights make uneven batches count by their samples, also where a rank has none") {
  const auto group = each_group();
  const auto parameters = make_parameters(group->rank());
  DistributedDataParallel ddp(*group, parameters, {}, kTinyBuckets);
  const int total = group->size() * (group->size() + 1) / 2;  // rank r has n - r samples
  const auto even = [&](int rank, std::size_t) { return (group->size() - rank) * group->size() / double(total); };
  ddp.set_gradient_weight(even(group->rank(), 0));
  backward_known(parameters, group->rank(), 0);
  ddp.finish();
  check_average(*group, parameters, 0, 1, even);
  clear_gradients(parameters);
  if (group->size() == 1) return;

  const int last = group->size() - 1;  // has no samples and does no backward
  const auto without_last = [&](int rank, std::size_t) { return rank == last ? 0.0 : group->size() / double(last); };
  ddp.set_gradient_weight(without_last(group->rank(), 0));
  if (group->rank() != last) backward_known(parameters, group->rank(), 1);
  ddp.finish();
  check_average(*group, parameters, 1, 1, without_last);
  clear_gradients(parameters);

  backward_known(parameters, group->rank(), 2);  // the weight is 1 again
  ddp.finish();
  check_average(*group, parameters, 2, 1, one);
}

TEST_CASE("a parameter without a gradient on one rank counts as zero there; without one anywhere it has none") {
  const auto group = each_group();
  const auto parameters = make_parameters(group->rank());
  DistributedDataParallel ddp(*group, parameters, {}, kTinyBuckets);
  if (group->size() == 1) return;
  constexpr std::size_t kNowhere = 3;
  const auto uses = [](int rank, std::size_t index) { return index != kNowhere && (rank == 1 || index != 5); };
  autograd::backward(
      loss_of(parameters, group->rank(), 0, [&](std::size_t index) { return uses(group->rank(), index); }));
  ddp.finish();
  CHECK_FALSE(autograd::grad(parameters[kNowhere].second).defined());
  autograd::set_grad(parameters[kNowhere].second, Tensor::zeros({}));
  check_average(*group, parameters, 0, 1, [&](int rank, std::size_t index) { return uses(rank, index) ? 1.0 : 0.0; });
}

TEST_CASE("a second backward before finish is an error that names the parameter") {
  const auto group = each_group();
  if (group->size() == 1) return;
  const auto parameters = make_parameters(group->rank());
  DistributedDataParallel ddp(*group, parameters, {}, kTinyBuckets);
  backward_known(parameters, group->rank(), 0);
  CHECK_THROWS_AS(ddp.set_gradient_weight(0.5), Error);
  const auto refused = [&] { return error_of([&] { backward_known(parameters, group->rank(), 0); }); };
  CHECK_THAT(refused(), ContainsText("no_sync()"));
  {
    const auto scope = ddp.no_sync();  // too late: gradients of this step are being exchanged
    CHECK_THAT(refused(), ContainsText("second gradient before finish()"));
  }
  ddp.finish();
}

TEST_CASE("of two replicas of one parameter the later one averages its gradient, and the other says so") {
  const auto group = each_group();
  if (group->size() == 1) return;
  const auto parameters = make_parameters(group->rank());
  auto first = std::make_unique<DistributedDataParallel>(*group, parameters, NamedTensors{}, kTinyBuckets);
  DistributedDataParallel second(*group, parameters, {}, kTinyBuckets);
  CHECK_THAT(error_of([&] { backward_known(parameters, group->rank(), 0); }), ContainsText("has another place now"));
  clear_gradients(parameters);
  {
    const auto scope = first->no_sync();
    backward_known(parameters, group->rank(), 0);
  }
  second.finish();
  check_average(*group, parameters, 0, 1, one);
  clear_gradients(parameters);
  first.reset();
  backward_known(parameters, group->rank(), 1);
  second.finish();
  check_average(*group, parameters, 1, 1, one);
  clear_gradients(parameters);
}

TEST_CASE("frozen parameters are broadcast but not averaged, shared ones averaged once") {
  const auto group = each_group();
  auto parameters = make_parameters(group->rank());
  parameters[0].second = whole_numbers(group->rank(), {4}, DType::f32);  // wants no gradient
  parameters.emplace_back("tied.weight", parameters[5].second);
  DistributedDataParallel ddp(*group, parameters, {}, kTinyBuckets);
  CHECK(parameters[0].second.to_vector<double>() == whole_numbers(0, {4}, DType::f32).to_vector<double>());
  autograd::backward(
      loss_of({parameters.begin() + 1, parameters.begin() + 7}, group->rank(), 0, [](std::size_t) { return true; }));
  ddp.finish();
  check_average(*group, {parameters.begin() + 1, parameters.begin() + 7}, 0, 1, one);
}

TEST_CASE("models that differ between ranks give the same error on all") {
  const auto group = each_group();
  if (group->size() == 1) return;
  const bool last = group->rank() == group->size() - 1;
  const auto error_with = [&](auto&& change) {
    auto parameters = make_parameters(group->rank());
    if (last) change(parameters);
    return agreed_error_of([&] { DistributedDataParallel(*group, parameters, {}); });
  };
  const auto shape = error_with([](NamedTensors& tensors) { tensors[6].second = Tensor::zeros({11}); });
  CHECK_THAT(shape, ContainsText("fc.bias is f32[10]"));
  CHECK_THAT(shape, ContainsText("f32[11]"));
  CHECK_THAT(shape, ContainsText(fmt::format("on rank {}", group->size() - 1)));
  CHECK_THAT(error_with([](NamedTensors& tensors) { tensors[2].second = Tensor::zeros({8}); }),
             ContainsText("norm.weight"));
  CHECK_THAT(error_with([](NamedTensors& tensors) { tensors.pop_back(); }), ContainsText("fc.bias is missing"));
  CHECK_THAT(error_with([](NamedTensors& tensors) { std::swap(tensors[1], tensors[2]); }), ContainsText("conv.bias"));
  CHECK(error_with([](NamedTensors&) {}) == "no AgreedError");
}

TEST_CASE("replicas that drift apart are found, and the tensor and rank are named") {
  const auto group = each_group();
  const auto parameters = make_parameters(group->rank()), buffers = make_buffers(group->rank());
  DistributedDataParallel ddp(*group, parameters, buffers);
  CHECK_NOTHROW(ddp.check_replicas());
  if (group->size() == 1) return;
  const int last = group->size() - 1;
  if (group->rank() == last) buffers[0].second.narrow(0, 3, 1).fill(1000.0);
  CHECK(agreed_error_of([&] { ddp.check_replicas(); }) ==
        fmt::format("replicas differ: 'norm.running_mean' on rank {} is not what it is on rank 0", last));
  ddp.sync_buffers();
  CHECK_NOTHROW(ddp.check_replicas());
  if (group->rank() == 0) {
    float* const bias = Out(parameters[1].second.detach()).data<float>();
    bias[7] = std::nextafter(bias[7], 100.0f);
  }
  CHECK_THAT(agreed_error_of([&] { ddp.check_replicas(); }), ContainsText("'conv.bias'"));
}
