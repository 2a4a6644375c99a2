// What holds of every family of convolution kernels: its passes are those of the plain loops, adjoint, and give the
// same bits every time.
#include "tandem/core/device_query.h"
#include "tests/kernels/conv_families.h"

#include <numeric>

namespace tandem::test {
namespace {

/// -1, 0 and 1, in the storage dtype: sums of a few hundred products stay whole numbers that every dtype has.
Tensor signs(const Shape& shape, DType dtype, unsigned seed) {
  return mapped(in_f64(drawn(shape, DType::f32, seed, true, kLast), kLast), dtype, kLast, [](double value) {
    return value > 0 ? 1.0f : value < 0 ? -1.0f : 0.0f;
  });
}

std::vector<double> values(const Tensor& tensor) { return in_f64(tensor.to(Device{}), kLast).to_vector<double>(); }

double inner_product(const Tensor& a, const Tensor& b) {
  const std::vector<double> left = values(a), right = values(b);
  return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

/// Fills memory that later workspaces come from with NaN, and gives it back.
void dirty_workspace() {
  for (const std::int64_t elements : {1 << 10, 1 << 14, 1 << 18})
    Tensor::full({elements}, std::numeric_limits<double>::quiet_NaN(), {.device = kGpu});
}

/// On whole numbers, where every sum is exact; plain, and with bias, ReLU and masks.
void check_exact(const std::vector<FamilyCase>& cases) {
  for (const FamilyCase& c : cases) {
    const kernels::Float32ProductsScope scope(c.products);
    for (const bool fused : {false, true}) check_passes(c.family, c.one, c.dtype, true, fused);
  }
}

void check_adjoint(const std::vector<FamilyCase>& cases) {
  for (const FamilyCase& c : cases) {
    INFO(c.text());
    const Tensor x = signs(c.one.x(), c.dtype, 1), w = signs(c.one.weight(), c.dtype, 2),
                 grad_y = signs(c.one.y(), c.dtype, 3);
    const FamilyResults results(c, on_gpu(x), on_gpu(w), on_gpu(grad_y));
    for (const Tensor& result : {results.y, results.grad_x, results.grad_w})
      for (const double value : values(result)) REQUIRE(std::abs(value) <= 256.0);  // exact in bf16
    const double of_y = inner_product(grad_y, results.y);
    CHECK(of_y != 0.0);
    CHECK(inner_product(results.grad_x, x) == of_y);
    CHECK(inner_product(results.grad_w, w) == of_y);
    const Tensor grad_bias = poisoned_on_gpu({c.one.k}, c.dtype);
    kernels::cuda::conv_backward_bias(on_gpu(grad_y), {}, Out(grad_bias));
    const std::vector<double> bias = values(grad_bias), all = values(grad_y);
    CHECK(std::accumulate(bias.begin(), bias.end(), 0.0) == std::accumulate(all.begin(), all.end(), 0.0));
  }
}

void check_same_bits(const std::vector<FamilyCase>& cases) {
  const int times = cuda_is_simulated() ? 2 : 20;
  for (const FamilyCase& c : cases) {
    INFO(c.text());
    const ConvInputs in(c.one, c.dtype, false);
    const Tensor x = on_gpu(in.x), w = on_gpu(in.w), grad_y = on_gpu(in.grad_y);
    const FamilyResults first(c, x, w, grad_y);
    for (int i = 0; i < times; ++i) {
      dirty_workspace();
      const FamilyResults again(c, x, w, grad_y);
      CHECK(same_bits_on_gpu(again.y, first.y));
      CHECK(same_bits_on_gpu(again.grad_x, first.grad_x));
      CHECK(same_bits_on_gpu(again.grad_w, first.grad_w));
    }
  }
}

}  // namespace

TEST_CASE("every family computes what the plain loops do", "[cuda][conv]") {
  if (has_gpu()) check_exact(family_cases());
}

TEST_CASE("warpgroups compute what the plain loops do", "[cuda][conv][warpgroup]") {
  if (has_gpu()) check_exact(warpgroup_cases());
}

TEST_CASE("the passes of every family are each other's adjoints", "[cuda][conv]") {
  if (has_gpu()) check_adjoint(family_cases());
}

TEST_CASE("the passes of warpgroups are each other's adjoints", "[cuda][conv][warpgroup]") {
  if (has_gpu()) check_adjoint(warpgroup_cases());
}

TEST_CASE("every family gives the same bits every time, whatever its workspace held", "[cuda][conv]") {
  if (has_gpu()) check_same_bits(family_cases());
}

TEST_CASE("warpgroups give the same bits every time, whatever their workspace held", "[cuda][conv][warpgroup]") {
  if (has_gpu()) check_same_bits(warpgroup_cases());
}

}  // namespace tandem::test
