// Times softmaxes, norms, losses, sums and lookups on request, for scripts/compare_functions.py: answers each line
// `NAME SHAPE MODE REPEATS`, with a shape such as 64,1000, by one of JSON. MODE is forward, or both: forward and
// backward. usage: function_bench THREADS
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/parallel.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

using namespace tandem;

namespace {

/// What a function is called with, beside its differentiable input x.
struct Others {
  Tensor weight, bias;  // [last size], or [channels] of an image
  Tensor target;        // as x, 0 or 1
  Tensor labels;        // i64[first size], below the second size
};

using Function = std::function<Tensor(const Tensor& x, const Others& others)>;

const std::map<std::string, Function>& functions() {
  using namespace autograd;
  static const std::map<std::string, Function> table = {
      {"softmax", [](const Tensor& x, const Others&) { return softmax(x, -1); }},
      {"log_softmax", [](const Tensor& x, const Others&) { return log_softmax(x, -1); }},
      {"softmax_dim0", [](const Tensor& x, const Others&) { return softmax(x, 0); }},
      {"layer_norm",
       [](const Tensor& x, const Others& o) { return layer_norm(x, {x.size(x.rank() - 1)}, o.weight, o.bias); }},
      {"group_norm", [](const Tensor& x, const Others& o) { return group_norm(x, 8, o.weight, o.bias); }},
      {"embedding", [](const Tensor& x, const Others& o) { return embedding(o.labels, x); }},
      {"mse_loss", [](const Tensor& x, const Others& o) { return mse_loss(x, o.target); }},
      {"l1_loss", [](const Tensor& x, const Others& o) { return l1_loss(x, o.target); }},
      {"bce_with_logits",
       [](const Tensor& x, const Others& o) { return binary_cross_entropy_with_logits(x, o.target); }},
      {"nll_loss", [](const Tensor& x, const Others& o) { return nll_loss(x, o.labels); }},
      {"cross_entropy", [](const Tensor& x, const Others& o) { return softmax_cross_entropy(x, o.labels); }},
      {"sum", [](const Tensor& x, const Others&) { return sum(x); }},
      {"sum_dim0", [](const Tensor& x, const Others&) { return sum(x, {0}); }},
      {"mean_dim1", [](const Tensor& x, const Others&) { return mean(x, {1}); }}};
  return table;
}

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

Others others_of(const std::string& name, const Shape& shape) {
  const Shape channels = {shape.rank() == 4 ? shape[1] : shape[shape.rank() - 1]};
  const std::int64_t count = element_count(shape);
  std::vector<float> target(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) target[static_cast<std::size_t>(i)] = i * 7 % 3 == 0 ? 1.0f : 0.0f;
  // A lookup has 8,192 places of a table with as many rows as x, a loss one label for each row of x.
  const std::int64_t labels = name == "embedding" ? 8192 : shape[0],
                     classes = name == "embedding" ? shape[0] : shape[1];
  std::vector<std::int64_t> label(static_cast<std::size_t>(labels));
  for (std::int64_t i = 0; i < labels; ++i) label[static_cast<std::size_t>(i)] = i * 7919 % 10007 % classes;
  return {numbers(channels, 7919), numbers(channels, 104729), Tensor::from(target, shape),
          Tensor::from(label, {labels})};
}

double seconds_of(const Function& function, bool both, const Tensor& input, const Others& others, const Tensor& grad) {
  const Tensor x = input.detach();
  const Others leaves{others.weight.detach(), others.bias.detach(), others.target, others.labels};
  if (both) {
    for (const Tensor& leaf : {x, leaves.weight, leaves.bias}) autograd::set_requires_grad(leaf);
  }
  const auto start = std::chrono::steady_clock::now();
  {
    const Tensor result = function(x, leaves);
    if (both) autograd::backward(result, grad);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  std::cout << "{\"name\": \"function_bench\"}" << std::endl;
  std::string name, text, mode;
  for (int repeats = 0; std::cin >> name && name != "quit" && std::cin >> text >> mode >> repeats;) {
    const Shape shape = shape_of(text);
    const Tensor x = numbers(shape, 7919);
    const Others others = others_of(name, shape);
    const Function& function = functions().at(name);
    const Tensor grad = Tensor::full(function(x, others).shape(), 1.0);
    double sum = 0.0;
    for (int i = 0; i < repeats; ++i) sum += seconds_of(function, mode == "both", x, others, grad);
    std::cout << fmt::format("{{\"seconds\": {:.9f}}}", sum / repeats) << std::endl;
  }
  return 0;
}
