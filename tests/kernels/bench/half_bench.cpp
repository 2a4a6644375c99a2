// How long networks take forward and backward on the CPU in f32, f16 and bf16, layer by layer and whole; turns of the
// three in one run. Without batch norm, optimizer and data.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/core/parallel.h"
#include "tandem/core/random.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/conv/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::test {
namespace {

constexpr std::array<DType, 3> kDTypes{DType::f32, DType::f16, DType::bf16};
constexpr Layout kLast = Layout::channels_last;

Tensor random(const Shape& shape, DType dtype, std::uint32_t seed, float scale) {
  const RandomKey key{.seed = seed};
  const Tensor wide = Tensor::empty(shape, {.layout = kLast}), tensor = Tensor::empty(shape, {dtype, kLast, {}});
  for (std::int64_t i = 0; i < wide.numel(); ++i)
    Out(wide).data<float>()[i] = scale * key.normal(static_cast<std::uint64_t>(i));
  kernels::cast(wide, Out(tensor));
  return tensor;
}

/// One layer: its input, its parameters, and the function of both.
struct Layer {
  std::string name;
  Shape input;
  std::vector<Shape> parameters;
  std::function<Tensor(const Tensor& x, const std::vector<Tensor>& parameters)> function;
};

Layer conv(kernels::ConvImpl impl, std::int64_t batch, std::int64_t side, std::int64_t inputs, std::int64_t outputs,
           std::int64_t kernel = 3, std::int64_t stride = 1) {
  const kernels::Conv2dOptions options{.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}, .impl = impl};
  return {fmt::format("conv {}x{}{} {}->{} at {}x{}", kernel, kernel, stride > 1 ? ", stride 2," : "", inputs, outputs,
                      side, side),
          {batch, inputs, side, side},
          {{outputs, inputs, kernel, kernel}, {outputs}},
          [options](const Tensor& x, const std::vector<Tensor>& parameters) {
            return autograd::conv_bias_relu(x, parameters[0], parameters[1], options);
          }};
}

Layer pool(std::int64_t batch, std::int64_t side, std::int64_t channels) {
  return {fmt::format("max pool {} at {}x{}", channels, side, side),
          {batch, channels, side, side},
          {},
          [](const Tensor& x, const std::vector<Tensor>&) { return autograd::max_pool2d(x, {}); }};
}

Layer global_pool(std::int64_t batch, std::int64_t side, std::int64_t channels) {
  return {"global mean", {batch, channels, side, side}, {}, [](const Tensor& x, const std::vector<Tensor>&) {
            return autograd::reshape(autograd::global_avg_pool2d(x), {x.size(0), x.size(1)});
          }};
}

Layer flatten(std::int64_t batch, std::int64_t side, std::int64_t channels) {
  return {"flatten", {batch, channels, side, side}, {}, [](const Tensor& x, const std::vector<Tensor>&) {
            return autograd::reshape(x, {x.size(0), x.numel() / x.size(0)});
          }};
}

Layer linear(std::int64_t batch, std::int64_t inputs, std::int64_t outputs, bool relu) {
  return {fmt::format("linear {}->{}", inputs, outputs),
          {batch, inputs},
          {{outputs, inputs}, {outputs}},
          [relu](const Tensor& x, const std::vector<Tensor>& parameters) {
            return relu ? autograd::linear_relu(x, parameters[0], parameters[1])
                        : autograd::linear(x, parameters[0], parameters[1]);
          }};
}

std::vector<Layer> network(std::string_view name, std::int64_t n, kernels::ConvImpl impl) {
  if (name == "small_cnn")
    return {conv(impl, n, 32, 3, 32),  pool(n, 32, 32), conv(impl, n, 16, 32, 64),  pool(n, 16, 64),
            conv(impl, n, 8, 64, 128), pool(n, 8, 128), conv(impl, n, 4, 128, 128), global_pool(n, 4, 128),
            linear(n, 128, 10, false)};
  if (name == "vgg_lite")
    return {conv(impl, n, 32, 3, 32),   conv(impl, n, 32, 32, 64),   pool(n, 32, 64),
            conv(impl, n, 16, 64, 128), conv(impl, n, 16, 128, 256), pool(n, 16, 256),
            conv(impl, n, 8, 256, 256), conv(impl, n, 8, 256, 256),  pool(n, 8, 256),
            flatten(n, 4, 256),         linear(n, 4096, 256, true),  linear(n, 256, 32, true),
            linear(n, 32, 10, false)};
  if (name == "strided")  // what resnet18 has beside 3x3 convolutions
    return {conv(impl, n, 32, 64, 128, 3, 2), conv(impl, n, 16, 128, 256, 1, 2), conv(impl, n, 8, 256, 128, 1)};
  fail("unknown network '{}': choose small_cnn, vgg_lite or strided", name);
}

