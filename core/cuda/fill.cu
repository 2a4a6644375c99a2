// Filling any strided tensor with one value.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/cuda/word_loop.cuh"

#include <array>
#include <cstring>

namespace tandem::cuda {

namespace {

template <typename Word, typename Index>
__global__ void fill_words(Word* to, Word value, DeviceLoop<Index> loop) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < loop.count; i += step) {
    to[WordPlace<Index>(loop, i).to] = value;
  }
}

/// The bytes of one element, repeated over the widest word.
using Pattern = std::array<std::byte, sizeof(Word16)>;

Pattern pattern_of(DType dtype, double value) {
  Pattern pattern{};
  dispatch_all(dtype, "fill", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T element = static_cast<T>(static_cast<compute_t<T>>(value));
    for (std::size_t at = 0; at < pattern.size(); at += sizeof(T))
      std::memcpy(pattern.data() + at, &element, sizeof(T));
  });
  return pattern;
}

}  // namespace

void fill(const Out& out, double value) {
  const Pattern pattern = pattern_of(out.dtype(), value);
  const std::int64_t bytes = size_of(out.dtype());
  const bool one_byte = std::all_of(pattern.begin(), pattern.end(), [&](std::byte b) { return b == pattern[0]; });
  if (one_byte && out.is_dense()) {
    return set_bytes(out.device(), out.raw_data(), std::to_integer<int>(pattern[0]), out.numel() * bytes);
  }
  Shape shape = out.shape();
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (out.stride(dim) == 0) shape[dim] = 1;  // elements that are the same memory are written once
  }
  const cudaStream_t stream = current_stream(out);
  const WordLoop loop = make_word_loop(shape, out.strides(), out.strides(), out.raw_data(), out.raw_data(), bytes);
  dispatch_word_loop(loop, [&](auto word, const auto& device_loop) {
    using Word = typename decltype(word)::type;
    using Index = std::decay_t<decltype(device_loop.count)>;
    Word repeated;
    std::memcpy(&repeated, pattern.data(), sizeof(Word));
    launch(fill_words<Word, Index>, {word_blocks(loop.count()), kWordThreads}, stream,
           static_cast<Word*>(out.raw_data()), repeated, device_loop);
  });
}

}  // namespace tandem::cuda
