// Times matrix products on request, for scripts/compare_matmul.py: answers each line `A B MODE REPEATS`, of two shapes
// such as 8,64,64, by one of JSON. MODE is forward, or both: forward and backward. usage: matmul_bench THREADS
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/parallel.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

using namespace tandem;

namespace {

Shape shape_of(const std::string& text) {
  Shape shape;
  std::istringstream sizes(text);
  for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
  return shape;
}

/// Numbers from -1 to 1 in no plain order.
Tensor numbers(const Shape& shape, std::int64_t factor) {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 2e-4f * static_cast<float>(static_cast<std::int64_t>(i) * factor % 10007) - 1.0f;
  return Tensor::from(values, shape);
}

double seconds_of(bool both, const Tensor& x, const Tensor& y, const Tensor& grad) {
  const Tensor a = x.detach(), b = y.detach();
  if (both) {
    autograd::set_requires_grad(a);
    autograd::set_requires_grad(b);
  }
  const auto start = std::chrono::steady_clock::now();
  {
    const Tensor result = autograd::matmul(a, b);
    if (both) autograd::backward(result, grad);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  std::cout << "{\"name\": \"matmul_bench\"}" << std::endl;
  std::string left, right, mode;
  for (int repeats = 0; std::cin >> left && left != "quit" && std::cin >> right >> mode >> repeats;) {
    const Tensor a = numbers(shape_of(left), 7919), b = numbers(shape_of(right), 104729);
    const Tensor grad = Tensor::full(autograd::matmul(a, b).shape(), 1.0);
    double sum = 0.0;
    for (int i = 0; i < repeats; ++i) sum += seconds_of(mode == "both", a, b, grad);
    std::cout << fmt::format("{{\"seconds\": {:.9f}}}", sum / repeats) << std::endl;
  }
  return 0;
}