/// A chain of layers with its data, in one dtype.
class Chain {
 public:
  Chain(std::vector<Layer> layers, DType dtype, bool input_gradient) : layers_(std::move(layers)) {
    std::uint32_t seed = 1;
    x_ = random(layers_.front().input, dtype, seed++, 1.0f);
    autograd::set_requires_grad(x_, input_gradient);
    for (const Layer& layer : layers_) {
      parameters_.emplace_back();
      for (const Shape& shape : layer.parameters) {
        const auto fan_in = static_cast<float>(element_count(shape) / shape[0]);
        parameters_.back().push_back(random(shape, dtype, seed++, std::sqrt(2.0f / fan_in)));
        autograd::set_requires_grad(parameters_.back().back());
      }
    }
    const Tensor y = forward();
    grad_y_ = random(y.shape(), dtype, seed, 0.01f);
  }

  /// CPU milliseconds of all threads for one pass forward and backward: others on the machine have little say in it.
  double run() {
    for (const auto& list : parameters_)
      for (const Tensor& parameter : list) autograd::clear_grad(parameter);
    autograd::clear_grad(x_);
    const std::clock_t start = std::clock();
    autograd::backward(forward(), grad_y_);
    return 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }

 private:
  Tensor forward() const {
    Tensor y = x_;
    for (std::size_t i = 0; i < layers_.size(); ++i) y = layers_[i].function(y, parameters_[i]);
    return y;
  }

  std::vector<Layer> layers_;
  std::vector<std::vector<Tensor>> parameters_;
  Tensor x_, grad_y_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Prints one line: times in turn, ratios as medians of pairs, and peaks of memory.
void measure(const std::string& name, const std::vector<Layer>& layers, bool input_gradient, int rounds) {
  std::array<std::vector<double>, kDTypes.size()> times, ratios;
  std::array<std::string, kDTypes.size()> memory;
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {  // apart, so that each has the memory for itself
    Chain chain(layers, kDTypes[i], input_gradient);
    chain.run();
    reset_peak_memory();
    chain.run();
    const MemoryStats stats = memory_stats();
    constexpr double kMiB = 1 << 20;
    memory[i] = fmt::format("{:.1f}+{:.1f}", static_cast<double>(stats.peak_of(MemoryTag::activations)) / kMiB,
                            static_cast<double>(stats.peak_of(MemoryTag::workspace)) / kMiB);
  }
  std::vector<Chain> chains;
  for (const DType dtype : kDTypes) chains.emplace_back(layers, dtype, input_gradient);
  for (Chain& chain : chains) chain.run();
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < chains.size(); ++i) {
      times[i].push_back(chains[i].run());
      ratios[i].push_back(times[i].back() / times[0].back());
    }
  fmt::print("{:<34} {:>9.2f} {:>9.2f} {:>9.2f}  {:>5.2f} {:>5.2f}  {:>13} {:>13} {:>13}\n", name, median(times[0]),
             median(times[1]), median(times[2]), median(ratios[1]), median(ratios[2]), memory[0], memory[1], memory[2]);
}

void run(std::string_view name, std::int64_t batch, int rounds, kernels::ConvImpl impl) {
  const std::vector<Layer> layers = network(name, batch, impl);
  fmt::print(
      "{}, batch {}, {} threads, {} rounds: CPU ms forward and backward, ratios to f32, MiB of activations+workspace\n",
      name, batch, num_threads(), rounds);
  fmt::print("{:<34} {:>9} {:>9} {:>9}  {:>5} {:>5}  {:>13} {:>13} {:>13}\n", "", "f32", "f16", "bf16", "f16", "bf16",
             "f32", "f16", "bf16");
  for (std::size_t i = 0; i < layers.size(); ++i) measure(layers[i].name, {layers[i]}, i > 0, rounds);
  if (name != "strided") measure("all layers", layers, false, rounds);
}

}  // namespace
}  // namespace tandem::test

/// half_bench NETWORK BATCH ROUNDS THREADS [CONV_IMPL]
int main(int count, char** arguments) {
  try {
    tandem::require(count == 5 || count == 6,
                    "usage: half_bench small_cnn|vgg_lite|strided BATCH ROUNDS THREADS [auto|fused|reference]");
    tandem::set_num_threads(std::stoi(arguments[4]));
    const auto impl = tandem::kernels::parse_conv_impl(count == 6 ? arguments[5] : "auto");
    tandem::test::run(arguments[1], std::stoll(arguments[2]), std::stoi(arguments[3]), impl);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
