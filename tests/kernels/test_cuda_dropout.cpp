// Dropout on CUDA: the reference's mask in every element, however tensors are stored.
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/dropout/dropout_implementations.h"
#include "tests/kernels/cuda_support.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;

namespace {

const RandomKey kKey{.seed = 0x123456789abcdefULL, .stream = RandomStream::dropout, .step = 7};

/// What is wrong with dropout on the device, or nothing: x is scaled with one rounding, of 1 / (1 - p) and of the
/// product.
std::string check(const Tensor& x, double p, const Tensor& out) {
  kernels::dropout_forward(view_on_gpu(x), p, kKey, Out(out));
  const Tensor expected = Tensor::empty(x.shape(), {.dtype = DType::f64});
  kernels::reference::dropout_forward(wide(x), p, kKey, Out(expected));
  const std::vector<double> e = expected.to_vector<double>();
  return first_outside(out, expected,
                       [&](std::size_t i) { return p == 0.0 || p == 0.5 ? 0.0 : 0x1p-23 * std::abs(e[i]); });
}

}  // namespace

TEST_CASE("dropout on CUDA drops what the reference drops", "[cuda][dropout]") {
  if (!has_gpu()) return;
  for (const DType dtype : kKernelDTypes) {
    for (const Shape& shape : {Shape{}, Shape{0, 3, 2, 2}, Shape{1}, Shape{1003}, Shape{2, 33, 3, 5}, Shape{6, 7, 2}}) {
      for (const double p : {0.0, 0.5, 0.3, 1.0}) {
        INFO(tandem::name_of(dtype) << ' ' << to_string(shape) << " p " << p);
        const Tensor x = random_values(shape, dtype, true, 1);
        CHECK(check(x, p, poisoned_on_gpu(shape, dtype)) == "");
        CHECK(check(x, p, poisoned_on_gpu(shape, dtype, Layout::row_major, true)) == "");
      }
    }
  }
}

TEST_CASE("dropout on CUDA takes any strides on both sides, and works in place", "[cuda][dropout]") {
  if (!has_gpu()) return;
  const Shape shape{2, 5, 3, 4};
  for (const DType dtype : kKernelDTypes) {
    for (const Kind from : kKinds) {
      const Tensor x = random_view(from, shape, dtype, true, 2);
      for (const Kind to : {Kind::dense, Kind::gaps, Kind::transposed}) {
        INFO(tandem::name_of(dtype) << ' ' << name_of(from) << " to " << name_of(to));
        CHECK(check(x, 0.5, view_on_gpu(random_view(to, shape, dtype, true, 3))) == "");
      }
      if (from == Kind::expanded) continue;
      const Tensor in_place = view_on_gpu(x), out = poisoned_on_gpu(shape, dtype);
      kernels::dropout_forward(in_place, 0.3, kKey, Out(out));
      kernels::dropout_forward(in_place, 0.3, kKey, Out(in_place));
      CHECK(first_difference(in_place, out) == "");
    }
  }
}

TEST_CASE("dropout on CUDA gives f32 the bits of the CPU, and backward the mask of forward", "[cuda][dropout]") {
  if (!has_gpu()) return;
  const Tensor x = random_values({2, 16, 9, 5}, DType::f32, false, 4), here = empty_like(x);
  const Tensor there = poisoned_on_gpu(x.shape(), DType::f32), grad = poisoned_on_gpu(x.shape(), DType::f32);
  kernels::dropout_forward(x, 0.3, kKey, Out(here));
  kernels::dropout_forward(x.to(kGpu), 0.3, kKey, Out(there));
  kernels::dropout_backward(x.to(kGpu), 0.3, kKey, Out(grad));
  CHECK(equal_bits(there, here));
  CHECK(equal_bits(grad, there));
}

TEST_CASE("dropout on CUDA adds a step in memory to that of the key", "[cuda][dropout]") {
  if (!has_gpu()) return;
  RandomKey rest = kKey;
  rest.step = 3;
  const Tensor step = Tensor::from<std::int64_t>({4}, {1}).to(kGpu);
  for (const bool off_by_one : {false, true}) {  // vector by vector, and element by element
    const Tensor x = random_values({2, 16, 9, 5}, DType::f16, false, 4).to(kGpu);
    const Tensor whole = poisoned_on_gpu(x.shape(), DType::f16, Layout::channels_last, off_by_one),
                 parts = poisoned_on_gpu(x.shape(), DType::f16, Layout::channels_last, off_by_one);
    kernels::dropout_forward(x, 0.3, kKey, Out(whole));
    kernels::dropout_forward(x, 0.3, rest, Out(parts), step);
    CHECK(equal_bits(parts, whole));
    kernels::dropout_backward(x, 0.3, rest, Out(parts));
    CHECK_FALSE(equal_bits(parts, whole));
    kernels::dropout_backward(x, 0.3, rest, Out(parts), step);
    CHECK(equal_bits(parts, whole));
    CHECK_THAT(error_of([&] { kernels::dropout_forward(x, 0.3, rest, Out(parts), step.to(Device{})); }),
               ContainsText("dropout: the step must be one i64 on cuda:0, got i64[1]"));
  }
}

TEST_CASE("dropout on CUDA goes on where the grid ends", "[cuda][dropout]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kMostThreads = 132 * 16 * 256;
  const bool dense = GENERATE(true, false);
  const std::int64_t count = dense ? 4 * kMostThreads + 13 : kMostThreads + 77;
  const Tensor x = Tensor::full({count + 1}, 1.0).narrow(0, dense ? 0 : 1, count);
  const Tensor there = view_on_gpu(x), here = empty_like(x);
  kernels::dropout_forward(there, 0.5, kKey, Out(there));
  kernels::dropout_forward(x, 0.5, kKey, Out(here));
  CHECK(equal_bits(there, here));
}

TEST_CASE("dropout on CUDA refuses f64, mixed devices and probabilities that are none", "[cuda][dropout]") {
  if (!has_gpu()) return;
  const Tensor there = Tensor::zeros({4}, {.device = kGpu}),
               wide_there = Tensor::zeros({4}, {.dtype = DType::f64, .device = kGpu});
  const auto drop = [](const Tensor& x, double p, const Tensor& y) {
    return error_of([&] { kernels::dropout_forward(x, p, kKey, Out(y)); });
  };
  CHECK_THAT(drop(wide_there, 0.5, wide_there), ContainsText("dropout: CUDA kernels take f32, f16 and bf16"));
  CHECK_THAT(drop(there, 0.5, Tensor::zeros({4})), ContainsText("move one of them"));
  CHECK_THAT(drop(Tensor::zeros({4}), 0.5, there), ContainsText("move one of them"));
  CHECK_THAT(drop(there, 1.5, there), ContainsText("probability"));
}
