// Parts of sums that blocks of a launch have left, added in order by later blocks of it.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels {

/// Of all elements of a dense tensor: parts[count, size], f32, whose sums are rounded once. Kernels take it by value.
template <typename T>
struct PartsOfElements {
  const float* parts;
  T* sums;
  std::int64_t count, size;
  bool in_fours;  // the elements can be taken so

  /// `of_parts`: [count, ...], with as many elements to a part as `to` has.
  PartsOfElements(const Out& to, const Tensor& of_parts)
      : parts(of_parts.data<float>()),
        sums(to.data<T>()),
        count(of_parts.size(0)),
        size(to.numel()),
        in_fours(size % 4 == 0 && device::aligned_for_vectors(parts, sums)) {}

  /// How many blocks share the elements out.
  unsigned blocks(std::int64_t threads) const {
    constexpr std::int64_t kMost = 132 * 4;  // as many as may find room beside the last of those that sum up
    const std::int64_t of_block = in_fours ? 4 * threads : threads;
    return static_cast<unsigned>(std::clamp<std::int64_t>((size + of_block - 1) / of_block, 1, kMost));
  }

  /// The share of one of `all` blocks.
  __device__ void add(unsigned block, unsigned all) const {
    const std::int64_t thread = std::int64_t{block} * blockDim.x + threadIdx.x;
    const std::int64_t threads = std::int64_t{all} * blockDim.x;
    in_fours ? add_vectors<4>(thread, threads) : add_vectors<1>(thread, threads);
  }

 private:
  template <int kWidth>
  __device__ void add_vectors(std::int64_t thread, std::int64_t threads) const {
    for (std::int64_t at = thread * kWidth; at < size; at += threads * kWidth) {
      device::Vector<float, kWidth> sum = {};
      for (std::int64_t part = 0; part < count; ++part) {
        const auto more = device::load_vector<kWidth>(parts + part * size + at);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] += more[i];
      }
      device::Vector<T, kWidth> rounded;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) rounded[i] = device::from_float<T>(sum[i]);
      device::store_vector(sums + at, rounded);
    }
  }
};

}  // namespace tandem::kernels
