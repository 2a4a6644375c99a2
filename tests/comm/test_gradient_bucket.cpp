// How gradients are cut into buckets, and data-parallel training with one rank.
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

std::vector<Tensor> tensors_of(const std::vector<std::int64_t>& sizes, DType dtype = DType::f32) {
  std::vector<Tensor> tensors;
  for (const std::int64_t size : sizes) tensors.push_back(Tensor::zeros({size}, {dtype}));
  return tensors;
}

}  // namespace

TEST_CASE("buckets fill in reverse order, a small one first") {
  const auto parameters = tensors_of({10, 10, 10, 10, 10});
  CHECK(plan_buckets(parameters, 40, 80) == BucketPlan{{4}, {3, 2}, {1, 0}});
  // The parameter that crosses the limit stays in.
  CHECK(plan_buckets(parameters, 41, 81) == BucketPlan{{4, 3}, {2, 1, 0}});
  CHECK(plan_buckets(parameters, 1000, 1000) == BucketPlan{{4, 3, 2, 1, 0}});
  CHECK(plan_buckets(parameters, 0, 0) == BucketPlan{{4}, {3}, {2}, {1}, {0}});
  CHECK(plan_buckets(std::vector<Tensor>{}, 1, 1).empty());
}

TEST_CASE("buckets fill in the order that is given") {
  const auto parameters = tensors_of({10, 10, 10, 10});
  const std::vector<std::size_t> order{1, 0, 3, 2};
  CHECK(plan_buckets(parameters, order, 0, 0) == BucketPlan{{1}, {0}, {3}, {2}});
  CHECK(plan_buckets(parameters, order, 40, 80) == BucketPlan{{1}, {0, 3}, {2}});
  // Of several dtypes, too, they follow each other by when the last one of each is due.
  auto mixed = tensors_of({10, 10});
  for (const Tensor& half : tensors_of({10, 10}, DType::f16)) mixed.push_back(half);
  CHECK(plan_buckets(mixed, order, 1000, 1000) == BucketPlan{{1, 0}, {3, 2}});
}

TEST_CASE("buckets are chosen larger for larger models and for larger latencies, between two limits") {
  constexpr std::int64_t kKib = 1024, kMib = 1024 * kKib;
  ProcessGroup group(make_self_backend());
  const double cpu = latency_bytes(group, {}), gpu = latency_bytes(group, {DeviceType::cuda, 0});
  CHECK(default_bucket_bytes(0, cpu) == 64 * kKib);
  CHECK(default_bucket_bytes(64 * kKib, cpu) == 64 * kKib);
  CHECK(default_bucket_bytes(4 * kMib, cpu) == 512 * kKib);
  CHECK(default_bucket_bytes(64 * kMib, cpu) == 2 * kMib);
  CHECK(default_bucket_bytes(32 * kMib, gpu) == 8 * kMib);
  CHECK(default_bucket_bytes(1024 * kMib, gpu) == 25 * kMib);
}

TEST_CASE("rank 0 alone predicts what sizes buckets") {
  /// Rank 1, to which rank 0 tells 12345.
  struct Second final : Backend {
    std::string_view name() const override { return "second"; }
    Place place() const override { return {.rank = 1, .size = 2}; }
    std::unique_ptr<Work> start(const Collective& collective) override {
      if (collective.kind == CollectiveKind::broadcast) *static_cast<double*>(collective.output) = 12345.0;
      return done_work();
    }
    std::unique_ptr<Backend> subgroup(std::span<const int>) override { fail("it does not part"); }
    std::optional<double> predicted_all_reduce_seconds(std::int64_t) const override { fail("it predicts nothing"); }
  };
  ProcessGroup group(std::make_unique<Second>());
  CHECK(latency_bytes(group, {}) == 12345.0);
}

TEST_CASE("ranks that exchange messages size their buckets by what these cost", "[threads]") {
  const auto bytes_of = [](std::string_view algorithm, const MessageCosts& costs) {
    std::vector<double> bytes(3);
    run_thread_ranks(3, native_options("threads", algorithm), [&](ProcessGroup& group) {
      group.use_message_costs(costs);
      bytes[static_cast<std::size_t>(group.rank())] = latency_bytes(group, {});
    });
    CHECK(bytes == std::vector<double>(3, bytes.front()));
    return bytes.front();
  };
  MessageCosts costs = usual_message_costs();
  costs.within_host = CostCurve::line(20e-6, 1e9);
  costs.start = costs.overhead = 0.0;
  costs.combine = {};
  // A ring of 3 has 4 messages of a third each: 80 us, and 4/3 ns a byte.
  CHECK(bytes_of("ring", costs) == Approx(80e-6 / (4.0 / 3.0 * 1e-9)).epsilon(0.05));
  MessageCosts slow = costs;
  slow.within_host = CostCurve::line(200e-6, 1e9);
  CHECK(bytes_of("ring", slow) == Approx(10.0 * bytes_of("ring", costs)).epsilon(0.05));
  CHECK(bytes_of("by-cost", slow) > bytes_of("by-cost", costs));
  CHECK(bytes_of("auto", slow) == 64.0 * 1024);  // in shared memory
  // Costs that say nothing, and such as say that all is latency.
  costs.within_host = CostCurve(std::vector<CostPoint>{{4, 0.0}});
  CHECK(bytes_of("by-cost", costs) == 64.0 * 1024);
  costs.within_host = CostCurve(std::vector<CostPoint>{{4, 1e11}});
  CHECK(bytes_of("ring", costs) > 0.0);
}

