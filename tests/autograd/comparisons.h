// What comparisons must give, for every device.
#pragma once

#include "tandem/autograd/functions.h"
#include "tests/support/catch.h"

#include <cmath>
#include <utility>
#include <vector>

namespace tandem::test {

/// Compares dense, permuted and broadcast tensors of `dtype` on `device`, in all six ways.
inline void check_comparisons(DType dtype, Device device) {
  const std::vector<double> left{-1, 0, 2, std::nan(""), 2, -INFINITY}, right{1, 0, 1, 2, std::nan(""), INFINITY};
  const auto typed = [&](const std::vector<double>& values) {
    return autograd::cast(Tensor::from(values, {2, 3}), dtype).to(device);
  };
  using Compare = Tensor (*)(const Tensor&, const Tensor&);
  using Holds = bool (*)(double, double);
  const std::vector<std::pair<Compare, Holds>> all = {{autograd::eq, [](double a, double b) { return a == b; }},
                                                      {autograd::ne, [](double a, double b) { return a != b; }},
                                                      {autograd::lt, [](double a, double b) { return a < b; }},
                                                      {autograd::le, [](double a, double b) { return a <= b; }},
                                                      {autograd::gt, [](double a, double b) { return a > b; }},
                                                      {autograd::ge, [](double a, double b) { return a >= b; }}};
  for (const auto& [compare, rule] : all) {
    const auto check = [&, holds = rule](const Tensor& mask, const Tensor& a, const Tensor& b) {
      CHECK(mask.dtype() == DType::u8);
      CHECK(mask.device() == device);
      const std::vector<int> actual = mask.to_vector<int>();
      const std::vector<double> from_a = a.to_vector<double>(), from_b = b.expand(a.shape()).to_vector<double>();
      for (std::size_t i = 0; i < actual.size(); ++i) {
        INFO(name_of(dtype) << ": " << from_a[i] << " and " << from_b[i]);
        CHECK(actual[i] == (holds(from_a[i], from_b[i]) ? 1 : 0));
      }
    };
    const Tensor a = typed(left), b = typed(right);
    check(compare(a, b), a, b);
    check(compare(a.transpose(0, 1), b.transpose(0, 1)), a.transpose(0, 1), b.transpose(0, 1));
    check(compare(a, b.narrow(0, 0, 1)), a, b.narrow(0, 0, 1));
    check(compare(a.narrow(1, 0, 2, 2), b.narrow(1, 0, 2, 2)), a.narrow(1, 0, 2, 2), b.narrow(1, 0, 2, 2));
  }
  const Tensor two = Tensor::full({}, 2.0, {.dtype = dtype, .device = device});
  CHECK(autograd::ge(typed(left), 2.0).to_vector<int>() == autograd::ge(typed(left), two).to_vector<int>());
  CHECK(autograd::lt(Tensor::zeros({0, 3}, {.dtype = dtype, .device = device}), 1.0).shape() == Shape{0, 3});
}

}  // namespace tandem::test
