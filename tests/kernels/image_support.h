// What the tests of pooling, normalisation, loss, dropout and optimizer kernels share.
#pragma once

#include "tandem/core/parallel.h"
#include "tandem/core/random.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/cast/cast_implementations.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <cstring>
#include <string>

namespace tandem::test {

/// scale * N(0, 1) + shift, images in channels_last; a function of the seed.
inline Tensor random_images(const Shape& shape, std::uint32_t seed, float scale = 1.0f, float shift = 0.0f) {
  const Tensor tensor = Tensor::empty(shape, {.layout = Layout::channels_last});
  const RandomKey key{.seed = seed};
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    Out(tensor).data<float>()[i] = scale * key.normal(static_cast<std::uint64_t>(i)) + shift;
  }
  return tensor;
}

inline Tensor poisoned_like(const Tensor& tensor) {
  const Tensor result = empty_like(tensor);
  result.fill(std::nan(""));
  return result;
}

/// The same values in another floating dtype, same strides.
inline Tensor to_f64(const Tensor& tensor) {
  return Tensor::from(tensor.to_vector<double>(), tensor.shape(), Layout::channels_last);
}

/// The same values in another dtype, channels_last, rounded once.
inline Tensor in_dtype(const Tensor& tensor, DType dtype) {
  const Tensor result = Tensor::empty(tensor.shape(), {.dtype = dtype, .layout = Layout::channels_last});
  kernels::reference::cast(tensor, Out(result));
  return result;
}

/// True if both hold the same bits in the same order of memory; both dense.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && a.strides() == b.strides() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

/// Uses `threads` threads while it lives.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : previous_(num_threads()) { set_num_threads(threads); }
  ~ThreadScope() { set_num_threads(previous_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int previous_;
};

}  // namespace tandem::test
