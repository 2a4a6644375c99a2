// Times element-wise functions on request, for scripts/compare_elementwise.py: answers each line `NAME MODE COUNT
// REPEATS` by one of JSON. MODE is forward, or both: forward and backward. usage: elementwise_bench THREADS
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/parallel.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>

using namespace tandem;

namespace {

using Function = std::function<Tensor(const Tensor& a, const Tensor& b)>;

Function of_one(Tensor (*function)(const Tensor&)) {
  return [function](const Tensor& a, const Tensor&) { return function(a); };
}

const Tensor& mask_of(std::int64_t count) {
  static std::map<std::int64_t, Tensor> masks;
  Tensor& mask = masks[count];
  if (mask.defined()) return mask;
  std::vector<std::uint8_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * 7 % 3 == 0;
  return mask = Tensor::from(values, {count});
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      {"exp", of_one(autograd::exp)},
      {"expm1", of_one(autograd::expm1)},
      {"log", of_one(autograd::log)},
      {"log1p", of_one(autograd::log1p)},
      {"sqrt", of_one(autograd::sqrt)},
      {"rsqrt", of_one(autograd::rsqrt)},
      {"reciprocal", of_one(autograd::reciprocal)},
      {"abs", of_one(autograd::abs)},
      {"neg", of_one(autograd::neg)},
      {"tanh", of_one(autograd::tanh)},
      {"sigmoid", of_one(autograd::sigmoid)},
      {"hardswish", of_one(autograd::hardswish)},
      {"softplus", [](const Tensor& a, const Tensor&) { return autograd::softplus(a); }},
      {"leaky_relu", [](const Tensor& a, const Tensor&) { return autograd::leaky_relu(a); }},
      {"clamp", [](const Tensor& a, const Tensor&) { return autograd::clamp(a, 0.6, 1.7); }},
      {"pow_2", [](const Tensor& a, const Tensor&) { return autograd::pow(a, 2.0); }},
      {"pow_1.7", [](const Tensor& a, const Tensor&) { return autograd::pow(a, 1.7); }},
      {"add_number", [](const Tensor& a, const Tensor&) { return a + 1.5; }},
      {"div_number", [](const Tensor& a, const Tensor&) { return a / 1.5; }},
      {"number_div", [](const Tensor& a, const Tensor&) { return 1.5 / a; }},
      {"add", [](const Tensor& a, const Tensor& b) { return a + b; }},
      {"sub", [](const Tensor& a, const Tensor& b) { return a - b; }},
      {"mul", [](const Tensor& a, const Tensor& b) { return a * b; }},
      {"div", [](const Tensor& a, const Tensor& b) { return a / b; }},
      {"pow", [](const Tensor& a, const Tensor& b) { return autograd::pow(a, b); }},
      {"maximum", [](const Tensor& a, const Tensor& b) { return autograd::maximum(a, b); }},
      {"where", [](const Tensor& a, const Tensor& b) { return autograd::where(mask_of(a.numel()), a, b); }}};
  return table;
}

/// Numbers from 0.5 to 2.5 in no plain order.
Tensor numbers(std::int64_t count, std::int64_t factor) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = 0.5f + 2e-4f * static_cast<float>(i * factor % 10007);
  return Tensor::from(values, {count});
}

double seconds_of(const Function& function, bool both, const Tensor& x, const Tensor& y, const Tensor& grad) {
  const Tensor a = x.detach(), b = y.detach();
  if (both) {
    autograd::set_requires_grad(a);
    autograd::set_requires_grad(b);
  }
  const auto start = std::chrono::steady_clock::now();
  {
    const Tensor result = function(a, b);
    if (both) autograd::backward(result, grad);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  std::cout << "{\"name\": \"elementwise_bench\"}" << std::endl;
  std::int64_t count = 0, wanted = 0;
  Tensor a, b, grad;
  std::string name, mode;
  for (int repeats = 0; std::cin >> name && name != "quit" && std::cin >> mode >> wanted >> repeats;) {
    if (wanted != count) {
      count = wanted;
      a = numbers(count, 7919);
      b = numbers(count, 104729);
      grad = Tensor::full({count}, 1.0);
    }
    double sum = 0.0;
    for (int i = 0; i < repeats; ++i) sum += seconds_of(functions().at(name), mode == "both", a, b, grad);
    std::cout << fmt::format("{{\"seconds\": {:.9f}}}", sum / repeats) << std::endl;
  }
  return 0;
}
