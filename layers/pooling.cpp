// Layers that shrink or flatten images.
#include "tandem/layers/pooling.h"

#include "tandem/autograd/functions/avg_pool2d.h"
#include "tandem/autograd/functions/global_avg_pool2d.h"
#include "tandem/autograd/functions/max_pool2d.h"
#include "tandem/autograd/functions/shape.h"

namespace tandem::layers {

namespace {

std::string text_of(std::string_view name, const kernels::Pool2dOptions& options) {
  std::string text = fmt::format("{}(kernel {}x{}", name, options.kernel[0], options.kernel[1]);
  if (options.stride != options.kernel) text += fmt::format(", stride {}x{}", options.stride[0], options.stride[1]);
  if (options.padding[0] != 0 || options.padding[1] != 0) {
    text += fmt::format(", padding {}x{}", options.padding[0], options.padding[1]);
  }
  return text + ")";
}

}  // namespace

Tensor MaxPool2d::forward(const Tensor& input) { return autograd::max_pool2d(input, options_); }
bool MaxPool2d::takes_pairs() const {
  constexpr std::array<std::int64_t, 2> kTwo{2, 2}, kNone{0, 0};
  return options_.kernel == kTwo && options_.stride == kTwo && options_.padding == kNone;
}
std::string MaxPool2d::describe() const { return text_of("MaxPool2d", options_); }

Tensor AvgPool2d::forward(const Tensor& input) { return autograd::avg_pool2d(input, options_); }
std::string AvgPool2d::describe() const { return text_of("AvgPool2d", options_); }

Tensor GlobalAvgPool2d::forward(const Tensor& input) { return autograd::global_avg_pool2d(input); }

Tensor Flatten::forward(const Tensor& input) { return autograd::flatten(input); }

}  // namespace tandem::layers
