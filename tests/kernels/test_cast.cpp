// Casts: every pair of dtypes, one rounding, saturation; fast against reference.
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/cast/cast_implementations.h"

#include "tandem/core/random.h"
#include "tandem/kernels/cast/convert.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tests/support/catch.h"

#include <cmath>
#include <cstring>

using namespace tandem;
using namespace tandem::kernels;

namespace {

/// Values at every kind of edge, and random ones of every size.
std::vector<double> edges() {
  std::vector<double> values = {0.0,
                                -0.0,
                                0.5,
                                -0.5,
                                1.5,
                                2.5,
                                254.5,
                                255.0,
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
                                -2147483648.0,
                                -2147483649.0,
                                9223372036854774784.0,
                                9223372036854775808.0,
                                -9223372036854775808.0,
                                1e-8,
                                1e-46,
                                5e-324,
                                0x1p-24,
                                0x1p-25,
                                0x1.8p-25,
                                std::nan(""),
                                HUGE_VAL,
                                -HUGE_VAL};
  // A little off a tie of f16 or bf16, by less than f32 can show: two roundings would go wrong.
  values.insert(values.end(), {1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11 - 0x1p-40, 1.0 + 0x1p-8 + 0x1p-40,
                               1.0 + 0x3p-8 - 0x1p-40, 0x1p-25 + 0x1p-60, 0x1p-134 + 0x1p-160});
  const RandomKey key{.seed = 3};
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const double magnitude = std::ldexp(0.5 + key.uniform(3 * i), static_cast<int>(key.below(3 * i + 1, 100)) - 40);
    values.push_back(key.bits(3 * i + 2) % 2 ? magnitude : -magnitude);
  }
  return values;
}

Tensor tensor_of(const std::vector<double>& values, DType dtype) {
  const Tensor wide = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  if (dtype == DType::f64) return wide;
  const Tensor result = Tensor::empty(wide.shape(), {.dtype = dtype});
  reference::cast(wide, Out(result));
  return result;
}

double unit(DType dtype) { return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24; }

}  // namespace

TEST_CASE("the fast cast gives the reference's bits for every pair of dtypes") {
  for (int from = 0; from < kDTypeCount; ++from) {
    const Tensor source = tensor_of(edges(), static_cast<DType>(from));
    for (int to = 0; to < kDTypeCount; ++to) {
      INFO(name_of(static_cast<DType>(from)) << " to " << name_of(static_cast<DType>(to)));
      const Tensor fast = Tensor::empty(source.shape(), {.dtype = static_cast<DType>(to)});
      const Tensor plain = empty_like(fast);
      REQUIRE(cpu::cast_supports(source, fast));
      cpu::cast(source, Out(fast));
      reference::cast(source, Out(plain));
      if (is_floating(fast.dtype())) {
        // NaN may differ in payload, nothing else may.
        const std::vector<double> a = fast.to_vector<double>(), b = plain.to_vector<double>();
        int wrong = 0;
        for (std::size_t i = 0; i < a.size(); ++i) wrong += std::isnan(b[i]) ? !std::isnan(a[i]) : a[i] != b[i];
        CHECK(wrong == 0);
      } else {
        CHECK(std::memcmp(fast.raw_data(), plain.raw_data(), static_cast<std::size_t>(fast.storage()->bytes())) == 0);
      }
    }
  }
}

TEST_CASE("f64 is rounded once: no neighbour is nearer, and ties are even") {
  const std::vector<double> values = edges();
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    const std::vector<double> rounded = tensor_of(values, dtype).to_vector<double>();
    const double largest = dtype == DType::f16 ? 65504.0 : dtype == DType::bf16 ? 0x1.fep127 : 0x1.fffffep127;
    const double tiny = dtype == DType::f16 ? 0x1p-25 : dtype == DType::bf16 ? 0x1p-134 : 0x1p-150;
    int wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double size = std::abs(values[i]);
      if (!(size <= largest)) continue;
      // Half a step of the binade of the value.
      const double binade = size > 0.0 ? std::ldexp(1.0, std::ilogb(size)) : 0.0;
      wrong += !(std::abs(rounded[i] - values[i]) <= std::max(unit(dtype) * binade, tiny));
    }
    CHECK(wrong == 0);
  }
  CHECK(static_cast<float>(convert<Half>(1.0 + 0x1p-11)) == 1.0f);
  CHECK(static_cast<float>(convert<Half>(1.0 + 0x1p-11 + 0x1p-40)) == 1.0f + 0x1p-10f);
  CHECK(static_cast<float>(convert<Half>(1.0 + 0x3p-11 - 0x1p-40)) == 1.0f + 0x1p-10f);
  CHECK(static_cast<float>(convert<BFloat16>(-1.0 - 0x1p-8 - 0x1p-40)) == -1.0f - 0x1p-7f);
  CHECK(convert<Half>(0x1p-25 + 0x1p-60).bits == 1);
  CHECK(convert<Half>(-1e-300).bits == 0x8000);
  CHECK(convert<BFloat16>(1e39).bits == 0x7f80);
}

TEST_CASE("i64 to half types is rounded once") {
  const std::int64_t tie = (std::int64_t{1} << 60) + (std::int64_t{1} << 52);  // halfway between two bf16 numbers
  CHECK(static_cast<float>(convert<BFloat16>(tie)) == 0x1p60f);
  CHECK(static_cast<float>(convert<BFloat16>(tie + 1)) == 0x1p60f + 0x1p53f);
  CHECK(static_cast<float>(convert<BFloat16>(-tie - 1)) == -0x1p60f - 0x1p53f);
  CHECK(static_cast<float>(convert<BFloat16>(std::numeric_limits<std::int64_t>::min())) == -0x1p63f);
  CHECK(static_cast<float>(convert<Half>(std::int64_t{2049})) == 2048.0f);
  CHECK(static_cast<float>(convert<Half>(std::int64_t{2051})) == 2052.0f);
}

