// What the optimizer kernels share: a parameter, its gradient, its master and its state, read, updated and written
// once.
#pragma once

#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/multi_tensor.cuh"
#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/kernels/optimizer/tensor_list.h"

namespace tandem::kernels::cuda {

/// The word that a kernel asks whether to skip its work; null where there is none.
inline const std::int32_t* skip_pointer(const Tensor& skip) {
  return skip.defined() ? skip.data<std::int32_t>() : nullptr;
}

/// The same answer for all threads of a launch.
__device__ inline bool is_skipped(const std::int32_t* skip) { return skip != nullptr && *skip != 0; }

/// The factors of a step as a kernel gets them: where they are on the device, or, with null there, by value; and the
/// loss scale that gradients have, or null.
struct FactorsView {
  const StepFactors* on_device;
  StepFactors given;
  const LossScaleState* loss_scale;
};

inline FactorsView factors_view(const Tensor& control, const StepFactors& given, const Tensor& loss_scale = {}) {
  return {control.defined() ? reinterpret_cast<const StepFactors*>(control.data<double>()) : nullptr, given,
          loss_scale.defined() ? static_cast<const LossScaleState*>(loss_scale.raw_data()) : nullptr};
}

/// The same answer for all threads of a launch.
__device__ inline StepFactors factors_of(const FactorsView& factors) {
  StepFactors result = factors.on_device != nullptr ? *factors.on_device : factors.given;
  if (factors.loss_scale != nullptr) result.gradient_factor *= factors.loss_scale->inverse;
  return result;
}

/// Where the elements of one item are. State that is absent is null: it reads as 0 and is not written. A master that is
/// absent is null, too.
template <int kStates>
struct UpdateEntry {
  void* parameter;
  const void* gradient;
  float* master;
  float* states[kStates];
  std::int64_t count;
  DType dtype;
  bool wide_gradient;  // f32, whatever the parameter's dtype
  bool vectors;        // all addresses are multiples of 16
  bool load_states;    // false: they hold nothing yet and read as 0

  friend bool operator==(const UpdateEntry&, const UpdateEntry&) = default;
};

template <int kStates>
UpdateEntry<kStates> make_update_entry(std::string_view op, const UpdateTensors& item, const Out (&states)[kStates]) {
  const Out& parameter = item.parameter;
  require_kernel_dtype(op, parameter);
  UpdateEntry<kStates> entry{};
  entry.parameter = parameter.raw_data();
  entry.gradient = item.gradient.raw_data();
  entry.master = item.master.defined() ? item.master.data<float>() : nullptr;
  entry.count = parameter.numel();
  entry.dtype = parameter.dtype();
  entry.wide_gradient = item.gradient.dtype() == DType::f32;
  entry.load_states = true;
  entry.vectors = device::aligned_for_vectors(entry.parameter, entry.gradient, entry.master);
  for (int s = 0; s < kStates; ++s) {
    const Out& state = states[s];
    entry.states[s] = state.defined() ? state.data<float>() : nullptr;
    entry.vectors = entry.vectors && device::aligned_for_vectors(entry.states[s]);
  }
  return entry;
}

/// kWidth elements as floats.
template <int kWidth, typename T>
__device__ device::Vector<float, kWidth> load_floats(const T* from) {
  const auto values = device::load_vector<kWidth>(from);
  device::Vector<float, kWidth> result;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) result[k] = device::to_float(values[k]);
  return result;
}

/// Parameters of type T with gradients of type G.
template <typename T, typename G, int kStates, typename Update>
__device__ void update_typed_chunk(const UpdateEntry<kStates>& entry, const Chunk& chunk, Update&& update) {
  T* const parameter = static_cast<T*>(entry.parameter);
  const G* const gradient = static_cast<const G*>(entry.gradient);
  for_each_of_chunk(chunk, entry.vectors, [&](std::int64_t i, auto width) {
    constexpr int kWidth = width;
    auto values = entry.master != nullptr ? load_floats<kWidth>(entry.master + i) : load_floats<kWidth>(parameter + i);
    const auto gradients = load_floats<kWidth>(gradient + i);
    device::Vector<float, kWidth> states[kStates];
#pragma unroll
    for (int s = 0; s < kStates; ++s) {
      const bool load = entry.load_states && entry.states[s] != nullptr;
      states[s] = load ? device::load_vector<kWidth>(entry.states[s] + i) : device::Vector<float, kWidth>{};
    }
    device::Vector<T, kWidth> rounded;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      float of_element[kStates];
#pragma unroll
      for (int s = 0; s < kStates; ++s) of_element[s] = states[s][k];
      update(values[k], gradients[k], of_element);
      rounded[k] = device::from_float<T>(values[k]);
#pragma unroll
      for (int s = 0; s < kStates; ++s) states[s][k] = of_element[s];
    }
    device::store_vector(parameter + i, rounded);
    if (entry.master != nullptr) device::store_vector(entry.master + i, values);
#pragma unroll
    for (int s = 0; s < kStates; ++s) {
      if (entry.states[s] != nullptr) device::store_vector(entry.states[s] + i, states[s]);
    }
  });
}

/// Calls update(parameter, gradient, states) with references to floats for every element of the block's chunk. What it
/// leaves in `parameter` is stored in the parameter, rounded, and in its master.
template <int kStates, typename Update>
__device__ void update_chunk(const UpdateEntry<kStates>& entry, const Chunk& chunk, Update&& update) {
  visit_dtype(entry.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (entry.wide_gradient) return update_typed_chunk<T, float>(entry, chunk, update);
    update_typed_chunk<T, T>(entry, chunk, update);
  });
}

}  // namespace tandem::kernels::cuda
