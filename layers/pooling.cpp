// Layers that shrink or flatten images.
#include "tandem/layers/pooling.h"

#include "tandem/autograd/functions/avg_pool2d.h"
#include "tandem/autograd/functions/global_avg_pool2d.h"
#include "tandem/autograd/functions/max_pool2d.h"
#include "tandem/autograd/functions/shape.h"

namespace tandem::layers {

namespace {

std::string text_of(std::string_view name, const kernels::Pool2dOptions& options) {
  std::string text = fmt::format("{}(kernel {}x{}", name, options.kernel.height, options.kernel.width);
  if (options.stride != options.kernel)
    text += fmt::format(", stride {}x{}", options.stride.height, options.stride.width);
  if (options.padding != 0) {
    text += fmt::format(", padding {}x{}", options.padding.height, options.padding.width);
  }
  if (options.ceil_mode) text += ", ceil mode";
  return text + ")";
}

}  // namespace

MaxPool2d::MaxPool2d(const Options& options) : options_(options) { check_pool2d_options("MaxPool2d", options); }
Tensor MaxPool2d::forward(const Tensor& input) { return autograd::max_pool2d(input, options_); }
bool MaxPool2d::takes_pairs() const {
  return options_.kernel == 2 && options_.stride == 2 && options_.padding == 0 && !options_.ceil_mode;
}
std::string MaxPool2d::describe() const { return text_of("MaxPool2d", options_); }

AvgPool2d::AvgPool2d(const Options& options) : options_(options) { check_pool2d_options("AvgPool2d", options); }
Tensor AvgPool2d::forward(const Tensor& input) { return autograd::avg_pool2d(input, options_); }
std::string AvgPool2d::describe() const { return text_of("AvgPool2d", options_); }

Tensor GlobalAvgPool2d::forward(const Tensor& input) { return autograd::global_avg_pool2d(input); }

Tensor Flatten::forward(const Tensor& input) { return autograd::flatten(input); }

}  // namespace tandem::layers
