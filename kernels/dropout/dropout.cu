// Dropout on CUDA: each thread draws the Philox blocks of its own elements.
#include "tandem/kernels/dropout/dropout_implementations.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/nest_offsets.h"
#include "tandem/kernels/device/vector.h"

namespace tandem::kernels::cuda {

namespace {

/// Keeps or drops one element.
struct Gate {
  std::uint32_t threshold;
  float scale;

  template <typename T>
  __device__ T operator()(T x, std::uint32_t bits) const {
    return device::from_float<T>(bits >> 8 >= threshold ? device::to_float(x) * scale : 0.0f);
  }
};

/// The numbers of a launch: of the key, with what is on the device added to its step.
struct Draws {
  RandomKey key;
  const std::int64_t* step;  // null: 0

  /// The same key for all threads of a launch.
  __device__ RandomKey read() const {
    RandomKey whole = key;
    if (step != nullptr) whole.step += static_cast<std::uint32_t>(*step);
    return whole;
  }
};

/// For tensors whose elements lie in the order in which dropout counts them: 16 bytes, which is one or two Philox
/// blocks, per thread and step.
template <typename T>
__global__ void drop_dense(const T* x, T* y, std::int64_t count, Draws draws, Gate gate) {
  const RandomKey key = draws.read();
  constexpr int kWidth = device::kVectorWidth<T>;
  const std::int64_t vectors = count / kWidth;
  for (std::int64_t i = device::thread_in_grid(); i < vectors; i += device::threads_in_grid()) {
    auto values = device::load_vector<kWidth>(x + i * kWidth);
#pragma unroll
    for (int j = 0; j < kWidth; j += 4) {
      const std::array<std::uint32_t, 4> words = key.block(static_cast<std::uint64_t>((i * kWidth + j) / 4));
#pragma unroll
      for (int k = 0; k < 4; ++k) values[j + k] = gate(values[j + k], words[static_cast<std::size_t>(k)]);
    }
    device::store_vector(y + i * kWidth, values);
  }
  const std::int64_t last = vectors * kWidth + device::thread_in_grid();
  if (last < count) y[last] = gate(x[last], key.bits(static_cast<std::uint64_t>(last)));
}

/// One element per thread and step. `nest` has the operands y, x and the number by which dropout counts the element,
/// which starts from `first`.
template <typename T>
__global__ void drop_strided(const T* x, T* y, device::Nest<3> nest, std::int64_t first, Draws draws, Gate gate) {
  const RandomKey key = draws.read();
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < nest.count; i += step) {
    const auto at = device::offsets_of(nest, i);
    y[at.offset[0]] = gate(x[at.offset[1]], key.bits(static_cast<std::uint64_t>(first + at.offset[2])));
  }
}

}  // namespace

void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Out& y, const Tensor& step) {
  using device::kThreadsPerBlock;
  const Gate gate{kernels::detail::dropout_threshold(p), static_cast<float>(p < 1.0 ? 1.0 / (1.0 - p) : 0.0)};
  const Draws draws{key, step.defined() ? step.data<std::int64_t>() : nullptr};
  const Tensor in = ordered_input(x, y);
  const device::HostNest<3> nest(x.shape(),
                                 {y.strides(), in.strides(), dense_strides(x.shape(), Layout::channels_last)});
  device::dispatch(x.dtype(), "dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const cudaStream_t stream = tandem::cuda::current_stream(y);
    const T* const from = in.data<T>();
    T* const to = y.data<T>();
    if (nest.is_dense() && device::aligned_for_vectors(from, to)) {
      const unsigned blocks = device::blocks_for(x.numel(), kThreadsPerBlock * device::kVectorWidth<T>);
      return launch(drop_dense<T>, {blocks, kThreadsPerBlock}, stream, from, to, x.numel(), draws, gate);
    }
    nest.for_each_part([&](const device::Nest<3>& part, const auto& starts) {
      launch(drop_strided<T>, {device::blocks_for(part.count, kThreadsPerBlock), kThreadsPerBlock}, stream,
             from + starts[1], to + starts[0], part, starts[2], draws, gate);
    });
  });
}

}  // namespace tandem::kernels::cuda