TEST_CASE("a bucket holds one dtype, and buckets come in the order in which they are due") {
  auto parameters = tensors_of({10, 10});
  for (const Tensor& half : tensors_of({10, 10}, DType::f16)) parameters.push_back(half);
  parameters.push_back(Tensor::zeros({10}));
  CHECK(plan_buckets(parameters, 1000, 1000) == BucketPlan{{3, 2}, {4, 1, 0}});
}

TEST_CASE("gradients of half parameters share f32 buckets where they are exchanged in f32") {
  auto parameters = tensors_of({10, 10});
  for (const Tensor& half : tensors_of({10, 10}, DType::bf16)) parameters.push_back(half);
  CHECK(plan_buckets(parameters, 40, 80, HalfExchange::in_f32) == BucketPlan{{3}, {2, 1}, {0}});
  CHECK(plan_buckets(parameters, 40, 80, HalfExchange::as_half) == BucketPlan{{3, 2}, {1}, {0}});

  ProcessGroup group(make_self_backend());
  const Tensor half = parameters[2], wide = parameters[0];
  GradientBucket bucket({half, wide}, HalfExchange::in_f32);
  autograd::set_grad(half, Tensor::full({10}, 1.5, {.dtype = DType::bf16}));
  autograd::set_grad(wide, Tensor::full({10}, 2.0));
  bucket.put(0, autograd::grad(half), 0.001);
  bucket.put(1, autograd::grad(wide), 1.0);
  bucket.launch(group);
  bucket.finish();
  CHECK(autograd::grad(half).dtype() == DType::f32);
  CHECK(autograd::grad(half).to_vector<float>() == std::vector<float>(10, 1.5f * 0.001f));
  CHECK(autograd::grad(wide).to_vector<float>() == std::vector<float>(10, 2.0f));
  CHECK(autograd::grad(half).storage() == autograd::grad(wide).storage());
}

TEST_CASE("a bucket averages, keeps strides, and tells which gradients exist") {
  ProcessGroup group(make_self_backend());
  const Tensor a = Tensor::zeros({1, 2, 2, 2}, {DType::f32, Layout::channels_last}), b = Tensor::zeros({3}),
               c = Tensor::zeros({2});
  GradientBucket bucket({a, b, c});
  const Tensor gradient = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 2, 2});
  autograd::set_grad(a, gradient);
  autograd::set_grad(c, Tensor::full({2}, NAN));
  const auto before = memory_stats().current_of(MemoryTag::comm);
  bucket.put(0, autograd::grad(a), 2.0);
  bucket.put(1, autograd::grad(b), 1.0);
  CHECK_FALSE(bucket.is_full());
  bucket.put(2, autograd::grad(c), 0.0);
  CHECK(bucket.is_full());
  bucket.launch(group);
  bucket.finish();
  CHECK(memory_stats().current_of(MemoryTag::comm) == before);
  CHECK(autograd::grad(a).strides() == a.strides());
  CHECK(autograd::grad(a).to_vector<float>() == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
  CHECK(autograd::grad(a).storage()->tag() == MemoryTag::comm);
  CHECK_FALSE(autograd::grad(b).defined());
  CHECK(autograd::grad(c).to_vector<float>() == std::vector<float>{0, 0});
  CHECK_FALSE(bucket.is_full());
}

TEST_CASE("with one rank nothing is hooked or copied") {
  ProcessGroup group(make_self_backend());
  const Tensor parameter = Tensor::full({4}, 3.0);
  autograd::set_requires_grad(parameter);
  const auto before = memory_stats().current_of(MemoryTag::comm);
  DistributedDataParallel ddp(group, {{"w", parameter}}, {});
  const Tensor gradient = Tensor::full({4}, 2.0);
  autograd::set_grad(parameter, gradient);
  ddp.finish();
  ddp.sync_buffers();
  ddp.check_replicas();
  CHECK(ddp.bucket_count() == 0);
  CHECK(memory_stats().current_of(MemoryTag::comm) == before);
  CHECK(autograd::grad(parameter).is_same(gradient));
  ddp.set_gradient_weight(0.5);
  ddp.finish();
  ddp.finish();  // the weight was for one step
  CHECK(autograd::grad(parameter).to_vector<float>() == std::vector<float>(4, 1.0f));
  REQUIRE_THROWS_AS(ddp.set_gradient_weight(-1.0), Error);
  REQUIRE_THROWS_AS(ddp.set_gradient_weight(NAN), Error);
}
