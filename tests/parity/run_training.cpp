// Parity cases of whole networks: one forward and backward pass, or a number of training steps.
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/ema.h"
#include "tests/parity/parity_runner.h"

#include <optional>

namespace tandem::parity {

std::unique_ptr<layers::Module> load_model(const CaseFile& file) {
  const json& o = file.description.at("model");
  layers::ModelOptions options{.name = o.at("name")};
  options.in_channels = o.value("in_channels", options.in_channels);
  options.image_size = o.value("image_size", options.image_size);
  options.classes = o.value("classes", options.classes);
  options.layers = o.value("layers", options.layers);
  options.shared_weights = o.value("shared_weights", options.shared_weights);
  options.batch_norm = o.value("batch_norm", options.batch_norm);
  options.width = o.value("width", options.width);
  options.activation = o.value("activation", options.activation);
  options.unit_head = o.value("unit_head", options.unit_head);
  options.celu_alpha = o.value("celu_alpha", options.celu_alpha);
  options.ghost_batch = o.value("ghost_batch", options.ghost_batch);
  if (o.contains("norm_momentum")) options.norm_momentum = o.at("norm_momentum");
  options.conv_impl = kernels::parse_conv_impl(o.value("conv_impl", "auto"));
  auto model = layers::make_model(options);
  const NamedTensors weights = layers::read_safetensors(file.stem + ".weights.safetensors").tensors;
  model->to(weights.front().second.dtype() == DType::i64 ? weights.back().second.dtype()
                                                         : weights.front().second.dtype());
  model->load_state_dict(weights);
  return model;
}

NamedTensors run_model(const CaseFile& file) {
  const auto model = load_model(file);
  model->train(file.description.at("training"));
  const Tensor logits = (*model)(file.at("images"));
  const Tensor loss = autograd::softmax_cross_entropy(logits, file.at("labels"));
  autograd::backward(loss);
  NamedTensors results{{"logits", logits.detach()}, {"loss", loss.detach()}};
  for (const auto& [name, parameter] : model->named_parameters()) {
    if (autograd::requires_grad(parameter)) results.emplace_back("grad." + name, autograd::grad(parameter));
  }
  for (const auto& [name, buffer] : model->named_buffers()) results.emplace_back("state." + name, buffer);
  return results;
}

NamedTensors run_training(const CaseFile& file) {
  const json& o = file.description;
  const auto model = load_model(file);
  const std::vector<Tensor> parameters = model->parameters();
  const auto optimizer = make_optimizer(o.at("optimizer"), parameters);
  add_groups(o.at("optimizer"), *optimizer);
  const auto schedule = make_schedule(o.at("schedule"));
  const double clip_norm = o.at("clip_norm"), label_smoothing = o.at("label_smoothing");
  const Tensor images = file.at("images"), labels = file.at("labels");

  std::optional<optim::Lookahead> lookahead;
  if (o.contains("lookahead")) lookahead.emplace(model->state_dict(), *optimizer, lookahead_options(o.at("lookahead")));

  std::optional<optim::ExponentialMovingAverage> ema;
  if (o.contains("ema")) {
    const json& of_average = o.at("ema");
    ema.emplace(model->state_dict(), of_average.at("decay"),
                optim::AverageOptions{.every = of_average.at("every"), .warms_up = of_average.at("warms_up")});
  }

  std::vector<double> losses;
  for (std::int64_t step = 0; step < images.size(0); ++step) {
    optimizer->zero_grad();
    optimizer->begin_step(step);
    const Tensor logits = (*model)(images.select(0, step));
    const Tensor loss = autograd::softmax_cross_entropy(logits, labels.select(0, step).contiguous(), label_smoothing);
    autograd::backward(loss);
    if (clip_norm > 0) optim::clip_grad_norm(parameters, clip_norm);
    optimizer->set_lr_factor(schedule->lr_factor(static_cast<double>(step)));
    optimizer->step();
    if (lookahead) lookahead->after_step(step + 1, images.size(0));
    if (ema) ema->update();
    losses.push_back(loss.item());
  }
  if (lookahead) lookahead->finish();
  layers::write_safetensors(file.stem + ".trained.safetensors", ema ? ema->averages() : model->state_dict());
  return {{"losses", Tensor::from(losses, {images.size(0)})}};
}

}  // namespace tandem::parity
