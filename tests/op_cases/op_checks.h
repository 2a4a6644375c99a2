// What the suites of the op table share: moving inputs about, and comparing with bounds.
#pragma once

#include "tests/op_cases/op_case.h"

#include <fmt/format.h>

#include <cmath>

namespace tandem::test {

/// The same leaves on a device.
std::vector<Tensor> leaves_on(Device device, const std::vector<Tensor>& inputs);

/// True if the case is run in this dtype on a GPU, where there is no f64.
bool runs_on_gpu(const OpCase& op, DType dtype);

inline constexpr DType kGpuDTypes[] = {DType::f32, DType::f16, DType::bf16};

/// Names the first element of `actual` that is farther from `expected` than bound(i), or nothing.
std::string first_outside(const Tensor& actual, const Tensor& expected,
                          const std::function<double(std::size_t)>& bound);

std::string first_difference(const Tensor& actual, const Tensor& expected);

/// How far each element of an output of `dtype` may be from the f64 reference: output rounding of the dtype, plus the
/// roundings of `terms` additions in its compute type (f32 for the half types).
std::vector<double> forward_bounds(const OpCall& call, DType dtype, const std::vector<Tensor>& f64_inputs);

/// Names the first element outside of forward_bounds.
std::string outside_forward_bound(const OpCall& call, const Tensor& output, const std::vector<Tensor>& f64_inputs);

/// How far an element of a gradient may be from the exact one where values of `dtype` are kept: sums of `terms` in f32,
/// and the roundings of what is kept. `size` is that of what is summed up.
double gradient_bound(const OpCall& call, DType dtype, double size);

/// A tensor on the CPU of the shape and dtype of another.
Tensor random_like(const Tensor& tensor, bool integers, std::uint32_t seed);

/// Gradients of `inputs` after backward from `output`; zeros where none arrived, undefined where none is wanted.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& inputs, const Tensor& output, const Tensor& grad_output);

std::vector<Tensor> f64_leaves(const std::vector<Tensor>& inputs);

double norm(const std::vector<double>& values);
double dot(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tandem::test
