// airbench94, airbench95, airbench96: the networks of the CIFAR-10 speed runs.
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

#include <array>
#include <cmath>

namespace tandem::layers {

namespace {

/// What the three differ in.
struct AirbenchShape {
  std::array<std::int64_t, 3> channels;  // of the groups, at width 1
  bool residual;                         // a third convolution, and a residual around the last two
  double momentum;                       // of batch norm
};

/// Of one group.
struct GroupOptions {
  std::int64_t in = 0, out = 0;
  AirbenchShape shape;
  Activation activation = Activation::gelu;
  double drop_path = 0.0;
  bool identity_filters = true;
  kernels::ConvImpl impl = kernels::ConvImpl::automatic;
};

/// Two or three convolutions at half the height and width of the input.
class AirbenchGroup final : public Module {
 public:
  AirbenchGroup(const GroupOptions& options, Initializer& initializer)
      : conv1_(add_convolution("conv1", options.in, options, initializer)),
        pool_(add_module<MaxPool2d>("pool", 2)),
        norm1_(add_norm("norm1", options, options.activation)),
        conv2_(add_convolution("conv2", options.out, options, initializer)),
        norm2_(add_norm("norm2", options, options.activation)),
        drop_path_(options.drop_path),
        activ_(options.activation == Activation::silu ? std::unique_ptr<Module>(std::make_unique<SiLU>())
                                                      : std::make_unique<GELU>()) {
    if (options.shape.residual) {
      conv3_ = &add_convolution("conv3", options.out, options, initializer);
      norm3_ = &add_norm("norm3", options, Activation::none);
      register_module("activ", *activ_);
    }
    if (options.drop_path > 0.0) register_module("drop_path", drop_path_);
  }

  Tensor forward(const Tensor& input) override {
    const Tensor x = call_all({conv1_, pool_, norm1_}, input);
    const Tensor y = call_all({conv2_, norm2_}, x);
    if (conv3_ == nullptr) return y;
    return (*activ_)(autograd::add(drop_path_(call_all({*conv3_, *norm3_}, y)), x));
  }
  std::string describe() const override { return "AirbenchGroup"; }

 private:
  Conv2d& add_convolution(std::string name, std::int64_t in, const GroupOptions& options, Initializer& initializer) {
    auto& conv = add_module<Conv2d>(
        std::move(name), same_size({.in = in, .out = options.out, .bias = false, .impl = options.impl}), initializer);
    if (options.identity_filters) set_identity_filters(conv.weight());
    return conv;
  }
  BatchNorm2d& add_norm(std::string name, const GroupOptions& options, Activation activation) {
    return add_module<BatchNorm2d>(std::move(name), {.channels = options.out,
                                                     .momentum = options.shape.momentum,
                                                     .eps = 1e-12,
                                                     .activation = activation,
                                                     .train_weight = false});
  }

  Conv2d& conv1_;
  MaxPool2d& pool_;
  BatchNorm2d& norm1_;
  Conv2d& conv2_;
  BatchNorm2d& norm2_;
  Conv2d* conv3_ = nullptr;  // of a group with a residual
  BatchNorm2d* norm3_ = nullptr;
  DropPath drop_path_;
  std::unique_ptr<Module> activ_;  // behind the sum; the other two are in the batch norms
};

/// The convolution of 2x2 patches, whitening or not. Returns the number of its output's channels.
std::int64_t add_first(Sequential& to, const ModelOptions& options, Initializer& initializer) {
  constexpr std::int64_t kPatch = 2;
  if (options.whitening) {
    return to
        .add<Whitening2d>({.in = options.in_channels,
                           .kernel = kPatch,
                           .draw_bias = options.draw_whitening_bias,
                           .impl = options.conv_impl},
                          initializer)
        .channels();
  }
  const std::int64_t channels = 2 * options.in_channels * kPatch * kPatch;
  to.add<Conv2d>({.in = options.in_channels, .out = channels, .kernel = kPatch, .impl = options.conv_impl},
                 initializer);
  return channels;
}

/// The linear layer that makes the logits, and what they are multiplied by.
void add_head(Sequential& to, std::int64_t channels, const ModelOptions& options, Initializer& initializer) {
  constexpr double kLogitScale = 1.0 / 9.0;
  auto head = std::make_unique<Linear>(
      LinearOptions{.in = channels, .out = options.classes, .bias = false, .impl = options.gemm_impl}, initializer);
  if (options.unit_head) set_unit_deviation(head->weight());
  to.add("7", std::move(head));
  to.add<Scale>(options.unit_head ? 1.0 / static_cast<double>(channels) : kLogitScale);
}

std::unique_ptr<Module> airbench(const ModelOptions& options, AirbenchShape shape) {
  Initializer initializer(options.seed);
  shape.momentum = options.norm_momentum.value_or(shape.momentum);
  auto model = std::make_unique<Sequential>();
  std::int64_t channels = add_first(*model, options, initializer);
  model->add<GELU>();
  const Activation activation = options.activation == "silu" ? Activation::silu : Activation::gelu;
  for (std::size_t i = 0; i < shape.channels.size(); ++i) {
    const double wanted = options.width * static_cast<double>(shape.channels[i]);
    const std::int64_t out = std::max(std::int64_t{1}, static_cast<std::int64_t>(std::llround(wanted)));
    const double drop_path =
        options.drop_path * static_cast<double>(i + 1) / static_cast<double>(shape.channels.size());
    model->add(std::make_unique<AirbenchGroup>(GroupOptions{.in = channels,
                                                            .out = out,
                                                            .shape = shape,
                                                            .activation = activation,
                                                            .drop_path = drop_path,
                                                            .identity_filters = options.identity_filters,
                                                            .impl = options.conv_impl},
                                               initializer));
    channels = out;
  }
  model->add<MaxPool2d>((options.image_size - 1) / 8);
  model->add<Flatten>();
  if (options.dropout > 0.0) model->add("dropout", std::make_unique<Dropout>(options.dropout));
  add_head(*model, channels, options, initializer);
  return model;
}

}  // namespace

std::unique_ptr<Module> airbench94(const ModelOptions& options) {
  return airbench(options, {.channels = {64, 256, 256}, .residual = false, .momentum = 0.4});
}

std::unique_ptr<Module> airbench95(const ModelOptions& options) {
  return airbench(options, {.channels = {128, 384, 384}, .residual = false, .momentum = 0.4});
}

std::unique_ptr<Module> airbench96(const ModelOptions& options) {
  return airbench(options, {.channels = {128, 384, 512}, .residual = true, .momentum = 0.1});
}

}  // namespace tandem::layers