TEST_CASE("floating to integer truncates and saturates; NaN becomes 0") {
  CHECK(convert<std::int32_t>(-1.9f) == -1);
  CHECK(convert<std::uint8_t>(255.9f) == 255);
  CHECK(convert<std::uint8_t>(-0.9f) == 0);
  CHECK(convert<std::uint8_t>(-5.0) == 0);
  CHECK(convert<std::int32_t>(3e9f) == std::numeric_limits<std::int32_t>::max());
  CHECK(convert<std::int32_t>(-3e9) == std::numeric_limits<std::int32_t>::min());
  CHECK(convert<std::int64_t>(0x1p63f) == std::numeric_limits<std::int64_t>::max());
  CHECK(convert<std::int64_t>(-HUGE_VAL) == std::numeric_limits<std::int64_t>::min());
  CHECK(convert<std::int64_t>(std::nan("")) == 0);
  CHECK(convert<std::uint8_t>(Half(300.0f)) == 255);
}

TEST_CASE("integers saturate towards narrower ones") {
  CHECK(convert<std::uint8_t>(std::int64_t{256}) == 255);
  CHECK(convert<std::uint8_t>(std::int32_t{-1}) == 0);
  CHECK(convert<std::int32_t>(std::int64_t{1} << 40) == std::numeric_limits<std::int32_t>::max());
  CHECK(convert<std::int64_t>(std::uint8_t{200}) == 200);
}

TEST_CASE("casts between layouts go element by element") {
  const Tensor x = Tensor::from<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 3, 2, 2}, Layout::channels_last);
  const Tensor y = Tensor::empty(x.shape(), {.dtype = DType::i32});
  kernels::cast(x, Out(y));
  CHECK(y.to_vector<float>() == x.to_vector<float>());
  kernels::cast(x.narrow(2, 1, 1), Out(y.narrow(2, 0, 1)));
  CHECK(y.narrow(2, 0, 1).to_vector<float>() == x.narrow(2, 1, 1).to_vector<float>());
}

namespace {

/// The 65,536 encodings of a half type, in order.
template <typename T>
Tensor all_encodings() {
  const Tensor tensor = Tensor::empty({65536}, {.dtype = dtype_of<T>});
  for (unsigned bits = 0; bits < 65536; ++bits) Out(tensor).data<T>()[bits].bits = static_cast<std::uint16_t>(bits);
  return tensor;
}

/// Each number of a half type, what lies halfway to the next one, the floats beside both, and floats of any bits.
template <typename T>
std::vector<float> floats_around() {
  const Tensor encodings = all_encodings<T>();
  std::vector<float> values;
  for (std::int64_t i = 0; i < encodings.numel(); ++i) {
    const float value = encodings.data<T>()[i];
    const float next = encodings.data<T>()[std::min<std::int64_t>(i + 1, 65535)];
    const float middle = value + (next - value) / 2.0f;
    for (const float centre : {value, middle})
      values.insert(values.end(), {centre, std::nextafter(centre, -HUGE_VALF), std::nextafter(centre, HUGE_VALF)});
  }
  const RandomKey key{.seed = 11};
  for (std::uint64_t i = 0; i < 300000; ++i) values.push_back(std::bit_cast<float>(key.bits(i)));
  return values;
}

template <typename T>
void check_every_encoding() {
  const Tensor encodings = all_encodings<T>(), wide = Tensor::empty({65536});
  kernels::cast(encodings, Out(wide));
  int wrong = 0;
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    const float expected = encodings.data<T>()[i];
    // Instructions make signalling NaNs quiet.
    const std::uint32_t quiet = std::isnan(expected) ? 0x400000u : 0u;
    wrong += (std::bit_cast<std::uint32_t>(wide.data<float>()[i]) | quiet) !=
             (std::bit_cast<std::uint32_t>(expected) | quiet);
  }
  CHECK(wrong == 0);

  const std::vector<float> values = floats_around<T>();
  const Tensor source = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  const Tensor narrow = Tensor::empty(source.shape(), {.dtype = dtype_of<T>});
  kernels::cast(source, Out(narrow));
  wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += narrow.data<T>()[i].bits != T(values[i]).bits;
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("fast casts give every encoding of f16 its bits, and floats around each of them", "[half]") {
  check_every_encoding<Half>();
}

TEST_CASE("fast casts give every encoding of bf16 its bits, and floats around each of them", "[half]") {
  check_every_encoding<BFloat16>();
}

TEST_CASE("runs of any length are widened and rounded, and nothing beyond them", "[half]") {
  int wrong = 0;
  for (std::size_t count = 0; count < 70; ++count) {
    const auto length = static_cast<std::int64_t>(count);
    std::vector<float> values(count + 3), back(count + 3, -1.0f);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 20.0f;
    std::vector<Half> halves(count + 3, Half(-1.0f));
    cpu::round_floats(values.data(), length, halves.data());
    cpu::widen(halves.data(), length, back.data());
    for (std::size_t i = 0; i < back.size(); ++i) {
      const float expected = i < count ? values[i] : -1.0f;
      wrong += back[i] != expected || static_cast<float>(halves[i]) != expected;
    }
  }
  CHECK(wrong == 0);
}
