// Copies between any two strided tensors on one device.
#include "core/cuda/copy.h"
#include "core/cuda/current_stream.h"
#include "core/cuda/word_loop.cuh"

namespace tandem::cuda {

namespace {

/// One word per thread and step, in the order of the destination: writes are coalesced.
template <typename Word, typename Index>
__global__ void copy_words(Word* to, const Word* from, DeviceLoop<Index> loop) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < loop.count; i += step) {
    const WordPlace<Index> place(loop, i);
    to[place.to] = from[place.from];
  }
}

}  // namespace

void strided_copy(const Tensor& to, const Tensor& from) {
  const cudaStream_t stream = current_stream(to);
  const WordLoop loop =
      make_word_loop(to.shape(), to.strides(), from.strides(), to.raw_data(), from.raw_data(), size_of(to.dtype()));
  dispatch_word_loop(loop, [&](auto word, const auto& device_loop) {
    using Word = typename decltype(word)::type;
    using Index = std::decay_t<decltype(device_loop.count)>;
    launch(copy_words<Word, Index>, {word_blocks(loop.count()), kWordThreads}, stream,
           static_cast<Word*>(to.raw_data()), static_cast<const Word*>(from.raw_data()), device_loop);
  });
}

}  // namespace tandem::cuda
