// What the optimizer kernels share: a parameter, its gradient and its state, read, updated and written once.
#pragma once

#include "kernels/optimizer/multi_tensor.cuh"
#include "kernels/optimizer/tensor_list.h"

namespace tandem::kernels::cuda {

/// Where the elements of one item are. State that is absent is null: it reads as 0 and is not written.
template <int kStates>
struct UpdateEntry {
  void* parameter;
  const void* gradient;
  float* states[kStates];
  std::int64_t count;
  DType dtype;
  bool vectors;      // all addresses are multiples of 16
  bool load_states;  // false: they hold nothing yet and read as 0
};

template <int kStates>
UpdateEntry<kStates> make_update_entry(std::string_view op, const Tensor& parameter, const Tensor& gradient,
                                       const Tensor (&states)[kStates]) {
  require_kernel_dtype(op, parameter);
  UpdateEntry<kStates> entry{
      parameter.raw_data(), gradient.raw_data(), {}, parameter.numel(), parameter.dtype(), true, true};
  entry.vectors = device::aligned_for_vectors(entry.parameter, entry.gradient);
  for (int s = 0; s < kStates; ++s) {
    const Tensor& state = states[s];
    entry.states[s] = state.defined() ? state.data<float>() : nullptr;
    entry.vectors = entry.vectors && device::aligned_for_vectors(entry.states[s]);
  }
  return entry;
}

/// Calls update(parameter, gradient, states) with references to floats for every element of the block's chunk.
template <int kStates, typename Update>
__device__ void update_chunk(const UpdateEntry<kStates>& entry, const Chunk& chunk, Update&& update) {
  visit_dtype(entry.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const parameter = static_cast<T*>(entry.parameter);
    const T* const gradient = static_cast<const T*>(entry.gradient);
    for_each_of_chunk(chunk, entry.vectors, [&](std::int64_t i, auto width) {
      constexpr int kWidth = width;
      auto values = device::load_vector<kWidth>(parameter + i);
      const auto gradients = device::load_vector<kWidth>(gradient + i);
      device::Vector<float, kWidth> states[kStates];
#pragma unroll
      for (int s = 0; s < kStates; ++s) {
        const bool load = entry.load_states && entry.states[s] != nullptr;
        states[s] = load ? device::load_vector<kWidth>(entry.states[s] + i) : device::Vector<float, kWidth>{};
      }
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        float value = device::to_float(values[k]);
        float of_element[kStates];
#pragma unroll
        for (int s = 0; s < kStates; ++s) of_element[s] = states[s][k];
        update(value, device::to_float(gradients[k]), of_element);
        values[k] = device::from_float<T>(value);
#pragma unroll
        for (int s = 0; s < kStates; ++s) states[s][k] = of_element[s];
      }
      device::store_vector(parameter + i, values);
#pragma unroll
      for (int s = 0; s < kStates; ++s) {
        if (entry.states[s] != nullptr) device::store_vector(entry.states[s] + i, states[s]);
      }
    });
  });
}

}  // namespace tandem::kernels::cuda
