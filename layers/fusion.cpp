// The pairs, and what each calls.
#include "tandem/layers/fusion.h"

#include "tandem/autograd/functions/conv2d.h"
#include "tandem/autograd/functions/conv_bias_relu_pool.h"
#include "tandem/layers/batch_norm.h"
#include "tandem/layers/convolution.h"
#include "tandem/layers/pooling.h"
#include "tandem/layers/sequential.h"

#include <algorithm>

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
bool leaves_maxima(const Conv2d& conv, const MaxPool2d& pool, const Tensor& input) {
  return conv.options().relu && pool.takes_pairs() && is_on_gpu(input);
}

Tensor run_with_maxima(Conv2d& conv, MaxPool2d&, const Tensor& input) {
  return conv.in_context([&] {
    return autograd::conv_bias_relu_pool(input, conv.weight(), conv.bias(), conv.options().kernel_options());
  });
}

bool meet_in_a_pair(const Sequential& first, const Sequential& second, const Tensor& input) {
  return !first.empty() && !second.empty() && find_fusion(first[first.size() - 1], second[0], input) != nullptr;
}

Tensor run_sequences(Sequential& first, Sequential& second, const Tensor& input) {
  const std::size_t last = first.size() - 1;
  const Tensor both = first.in_context([&] { return call_both(first[last], second[0], first.run(0, last, input)); });
  return second.in_context([&] { return second.run(1, second.size(), both); });
}

/// A row of functions that know the types of the two.
template <typename First, typename Second, bool (*fits)(const First&, const Second&, const Tensor&),
          Tensor (*run)(First&, Second&, const Tensor&)>
constexpr Fusion fusion(std::string_view name) {
  return {name,
          [](const Module& first, const Module& second, const Tensor& input) {
            const auto* const a = dynamic_cast<const First*>(&first);
            const auto* const b = dynamic_cast<const Second*>(&second);
            return a != nullptr && b != nullptr && fits(*a, *b, input);
          },
          [](Module& first, Module& second, const Tensor& input) {
            return run(static_cast<First&>(first), static_cast<Second&>(second), input);
          }};
}

constexpr Fusion kFusions[] = {
    fusion<Conv2d, BatchNorm2d, leaves_moments, run_with_moments>("convolution and batch norm"),
    fusion<Conv2d, MaxPool2d, leaves_maxima, run_with_maxima>("convolution with ReLU and 2x2 maxima"),
    fusion<Sequential, Sequential, meet_in_a_pair, run_sequences>("sequences that meet in a pair"),
};

}  // namespace

std::span<const Fusion> fusions() { return kFusions; }

const Fusion* find_fusion(const Module& first, const Module& second, const Tensor& input) {
  if (first.is_observed() || second.is_observed()) return nullptr;
  const auto found = std::ranges::find_if(kFusions, [&](const Fusion& row) { return row.fits(first, second, input); });
  return found == std::end(kFusions) ? nullptr : found;
}

Tensor call_both(Module& first, Module& second, const Tensor& input) {
  const Fusion* const fusion = find_fusion(first, second, input);
  return fusion != nullptr ? fusion->run(first, second, input) : second(first(input));
}

}  // namespace tandem::layers
