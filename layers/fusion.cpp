// The rows, and what each calls.
#include "tandem/layers/fusion.h"

#include "tandem/autograd/functions/conv2d.h"
#include "tandem/autograd/functions/conv2d_pool.h"
#include "tandem/autograd/functions/conv_bias_relu_pool.h"
#include "tandem/layers/batch_norm.h"
#include "tandem/layers/convolution.h"
#include "tandem/layers/pooling.h"
#include "tandem/layers/sequential.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tandem::layers {

namespace {

bool is_on_gpu(const Tensor& input) { return input.device().type == DeviceType::cuda; }

/// The convolution leaves the moments of its result, which batch norm would have to read it for: of the whole batch.
bool leaves_moments(const Conv2d& conv, const BatchNorm2d& norm, const Tensor& input) {
  return !conv.options().relu && norm.training() && norm.options().ghost_batch == 0 && is_on_gpu(input);
}

Tensor run_with_moments(Conv2d& conv, BatchNorm2d& norm, const Tensor& input) {
  return conv.in_context([&] {
    const auto [y, moments] =
        autograd::conv2d_with_moments(input, conv.weight(), conv.bias(), conv.options().kernel_options());
    return norm.normalise(y, moments);
  });
}

/// Only the maxima are written.
bool leaves_maxima(const Conv2d&, const MaxPool2d& pool, const Tensor& input) {
  return pool.takes_pairs() && is_on_gpu(input);
}

Tensor run_with_maxima(Conv2d& conv, MaxPool2d&, const Tensor& input) {
  const auto function = conv.options().relu ? autograd::conv_bias_relu_pool : autograd::conv2d_pool;
  return conv.in_context([&] { return function(input, conv.weight(), conv.bias(), conv.options().kernel_options()); });
}

/// Only the maxima are written, and their moments left.
bool leaves_maxima_and_moments(const Conv2d& conv, const MaxPool2d& pool, const BatchNorm2d& norm,
                               const Tensor& input) {
  return leaves_maxima(conv, pool, input) && leaves_moments(conv, norm, input);
}

Tensor run_with_maxima_and_moments(Conv2d& conv, MaxPool2d&, BatchNorm2d& norm, const Tensor& input) {
  return conv.in_context([&] {
    const auto [y, moments] =
        autograd::conv2d_pool_with_moments(input, conv.weight(), conv.bias(), conv.options().kernel_options());
    return norm.normalise(y, moments);
  });
}

/// The last layer of the one and the first of the other.
using Pair = std::array<std::reference_wrapper<Module>, 2>;

bool meet_in_a_pair(Sequential& first, Sequential& second, const Tensor& input) {
  return !first.empty() && !second.empty() && find_fusion(Pair{first[first.size() - 1], second[0]}, input) != nullptr;
}

Tensor run_sequences(Sequential& first, Sequential& second, const Tensor& input) {
  const std::size_t last = first.size() - 1;
  const Tensor both = first.in_context([&] { return call_all({first[last], second[0]}, first.run(0, last, input)); });
  return second.in_context([&] { return second.run(1, second.size(), both); });
}

/// A row of functions that know the types of its layers.
template <typename... Layers>
struct RowOf {
  /// fits(const Layers&..., input) and run(Layers&..., input).
  template <auto fits, auto run>
  static constexpr Fusion by(std::string_view name) {
    return {name, sizeof...(Layers),
            [](LayerRun layers, const Tensor& input) {
              return each([&]<std::size_t... i>(std::index_sequence<i...>) {
                return (... && (dynamic_cast<Layers*>(&layers[i].get()) != nullptr)) &&
                       fits(static_cast<Layers&>(layers[i].get())..., input);
              });
            },
            [](LayerRun layers, const Tensor& input) {
              return each([&]<std::size_t... i>(std::index_sequence<i...>) {
                return run(static_cast<Layers&>(layers[i].get())..., input);
              });
            }};
  }

 private:
  template <typename Visitor>
  static auto each(Visitor&& visit) {
    return visit(std::index_sequence_for<Layers...>{});
  }
};

constexpr Fusion kFusions[] = {
    RowOf<Conv2d, MaxPool2d, BatchNorm2d>::by<leaves_maxima_and_moments, run_with_maxima_and_moments>(
        "convolution, 2x2 maxima and batch norm"),
    RowOf<Conv2d, BatchNorm2d>::by<leaves_moments, run_with_moments>("convolution and batch norm"),
    RowOf<Conv2d, MaxPool2d>::by<leaves_maxima, run_with_maxima>("convolution and 2x2 maxima"),
    RowOf<Sequential, Sequential>::by<meet_in_a_pair, run_sequences>("sequences that meet in a pair"),
};

}  // namespace

std::span<const Fusion> fusions() { return kFusions; }

const Fusion* find_fusion(LayerRun layers, const Tensor& input) {
  const auto fits = [&](const Fusion& row) {
    if (layers.size() < row.size) return false;
    const LayerRun first = layers.first(row.size);
    return std::ranges::none_of(first, [](const Module& layer) { return layer.is_observed(); }) &&
           row.fits(first, input);
  };
  const auto found = std::ranges::find_if(kFusions, fits);
  return found == std::end(kFusions) ? nullptr : found;
}

Tensor call_all(LayerRun layers, const Tensor& input) {
  Tensor output = input;
  while (!layers.empty()) {
    const Fusion* const fusion = find_fusion(layers, output);
    const std::size_t size = fusion != nullptr ? fusion->size : 1;
    output = fusion != nullptr ? fusion->run(layers.first(size), output) : layers.front().get()(output);
    layers = layers.subspan(size);
  }
  return output;
}

Tensor call_all(std::initializer_list<std::reference_wrapper<Module>> layers, const Tensor& input) {
  return call_all(LayerRun(layers.begin(), layers.size()), input);
}

}  // namespace tandem::layers
