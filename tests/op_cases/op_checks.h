// What the suites of the op table share: walking the table, and comparing with bounds.
#pragma once

#include "tests/op_cases/op_case.h"
#include "tests/support/catch.h"

#include <fmt/format.h>

#include <cmath>

namespace tandem::test {

/// Calls `test(op, call, shape)` for every op (each in its own section), shape and variant.
template <typename Test>
void for_each_call(Test&& test) {
  for (const OpCase& op : op_table()) {
    DYNAMIC_SECTION(op.name) {
      std::size_t calls = 0;
      for (const Shape& shape : nasty_shapes()) {
        for (const OpCall& call : op.calls(shape)) {
          INFO("op " << op.name << " " << call.variant << ", images " << to_string(shape));
          test(op, call, shape);
          ++calls;
        }
      }
      CHECK(calls >= 3);
    }
  }
}

/// Names the first element of `actual` that is farther from `expected` than bound(i), or nothing.
std::string first_outside(const Tensor& actual, const Tensor& expected,
                          const std::function<double(std::size_t)>& bound);

std::string first_difference(const Tensor& actual, const Tensor& expected);

/// Names the first element outside of the bound: output rounding of the dtype, plus the roundings of `terms` additions in
/// its compute type (f32 for the half types).
std::string outside_forward_bound(const OpCall& call, const Tensor& output, const std::vector<Tensor>& f64_inputs);

/// A tensor on the CPU of the shape and dtype of another.
Tensor random_like(const Tensor& tensor, bool integers, std::uint32_t seed);

/// Gradients of `inputs` after backward from `output`; zeros where none arrived, undefined where none is wanted.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& inputs, const Tensor& output, const Tensor& grad_output);

std::vector<Tensor> f64_leaves(const std::vector<Tensor>& inputs);

double norm(const std::vector<double>& values);
double dot(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tandem::test
