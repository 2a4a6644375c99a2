// Parity cases of one layer: its parameters and buffers come as a state dict.
#include "tandem/autograd/variable.h"
#include "tandem/layers/layers.h"
#include "tests/parity/parity_runner.h"

namespace tandem::parity {

namespace {

using namespace layers;

std::unique_ptr<Module> make_layer(const std::string& name, const json& o) {
  Initializer initializer(1);
  const bool bias = o.value("bias", true);
  if (name == "Conv2d" || name == "ConvBiasReLU") {
    const kernels::Conv2dOptions kernel = conv_options(o);
    return std::make_unique<Conv2d>(Conv2dOptions{.in = o.at("in_channels"),
                                                  .out = o.at("out_channels"),
                                                  .kernel = pair_of(o, "kernel", 3),
                                                  .stride = kernel.stride,
                                                  .padding = kernel.padding,
                                                  .dilation = kernel.dilation,
                                                  .groups = kernel.groups,
                                                  .bias = bias,
                                                  .relu = name == "ConvBiasReLU",
                                                  .impl = kernel.impl},
                                    initializer);
  }
  if (name == "ConvTranspose2d") {
    const kernels::Conv2dOptions kernel = conv_options(o);
    return std::make_unique<ConvTranspose2d>(ConvTranspose2dOptions{.in = o.at("in_channels"),
                                                                    .out = o.at("out_channels"),
                                                                    .kernel = pair_of(o, "kernel", 3),
                                                                    .stride = kernel.stride,
                                                                    .padding = kernel.padding,
                                                                    .output_padding = pair_of(o, "output_padding", 0),
                                                                    .dilation = kernel.dilation,
                                                                    .groups = kernel.groups,
                                                                    .bias = bias},
                                             initializer);
  }
  if (name == "Linear") {
    return std::make_unique<Linear>(
        LinearOptions{
            .in = o.at("in_features"), .out = o.at("out_features"), .bias = bias, .relu = o.value("relu", false)},
        initializer);
  }
  if (name == "BatchNorm2d") {
    return std::make_unique<BatchNorm2d>(BatchNorm2dOptions{.channels = o.at("channels"),
                                                            .momentum = o.at("momentum"),
                                                            .eps = o.at("eps"),
                                                            .activation = activation_of(o)});
  }
  if (name == "LayerNorm") {
    const std::vector<std::int64_t> sizes = o.at("normalized_shape");
    return std::make_unique<LayerNorm>(LayerNormOptions{.normalized_shape = Shape(std::span<const std::int64_t>(sizes)),
                                                        .eps = o.at("eps"),
                                                        .elementwise_affine = o.at("affine")});
  }
  if (name == "GroupNorm") {
    return std::make_unique<GroupNorm>(GroupNormOptions{
        .groups = o.at("groups"), .channels = o.at("channels"), .eps = o.at("eps"), .affine = o.at("affine")});
  }
  if (name == "ReLU") return std::make_unique<ReLU>();
  if (name == "GELU") return std::make_unique<GELU>();
  if (name == "SiLU") return std::make_unique<SiLU>();
  if (name == "Tanh") return std::make_unique<Tanh>();
  if (name == "Sigmoid") return std::make_unique<Sigmoid>();
  if (name == "LeakyReLU") return std::make_unique<LeakyReLU>(o.at("negative_slope").get<double>());
  if (name == "CELU") return std::make_unique<CELU>(o.at("alpha").get<double>());
  if (name == "Hardswish") return std::make_unique<Hardswish>();
  if (name == "Dropout") return std::make_unique<Dropout>(o.at("p"));
  if (name == "MaxPool2d") return std::make_unique<MaxPool2d>(pool_options(o));
  if (name == "AvgPool2d") return std::make_unique<AvgPool2d>(pool_options(o));
  if (name == "GlobalAvgPool2d") return std::make_unique<GlobalAvgPool2d>();
  if (name == "Flatten") return std::make_unique<Flatten>();
  if (name == "Scale") return std::make_unique<Scale>(o.at("factor"));
  fail("unknown layer '{}'", name);
}

}  // namespace

NamedTensors run_layer(const CaseFile& file) {
  const json& options = file.description.at("options");
  const Tensor x = file.at("x");
  const auto layer = make_layer(file.description.at("op").get<std::string>().substr(6), options);
  layer->to(x.dtype());
  layer->train(options.value("training", true));
  NamedTensors state;
  for (const auto& entry : file.tensors) {
    if (entry.first != "x" && entry.first != "grad_output") state.push_back(entry);
  }
  layer->load_state_dict(state);

  autograd::set_requires_grad(x);
  const Tensor output = (*layer)(x);
  autograd::backward(output, file.at("grad_output"));
  NamedTensors results{{"output", output.detach()}, {"grad.x", autograd::grad(x)}};
  for (const auto& [name, parameter] : layer->named_parameters())
    results.emplace_back("grad." + name, autograd::grad(parameter));
  for (const auto& [name, buffer] : layer->named_buffers()) results.emplace_back("state." + name, buffer);
  return results;
}

}  // namespace tandem::parity
