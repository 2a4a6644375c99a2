// The reduction of all ranks' elements at once, against plain loops in the dtype that is promised.
#include "tandem/comm/backends/flat_math.h"
#include "tandem/comm/backends/native/rank_reduction.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
using Sum = std::conditional_t<kIsHalf<T>, float, T>;

/// Some elements at any address that such elements may have, with one more element behind that must stay.
template <typename T>
struct Elements {
  Elements(std::int64_t length, std::int64_t shift)
      : count(length), memory(static_cast<std::size_t>(length + shift + 1)), begin(memory.data() + shift) {}
  std::byte* bytes() { return reinterpret_cast<std::byte*>(begin); }

  std::int64_t count;
  std::vector<T> memory;
  T* begin;
};

template <typename S>
S combine(S a, S b, ReduceOp op) {
  switch (op) {
    case ReduceOp::product:
      return static_cast<S>(a * b);
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return a < b ? b : a;
    default:
      return static_cast<S>(a + b);
  }
}

template <typename T>
void check_reduction(int ranks, std::int64_t count, ReduceOp op) {
  std::mt19937 random(static_cast<unsigned>(ranks * 1000 + count));
  std::vector<Elements<T>> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    Elements<T>& mine = inputs.emplace_back(count, rank % 3);
    for (std::int64_t i = 0; i <= count; ++i)
      mine.begin[i] =
          T(static_cast<float>(static_cast<int>(random() % 2000) - 1000) / (std::is_integral_v<T> ? 1 : 64));
  }
  std::vector<T> expected;
  for (std::int64_t i = 0; i < count; ++i) {
    auto sum = static_cast<Sum<T>>(inputs[0].begin[i]);
    for (int rank = 1; rank < ranks; ++rank)
      sum = combine(sum, static_cast<Sum<T>>(inputs[static_cast<std::size_t>(rank)].begin[i]), op);
    if (op == ReduceOp::average) sum = sum / static_cast<Sum<T>>(ranks);
    expected.push_back(static_cast<T>(sum));
  }
  // To a place of its own, and over the last rank's input.
  Elements<T> apart(count, 1);
  const T guard = T(77.0f);
  apart.begin[count] = guard;
  std::vector<const std::byte*> from;
  for (Elements<T>& each : inputs) from.push_back(each.bytes());
  std::vector<std::byte*> to{apart.bytes(), inputs.back().bytes()};
  reduce_ranks(from, to, count, dtype_of<T>, op);
  const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
  INFO(name_of(op) << " " << tandem::name_of(dtype_of<T>) << "[" << count << "] of " << ranks);
  CHECK((count == 0 || std::memcmp(apart.begin, expected.data(), bytes) == 0));
  CHECK((count == 0 || std::memcmp(inputs.back().begin, expected.data(), bytes) == 0));
  CHECK(std::memcmp(&apart.begin[count], &guard, sizeof(T)) == 0);
}

}  // namespace

TEMPLATE_TEST_CASE("elements of all ranks are combined in their order and rounded once", "", double, float, Half,
                   BFloat16, std::int64_t, std::int32_t) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::average, ReduceOp::min, ReduceOp::max}) {
    if (op == ReduceOp::average && std::is_integral_v<TestType>) continue;
    for (const int ranks : {1, 2, 3, 5}) {
      if (op == ReduceOp::product && std::is_integral_v<TestType> && ranks > 3) continue;  // would overflow
      for (const std::int64_t count : {0, 1, 7, 511, 1024, 2049}) check_reduction<TestType>(ranks, count, op);
    }
  }
}

TEST_CASE("NaN of any rank passes min and max") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    for (std::size_t odd = 0; odd < 3; ++odd) {
      float values[3] = {1.0f, 2.0f, 3.0f}, result = 0.0f;
      values[odd] = kNan;
      std::vector<const std::byte*> from;
      for (const float& value : values) from.push_back(reinterpret_cast<const std::byte*>(&value));
      std::vector<std::byte*> to{reinterpret_cast<std::byte*>(&result)};
      reduce_ranks(from, to, 1, DType::f32, op);
      CHECK(std::isnan(result));
    }
  }
}

TEMPLATE_TEST_CASE("sums and products of whole numbers wrap around", "", std::int64_t, std::int32_t) {
  using Limits = std::numeric_limits<TestType>;
  const TestType values[2] = {Limits::max(), 5};  // 2^k - 1 for n = k + 1 bits
  const std::byte* from[] = {reinterpret_cast<const std::byte*>(&values[0]),
                             reinterpret_cast<const std::byte*>(&values[1])};
  const auto check = [&](ReduceOp op, TestType expected) {
    TestType result = 0, into = values[0];
    std::byte* to[] = {reinterpret_cast<std::byte*>(&result)};
    reduce_ranks(from, to, 1, dtype_of<TestType>, op);
    CHECK(result == expected);
    reduce_into(&into, &values[1], 1, dtype_of<TestType>, op);
    CHECK(into == expected);
  };
  check(ReduceOp::sum, Limits::min() + 4);      // 2^k + 4
  check(ReduceOp::product, Limits::max() - 4);  // 5 * 2^k - 5 = 4 * 2^k + 2^k - 5
}

TEST_CASE("bytes have no reduction") {
  const std::byte one[1] = {};
  std::byte other[1] = {};
  const std::byte* from[] = {one};
  std::byte* to[] = {other};
  CHECK_THAT(error_of([&] { reduce_ranks(from, to, 1, DType::u8, ReduceOp::sum); }), ContainsText("u8"));
}
