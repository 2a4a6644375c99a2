// What the tests of topk share: rows with ties, infinities and NaN, and the sizes to try.
#pragma once

#include "tandem/core/random.h"
#include "tandem/kernels/reduce/topk.h"
#include "tandem/kernels/reduce/topk_implementations.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>
#include <vector>

namespace tandem::test {

/// Whole numbers, many of them equal, and some that are none, in any floating dtype.
inline Tensor ranked_rows(std::int64_t rows, std::int64_t columns, DType dtype, std::uint32_t seed) {
  const RandomKey key{.seed = seed, .stream = RandomStream::test};
  const double others[] = {std::nan(""),
                           -std::nan(""),
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           -0.0,
                           0.0};
  return dispatch_floating(dtype, "ranked_rows", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const auto index = static_cast<std::uint64_t>(i);
      const std::uint32_t kind = key.below(2 * index, 40);
      const double value = kind < 6 ? others[kind] : static_cast<double>(key.below(2 * index + 1, 200)) - 100.0;
      values.push_back(static_cast<T>(static_cast<compute_t<T>>(value)));
    }
    return Tensor::from(values, {rows, columns});
  });
}

struct TopkSize {
  std::int64_t rows, columns, k;
};

inline std::vector<kernels::TopkOptions> topk_options() {
  return {{.largest = true, .sorted = true},
          {.largest = true, .sorted = false},
          {.largest = false, .sorted = true},
          {.largest = false, .sorted = false}};
}

/// What topk() computes on the device of x: indices, then values, on the CPU.
inline std::vector<Tensor> topk_of(const Tensor& x, std::int64_t k, const kernels::TopkOptions& options) {
  const Tensor values = Tensor::full({x.size(0), k}, -7.0, x.options());
  const Tensor indices = Tensor::full({x.size(0), k}, -1.0, {.dtype = DType::i64, .device = x.device()});
  const Tensor alone = indices.clone();
  kernels::topk(x, options, Out(values), Out(indices));
  kernels::topk(x, options, {}, Out(alone));
  CHECK(alone.to_vector<std::int64_t>() == indices.to_vector<std::int64_t>());
  return {indices.to(Device{}), values.to(Device{})};
}

/// The same by the reference.
inline std::vector<Tensor> reference_topk_of(const Tensor& x, std::int64_t k, const kernels::TopkOptions& options) {
  const Tensor values = Tensor::empty({x.size(0), k}, x.options());
  const Tensor indices = Tensor::empty({x.size(0), k}, {.dtype = DType::i64});
  kernels::reference::topk(x, options, Out(values), Out(indices));
  return {indices, values};
}

/// Names the first element that differs in its bits, or nothing.
inline std::string first_other_bits(const Tensor& actual, const Tensor& expected) {
  const auto bytes = [](const Tensor& x) { return static_cast<const unsigned char*>(x.raw_data()); };
  const std::int64_t size = size_of(expected.dtype());
  for (std::int64_t i = 0; i < expected.numel() * size; ++i)
    if (bytes(actual)[i] != bytes(expected)[i]) return fmt::format("element {} of {}", i / size, describe(expected));
  return {};
}

}  // namespace tandem::test
