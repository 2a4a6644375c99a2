// Casts on CUDA: the reference's bits for every pair of dtypes, from and to any strides.
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/cast/cast_implementations.h"
#include "tandem/kernels/cast/convert.h"
#include "tests/kernels/cuda_support.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// Values at every kind of edge, and random ones of every size; a prime number of them.
std::vector<double> edges() {
  std::vector<double> values = {0.0,
                                -0.0,
                                0.5,
                                -1.5,
                                2.5,
                                254.5,
                                256.0,
                                -1.0,
                                65504.0,
                                65519.0,
                                65520.0,
                                1e30,
                                1e39,
                                1e300,
                                2147483647.0,
                                2147483648.0,
                                -2147483649.0,
                                9223372036854774784.0,
                                9223372036854775808.0,
                                -9223372036854775808.0,
                                1e-8,
                                1e-46,
                                5e-324,
                                0x1p-25,
                                0x1.8p-25,
                                std::nan(""),
                                HUGE_VAL,
                                -HUGE_VAL,
                                1.0 + 0x1p-11 + 0x1p-40,
                                1.0 + 0x1p-11 - 0x1p-40,
                                1.0 + 0x1p-8 + 0x1p-40,
                                0x1p-25 + 0x1p-60,
                                0x1p-134 + 0x1p-160};
  const RandomKey key{.seed = 3};
  for (std::uint64_t i = 0; values.size() < 211; ++i) {
    const double magnitude = std::ldexp(0.5 + key.uniform(3 * i), static_cast<int>(key.below(3 * i + 1, 100)) - 40);
    values.push_back(key.bits(3 * i + 2) % 2 ? magnitude : -magnitude);
  }
  return values;
}

/// How many elements differ in their bits; two NaN count as equal.
int differences(const Tensor& a, const Tensor& b) {
  const auto bytes = static_cast<std::size_t>(size_of(a.dtype()));
  const std::vector<double> a_values = a.to_vector<double>(), b_values = b.to_vector<double>();
  const Tensor here = a.to(Device{});
  int count = 0;
  for (std::size_t i = 0; i < a_values.size(); ++i) {
    const auto* const left = static_cast<const char*>(here.raw_data()) + i * bytes;
    const auto* const right = static_cast<const char*>(b.raw_data()) + i * bytes;
    count += std::memcmp(left, right, bytes) != 0 && !(std::isnan(a_values[i]) && std::isnan(b_values[i]));
  }
  return count;
}

/// Every encoding of T as f32, and what lies around the middle between it and the next number.
template <typename T>
std::vector<float> around_every(std::uint32_t half_step) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    T element;
    element.bits = static_cast<std::uint16_t>(bits);
    const auto exact = std::bit_cast<std::uint32_t>(static_cast<float>(element));
    for (const std::uint32_t off : {0u, half_step - 1u, half_step, half_step + 1u})
      values.push_back(std::bit_cast<float>(exact + off));
  }
  return values;
}

template <typename T>
void check_every_encoding(std::uint32_t half_step) {
  const Tensor encodings = Tensor::empty({0x10000}, {.dtype = dtype_of<T>});
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits)
    Out(encodings).data<T>()[bits].bits = static_cast<std::uint16_t>(bits);
  const Tensor floats = Tensor::from(around_every<T>(half_step), {4 * 0x10000});
  for (const Tensor& source : {encodings, floats}) {
    const DType to = source.dtype() == DType::f32 ? dtype_of<T> : DType::f32;
    const Tensor there = poisoned_on_gpu(source.shape(), to), here = Tensor::empty(source.shape(), {.dtype = to});
    kernels::cast(source.to(kGpu), Out(there));
    kernels::reference::cast(source, Out(here));
    INFO(describe(source) << " to " << tandem::name_of(to));
    CHECK(equal_bits(there, here));
  }
}

}  // namespace

TEST_CASE("casts on CUDA give the reference's bits for every pair of dtypes", "[cuda][cast]") {
  if (!has_gpu()) return;
  const std::vector<double> values = edges();
  const Tensor wide_source = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  for (int from = 0; from < kDTypeCount; ++from) {
    const Tensor source = Tensor::empty(wide_source.shape(), {.dtype = static_cast<DType>(from)});
    kernels::reference::cast(wide_source, Out(source));
    const Tensor gpu_source = source.to(kGpu);
    for (int to = 0; to < kDTypeCount; ++to) {
      INFO(tandem::name_of(source.dtype()) << " to " << tandem::name_of(static_cast<DType>(to)));
      for (const bool off_by_one : {false, true}) {  // 16 bytes per access, and one element per access
        const Tensor there = poisoned_on_gpu(source.shape(), static_cast<DType>(to), Layout::row_major, off_by_one);
        const Tensor here = Tensor::empty(source.shape(), {.dtype = static_cast<DType>(to)});
        kernels::cast(gpu_source, Out(there));
        kernels::reference::cast(source, Out(here));
        CHECK(differences(there, here) == 0);
      }
    }
  }
}

TEST_CASE("casts on CUDA between f32 and the half types are right in every bit of every encoding", "[cuda][cast]") {
  if (!has_gpu()) return;
  check_every_encoding<Half>(1u << 12);
  check_every_encoding<BFloat16>(1u << 15);
}

TEST_CASE("casts on CUDA take any strides on both sides", "[cuda][cast]") {
  if (!has_gpu()) return;
  for (const Shape& shape : {Shape{2, 5, 3, 4}, Shape{0, 2}, Shape{}, Shape{1, 33, 1, 1}}) {
    for (const Kind from : kKinds) {
      for (const Kind to : kKinds) {
        if (to == Kind::expanded) continue;
        INFO(to_string(shape) << ' ' << name_of(from) << " to " << name_of(to));
        const Tensor source = random_view(from, shape, DType::f32, true, 3);
        const Tensor there = view_on_gpu(random_view(to, shape, DType::f16, true, 4));
        kernels::cast(view_on_gpu(source), Out(there));
        CHECK(there.to_vector<float>() == source.to_vector<float>());
      }
    }
  }
}

TEST_CASE("casts on CUDA refuse other shapes, devices and shared memory", "[cuda][cast]") {
  if (!has_gpu()) return;
  const Tensor there = Tensor::zeros({4}, {.device = kGpu}), half = Tensor::zeros({4}, {.dtype = DType::f16});
  CHECK_THAT(error_of([&] { kernels::cast(there, Out(half)); }), ContainsText("shapes and devices must agree"));
  CHECK_THAT(error_of([&] { kernels::cast(half, Out(there)); }), ContainsText("shapes and devices must agree"));
  CHECK_THAT(error_of([&] { kernels::cast(there, Out(there.narrow(0, 0, 4))); }), ContainsText("share memory"));
}
