// Parity cases of optimizers and schedules on given gradients.
#include "tandem/autograd/variable.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/clip_grad_norm.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/muon.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/sgd.h"
#include "tests/parity/parity_runner.h"

#include <optional>

namespace tandem::parity {

namespace {

using namespace optim;

template <typename Options>
Options adam_options(const json& o, Options options) {
  options.lr = o.at("lr");
  const std::array<double, 2> betas = o.value("betas", std::array{options.beta1, options.beta2});
  options.beta1 = betas[0];
  options.beta2 = betas[1];
  options.weight_decay = o.value("weight_decay", options.weight_decay);
  options.amsgrad = o.value("amsgrad", false);
  return options;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const json& o, std::vector<Tensor> parameters) {
  const std::string name = o.at("name");
  if (name == "sgd") {
    return std::make_unique<SGD>(std::move(parameters), SGDOptions{.lr = o.at("lr"),
                                                                   .momentum = o.value("momentum", 0.0),
                                                                   .dampening = o.value("dampening", 0.0),
                                                                   .weight_decay = o.value("weight_decay", 0.0),
                                                                   .nesterov = o.value("nesterov", false)});
  }
  if (name == "adam") return std::make_unique<Adam>(std::move(parameters), adam_options(o, AdamOptions{}));
  if (name == "adamw") return std::make_unique<AdamW>(std::move(parameters), adam_options(o, AdamWOptions{}));
  if (name == "muon") {
    MuonOptions options{.lr = o.at("lr"), .aux_lr = o.at("aux_lr")};
    options.momentum = o.value("momentum", options.momentum);
    options.weight_decay = o.value("weight_decay", options.weight_decay);
    options.normalize = o.value("normalize", options.normalize);
    if (o.contains("normalize_every")) {
      const json& every = o.at("normalize_every");
      options.normalize_every = {.first = every.at(0), .more = every.at(1), .steps = every.at(2)};
    }
    if (o.contains("coefficients")) options.newton_schulz.coefficients = o.at("coefficients");
    options.newton_schulz.eps = o.value("eps", options.newton_schulz.eps);
    options.aux_momentum = o.value("aux_momentum", options.aux_momentum);
    options.aux_weight_decay = o.value("aux_weight_decay", options.aux_weight_decay);
    return std::make_unique<Muon>(std::move(parameters), options);
  }
  require(name == "rmsprop", "unknown optimizer '{}'", name);
  RMSpropOptions options{.lr = o.at("lr")};
  options.alpha = o.value("alpha", options.alpha);
  options.weight_decay = o.value("weight_decay", 0.0);
  options.momentum = o.value("momentum", 0.0);
  options.centered = o.value("centered", false);
  return std::make_unique<RMSprop>(std::move(parameters), options);
}

std::unique_ptr<Schedule> make_schedule(const json& o) {
  const std::string name = o.at("name");
  if (name == "constant") return std::make_unique<ConstantSchedule>();
  if (name == "step") return std::make_unique<StepSchedule>(o.at("period"), o.at("gamma"));
  if (name == "multi_step") return std::make_unique<MultiStepSchedule>(o.at("milestones"), o.at("gamma"));
  if (name == "cosine") return std::make_unique<CosineSchedule>(o.at("duration"), o.value("final_factor", 0.0));
  if (name == "linear") return std::make_unique<LinearSchedule>(o.at("duration"), o.value("final_factor", 0.0));
  if (name == "warmup") {
    return std::make_unique<WarmupSchedule>(o.at("duration"), o.at("start_factor"), make_schedule(o.at("next")));
  }
  require(name == "one_cycle", "unknown schedule '{}'", name);
  OneCycleOptions options;
  options.pct_start = o.value("pct_start", options.pct_start);
  options.div_factor = o.value("div_factor", options.div_factor);
  options.final_div_factor = o.value("final_div_factor", options.final_div_factor);
  options.linear = o.value("linear", false);
  return std::make_unique<OneCycleSchedule>(o.at("total_steps"), options);
}

void add_groups(const json& o, Optimizer& optimizer) {
  for (const json& description : o.value("groups", json::array())) {
    ParameterGroup group{.lr_factor = description.value("lr_factor", 1.0)};
    for (const std::size_t index : description.at("parameters"))
      group.parameters.push_back(optimizer.parameters().at(index));
    if (description.contains("weight_decay")) group.weight_decay = description.at("weight_decay");
    if (description.contains("momentum")) group.momentum = description.at("momentum");
    if (description.contains("schedule")) group.schedule = make_schedule(description.at("schedule"));
    if (description.contains("freeze_step")) group.freeze_step = description.at("freeze_step");
    optimizer.add_group(std::move(group));
  }
}

LookaheadOptions lookahead_options(const json& o) {
  return {.every = o.at("every"), .decay = o.at("decay"), .power = o.at("power")};
}

NamedTensors run_optimizer(const CaseFile& file) {
  const json& o = file.description;
  const std::int64_t steps = o.at("steps");
  const double clip_norm = o.at("clip_norm");
  std::vector<Tensor> parameters, gradients;
  for (int i = 0;; ++i) {
    const Tensor parameter = file.find(fmt::format("parameter.{}", i));
    if (!parameter.defined()) break;
    parameters.push_back(autograd::set_requires_grad(parameter));
    gradients.push_back(file.at(fmt::format("gradient.{}", i)));
  }
  const auto optimizer = make_optimizer(o.at("optimizer"), parameters);
  const auto schedule = make_schedule(o.at("schedule"));
  add_groups(o.at("optimizer"), *optimizer);

  // A buffer that each step leaves something else in, as batch norm does.
  const Tensor statistics = file.find("statistics");
  const Tensor buffer = statistics.defined() ? statistics.select(0, 0).clone() : Tensor();
  std::optional<Lookahead> lookahead;
  if (o.contains("lookahead")) {
    NamedTensors tensors{{"buffer", buffer}};
    for (std::size_t i = 0; i < parameters.size(); ++i) tensors.emplace_back(fmt::format("{}", i), parameters[i]);
    lookahead.emplace(tensors, *optimizer, lookahead_options(o.at("lookahead")));
  }

  std::vector<double> rates, norms;
  for (std::int64_t step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      autograd::set_grad(parameters[i], gradients[i].select(0, step).clone());
    }
    if (clip_norm > 0) norms.push_back(clip_grad_norm(parameters, clip_norm));
    optimizer->set_lr_factor(schedule->lr_factor(static_cast<double>(step)));
    rates.push_back(optimizer->lr());
    optimizer->step();
    if (!lookahead) continue;
    buffer.copy_from(statistics.select(0, step + 1));
    lookahead->after_step(step + 1, steps);
  }
  if (lookahead) lookahead->finish();
  NamedTensors results{{"lr", Tensor::from(rates, {steps})}};
  if (clip_norm > 0) results.emplace_back("norm", Tensor::from(norms, {steps}));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    results.emplace_back(fmt::format("parameter.{}", i), parameters[i].detach());
  if (lookahead) results.emplace_back("buffer", buffer);
  return results;
}

}  // namespace tandem::parity
