// Many tensors as one range of elements: what lets an optimizer step be a single pass over all parameters.
#pragma once

#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/optimizer/step_factors.h"

#include <span>
#include <string_view>
#include <vector>

namespace tandem::kernels {

/// Throws Error unless `tensor` has the shape, the strides and the device of `model` and holds `dtype`; `model` must be
/// dense.
void require_alike(std::string_view op, std::string_view what, const Tensor& tensor, const Tensor& model, DType dtype);

/// What every optimizer kernel updates. All dense, of equal strides, and on one device.
struct UpdateTensors {
  Out parameter;
  Tensor gradient;  // of the parameter's dtype, or f32
  Out master;       // f32, for half parameters that have one: the parameter is its rounded copy
};

/// Throws Error unless the three go together.
void check_update(std::string_view op, const UpdateTensors& item);

/// Throws Error unless `master`, where there is one, goes with a half parameter.
void check_master(std::string_view op, const Tensor& parameter, const Tensor& master);

/// Throws Error unless `skip`, an optimizer's word on the device that says whether to do nothing, is i32 with rank 0 on
/// `device`, or undefined.
void check_skip(std::string_view op, const Tensor& skip, Device device);

/// Throws Error unless `control`, a step's factors in the device's memory, is f64[kStepFactors], dense and on `device`,
/// or undefined.
void check_control(std::string_view op, const Tensor& control, Device device);

/// Those in the memory of the CPU where there are some, else the given ones; of gradients without that loss scale.
StepFactors factors_on_cpu(const Tensor& control, const StepFactors& given, const Tensor& loss_scale = {});

/// Whether the word says so; on the CPU.
inline bool is_skipped(const Tensor& skip) { return skip.defined() && *skip.data<std::int32_t>() != 0; }

/// The number of elements of each. Throws Error unless all are dense, of a floating dtype and on one device.
std::vector<std::int64_t> dense_sizes(std::string_view op, std::span<const Tensor> tensors);

/// dtype of an optimizer's state for parameters of this dtype: f64 for f64, else f32.
constexpr DType optimizer_state_dtype(DType parameter_dtype) {
  return parameter_dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// Calls body(item, begin, end) for parts that together cover elements [0, sizes[item]) of every item; threads share
/// out the concatenation of all items evenly.
template <typename Body>
void for_each_part(const std::vector<std::int64_t>& sizes, Body&& body) {
  constexpr std::int64_t kGrain = 1 << 14;
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  parallel_for(total, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t start = 0;
    for (std::size_t item = 0; item < sizes.size() && start < end; start += sizes[item++]) {
      const std::int64_t from = std::max(begin - start, std::int64_t{0}), to = std::min(end - start, sizes[item]);
      if (from < to) body(item, from, to);
    }
  });
}

}  // namespace tandem::kernels
