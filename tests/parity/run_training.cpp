// Parity cases of whole networks: one forward and backward pass, or a number of training steps.
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/ema.h"
#include "tests/parity/parity_runner.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

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

namespace {

/// A network, what trains it, and its batches.
struct Training {
  std::unique_ptr<layers::Module> model;
  std::vector<Tensor> parameters;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  std::optional<optim::Lookahead> lookahead;
  std::optional<optim::ExponentialMovingAverage> ema;
  Tensor images, labels;
  double clip_norm, label_smoothing;

  explicit Training(const CaseFile& file)
      : model(load_model(file)),
        parameters(model->parameters()),
        optimizer(make_optimizer(file.description.at("optimizer"), parameters)),
        schedule(make_schedule(file.description.at("schedule"))),
        images(file.at("images")),
        labels(file.at("labels")),
        clip_norm(file.description.at("clip_norm")),
        label_smoothing(file.description.at("label_smoothing")) {
    const json& o = file.description;
    add_groups(o.at("optimizer"), *optimizer);
    if (o.contains("lookahead"))
      lookahead.emplace(model->state_dict(), *optimizer, lookahead_options(o.at("lookahead")));
    if (!o.contains("ema")) return;
    const json& of_average = o.at("ema");
    ema.emplace(model->state_dict(), of_average.at("decay"),
                optim::AverageOptions{.every = of_average.at("every"), .warms_up = of_average.at("warms_up")});
  }

  std::int64_t steps() const { return images.size(0); }

  Tensor loss_of(std::int64_t step) const {
    const Tensor logits = (*model)(images.select(0, step));
    return autograd::softmax_cross_entropy(logits, labels.select(0, step).contiguous(), label_smoothing);
  }

  /// Returns the loss before the step.
  double take_step(std::int64_t step) {
    optimizer->zero_grad();
    optimizer->begin_step(step);
    const Tensor loss = loss_of(step);
    autograd::backward(loss);
    if (clip_norm > 0) optim::clip_grad_norm(parameters, clip_norm);
    optimizer->set_lr_factor(schedule->lr_factor(static_cast<double>(step)));
    optimizer->step();
    if (lookahead) lookahead->after_step(step + 1, steps());
    if (ema) ema->update();
    return loss.item();
  }
};

/// Of the tensors "<kind>.<name>" the `step`-th, by their names.
NamedTensors recorded(const NamedTensors& states, const std::string& kind, std::int64_t step) {
  NamedTensors result;
  for (const auto& [name, tensor] : states)
    if (name.starts_with(kind + "."))
      result.emplace_back(name.substr(kind.size() + 1), tensor.select(0, step).contiguous());
  return result;
}

}  // namespace

NamedTensors run_training(const CaseFile& file) {
  Training training(file);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < training.steps(); ++step) losses.push_back(training.take_step(step));
  if (training.lookahead) training.lookahead->finish();
  layers::write_safetensors(file.stem + ".trained.safetensors",
                            training.ema ? training.ema->averages() : training.model->state_dict());
  return {{"losses", Tensor::from(losses, {training.steps()})}};
}

NamedTensors run_single_steps(const CaseFile& file) {
  const NamedTensors states = layers::read_safetensors(file.stem + ".states.safetensors").tensors;
  const std::int64_t steps = file.at("images").size(0);
  std::vector<double> losses;
  for (std::int64_t step = 0; step + 1 < steps; ++step) {
    // Anew: momentum that is not loaded would be that of the step before, which is the same but for rounding.
    Training training(file);
    if (step > 0) {
      training.model->load_state_dict(recorded(states, "model", step));
      training.optimizer->load_state_dict(recorded(states, "optimizer", step));
      if (training.lookahead) training.lookahead->load(recorded(states, "lookahead", step), step);
    }
    const double before = training.take_step(step);
    if (step == 0) losses.push_back(before);
    losses.push_back(training.loss_of(step + 1).item());
  }
  return {{"losses", Tensor::from(losses, {steps})}};
}

}  // namespace tandem::parity
