// out = f(a) and out = f(a, b) in CUDA: 16 bytes per access where tensors are dense, else element by element.
#pragma once

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/out.h"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/nest_offsets.h"
#include "tandem/kernels/device/vector.h"

#include <algorithm>
#include <utility>

namespace tandem::kernels::cuda {

/// A tensor as these kernels take it.
template <typename T>
struct Operand {
  explicit Operand(const Tensor& tensor) : data(tensor.data<std::remove_const_t<T>>()), strides(tensor.strides()) {}
  explicit Operand(const Out& out) : data(out.data<T>()), strides(out.strides()) {}

  T* data;
  Strides strides;
};

namespace {

template <typename To, int kWidth, typename Function, typename... In>
__device__ device::Vector<To, kWidth> map_vector(const Function& function, const device::Vector<In, kWidth>&... in) {
  device::Vector<To, kWidth> result;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) result[i] = function(in[i]...);
  return result;
}

/// kWidth elements per thread and step. The few at the end that fill no vector go one to a thread.
template <int kWidth, typename Function, typename To, typename... In>
__global__ void map_dense(Function function, std::int64_t count, To* out, const In*... in) {
  const std::int64_t vectors = count / kWidth;
  for (std::int64_t i = device::thread_in_grid(); i < vectors; i += device::threads_in_grid()) {
    device::store_vector(out + i * kWidth,
                         map_vector<To, kWidth>(function, device::load_vector<kWidth>(in + i * kWidth)...));
  }
  const std::int64_t last = vectors * kWidth + device::thread_in_grid();
  if (last < count) out[last] = function(in[last]...);
}

template <std::size_t... kIn, typename Function, typename To, typename... In>
__device__ void map_element(std::index_sequence<kIn...>, const Function& function,
                            const device::Offsets<1 + sizeof...(In)>& at, To* out, const In*... in) {
  out[at.offset[0]] = function(in[at.offset[1 + kIn]]...);
}

/// One element per thread and step, in the memory order of `out`.
template <typename Function, typename To, typename... In>
__global__ void map_strided(Function function, device::Nest<1 + sizeof...(In)> nest, To* out, const In*... in) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < nest.count; i += step) {
    map_element(std::index_sequence_for<In...>{}, function, device::offsets_of(nest, i), out, in...);
  }
}

template <std::size_t... kIn, typename Function, typename To, typename... In>
void launch_strided(std::index_sequence<kIn...>, const device::HostNest<1 + sizeof...(In)>& nest, cudaStream_t stream,
                    const Function& function, To* out, In*... in) {
  nest.for_each_part([&](const auto& part, const auto& starts) {
    const unsigned blocks = device::blocks_for(part.count, device::kThreadsPerBlock);
    launch(map_strided<Function, To, In...>, {blocks, device::kThreadsPerBlock}, stream, function, part,
           out + starts[0], (in + starts[1 + kIn])...);
  });
}

}  // namespace

/// out[i] = function(in[i]...) for tensors of one shape, on elements as they are stored. `out` may be the same elements
/// as an input. `strided` is the same function, for operands that are not dense.
template <typename Function, typename Strided, typename To, typename... In>
void map_elements_by(const Shape& shape, cudaStream_t stream, const Function& function, const Strided& strided,
                     const Operand<To>& out, const Operand<In>&... in) {
  const std::int64_t count = element_count(shape);
  if (count == 0) return;
  const device::HostNest<1 + sizeof...(In)> nest(shape, {out.strides, in.strides...});
  if (!nest.is_dense() || !device::aligned_for_vectors(out.data, in.data...)) {
    return launch_strided(std::index_sequence_for<In...>{}, nest, stream, strided, out.data, in.data...);
  }
  // The widest of the types in 16 bytes, the others in fewer.
  constexpr int kWidth = std::min({device::kVectorWidth<To>, device::kVectorWidth<In>...});
  const unsigned blocks = device::blocks_for(count, std::int64_t{device::kThreadsPerBlock} * kWidth);
  launch(map_dense<kWidth, Function, To, In...>, {blocks, device::kThreadsPerBlock}, stream, function, count, out.data,
         in.data...);
}

/// The same with one function for both.
template <typename Function, typename To, typename... In>
void map_elements(const Shape& shape, cudaStream_t stream, const Function& function, const Operand<To>& out,
                  const Operand<In>&... in) {
  map_elements_by(shape, stream, function, function, out, in...);
}

/// A function of floats as one of elements stored as T.
template <typename T, typename Function>
struct OnFloats {
  Function function;

  template <typename... In>
  __device__ T operator()(const In&... in) const {
    return device::from_float<T>(function(device::to_float(in)...));
  }
};

/// out = function(in...), computed in float: what element-wise ops are made of. f32, f16 and bf16. `strided` is the
/// same function, for operands that are not dense: one that many ops share saves kernels.
template <typename Function, typename Strided, typename... Tensors>
void map_by(std::string_view op, const Function& function, const Strided& strided, const Out& out,
            const Tensors&... in) {
  device::dispatch(out.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements_by(out.shape(), tandem::cuda::current_stream(out), OnFloats<T, Function>{function},
                    OnFloats<T, Strided>{strided}, Operand<T>(out), Operand<const T>(ordered_input(in, out))...);
  });
}

/// The same with one function for both.
template <typename Function, typename... Tensors>
void map(std::string_view op, const Function& function, const Out& out, const Tensors&... in) {
  map_by(op, function, function, out, in...);
}

}  // namespace tandem::kernels::cuda
