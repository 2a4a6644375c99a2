// Convolution, bias and ReLU as two functions and as one fused one: the same numbers, less memory, less time.
#include <tandem/tandem.h>
using namespace tandem;

Tensor apart(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return autograd::relu(autograd::conv2d(x, weight, bias, {.padding = 1}));
}
Tensor fused(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return autograd::conv_bias_relu(x, weight, bias, {.padding = 1});
}

/// Runs forward and backward twenty times; prints the most memory that they took, and the least time.
template <typename Function>
void measure(std::string_view name, const Function& function, const Tensor& x, const Tensor& weight,
             const Tensor& bias) {
  const Tensor ones = Tensor::full({64, 32, 32, 32}, 1.0, {.layout = Layout::channels_last});
  double least = std::numeric_limits<double>::infinity();
  reset_peak_memory();
  const std::int64_t before = memory_stats().current_total;
  for (int run = 0; run < 20; ++run) {
    const auto start = std::chrono::steady_clock::now();
    autograd::backward(function(x, weight, bias), ones);
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
    least = std::min(least, passed.count());
  }
  fmt::print("{}: {} at most, {:.1f} ms\n", name, format_memory(memory_stats().peak_total - before), least);
}

int main() {
  layers::Initializer random(1);
  const Tensor x = random.uniform({64, 16, 32, 32}, 1.0), weight = random.kaiming_uniform({32, 16, 3, 3}, 16 * 9);
  const Tensor bias = random.uniform({32}, 0.1);
  const Tensor y = fused(x, weight, bias), difference = autograd::abs(apart(x, weight, bias) - y);
  fmt::print("{}, {:.0f} % are 0, largest difference {:.0e}\n", describe(y),
             100 * autograd::mean(autograd::cast(autograd::eq(y, 0), DType::f32)).item(),
             autograd::topk(autograd::reshape(difference, {-1}), 1).values.item());
  measure("apart", apart, x, weight, bias);
  measure("fused", fused, x, weight, bias);
}
