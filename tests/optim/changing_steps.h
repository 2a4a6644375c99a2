// Optimizers whose rates, factors and skipped steps change from step to step, and the same by kernels that take every
// number by value.
#pragma once

#include "tandem/autograd/grad_mode.h"
#include "tandem/core/out.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/rmsprop.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/optimizer/tensor_list.h"
#include "tandem/optim/adam.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/muon.h"
#include "tandem/optim/rmsprop.h"
#include "tandem/optim/sgd.h"
#include "tests/optim/optimizer_support.h"

#include <array>
#include <cmath>
#include <memory>
#include <set>

namespace tandem::test {

enum class Rule : std::uint8_t { sgd, plain_sgd, dampened_sgd, adam, adamw, rmsprop, muon };

/// Those of a kernel that takes every number by value, too.
inline constexpr std::array kRules{Rule::sgd,  Rule::plain_sgd, Rule::dampened_sgd,
                                   Rule::adam, Rule::adamw,     Rule::rmsprop};
inline constexpr double kBaseLr = 0.03, kDecay = 0.013, kBiasFactor = 3.0, kBiasDecay = 0.27, kLossScale = 8.0;
inline const std::set<std::uint32_t> kBad{1, 4, 5, 9};  // the first one, two in a row

/// Those of make_parameters() on a device.
inline std::vector<Tensor> parameters_on(Device device, DType dtype) {
  std::vector<Tensor> result;
  for (const Tensor& parameter : make_parameters(dtype))
    result.push_back(autograd::set_requires_grad(parameter.detach().to(device)));
  return result;
}

/// The second parameter is in a group of its own.
inline std::unique_ptr<optim::Optimizer> make_changing(Rule rule, const std::vector<Tensor>& parameters) {
  std::unique_ptr<optim::Optimizer> optimizer;
  switch (rule) {
    case Rule::sgd:
      optimizer = std::make_unique<optim::SGD>(
          parameters, optim::SGDOptions{.lr = kBaseLr, .momentum = 0.9, .weight_decay = kDecay, .nesterov = true});
      break;
    case Rule::plain_sgd:
      optimizer = std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = kBaseLr, .weight_decay = kDecay});
      break;
    case Rule::dampened_sgd:
      optimizer = std::make_unique<optim::SGD>(
          parameters, optim::SGDOptions{.lr = kBaseLr, .momentum = 0.9, .dampening = 0.3, .weight_decay = kDecay});
      break;
    case Rule::adam:
      optimizer = std::make_unique<optim::Adam>(
          parameters, optim::AdamOptions{.lr = kBaseLr, .weight_decay = kDecay, .amsgrad = true});
      break;
    case Rule::adamw:
      optimizer =
          std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = kBaseLr, .weight_decay = kDecay});
      break;
    case Rule::rmsprop:
      optimizer = std::make_unique<optim::RMSprop>(
          parameters, optim::RMSpropOptions{.lr = kBaseLr, .weight_decay = kDecay, .momentum = 0.9, .centered = true});
      break;
    case Rule::muon:
      optimizer = std::make_unique<optim::Muon>(
          parameters, optim::MuonOptions{.lr = kBaseLr,
                                         .weight_decay = kDecay,
                                         .normalize_every = {.first = 4, .more = 1, .steps = 11},
                                         .aux_lr = 0.02});
      break;
  }
  optimizer->add_group({.parameters = {parameters[1]}, .lr_factor = kBiasFactor, .weight_decay = kBiasDecay});
  return optimizer;
}

/// Of a step, counted from 1.
inline double lr_factor_at(std::uint32_t step) { return 1.0 / (1.0 + 0.31 * step); }
inline double clip_factor_at(std::uint32_t step) { return step % 3 == 0 ? 1.0 : 0.7 + 0.01 * step; }

/// Gradients of a step, with an infinity in bad ones.
inline void set_gradients_of(const std::vector<Tensor>& parameters, std::uint32_t step) {
  for (const Tensor& parameter : parameters) {
    set_gradient(parameter, step);
    if (kBad.contains(step) && parameter.rank() == 1)
      autograd::grad(parameter).narrow(0, 17, 1).fill(static_cast<double>(INFINITY));
  }
}

/// A step of the optimizer, which a GPU skips by itself.
inline void take_changing_step(optim::Optimizer& optimizer, optim::GradScaler& scaler, std::uint32_t step) {
  set_gradients_of(optimizer.parameters(), step);
  scaler.unscale(optimizer);
  optimizer.scale_gradients(clip_factor_at(step));
  optimizer.set_lr_factor(lr_factor_at(step));
  scaler.step(optimizer);
  scaler.update();
}

/// The same steps, each parameter by a call of its own.
struct ByValue {
  Rule rule;
  std::vector<Tensor> parameters;
  std::vector<Tensor> masters;
  std::vector<std::vector<Tensor>> states;
  std::int64_t taken = 0;

  ByValue(Rule which, std::vector<Tensor> given) : rule(which), parameters(std::move(given)) {
    for (const Tensor& parameter : parameters) {
      const Tensor wide = empty_like(parameter, kernels::optimizer_state_dtype(parameter.dtype()));
      masters.emplace_back();
      if (is_half(parameter.dtype())) masters.back() = cast_like(parameter, wide);
      states.push_back({zeros_of(wide), zeros_of(wide), zeros_of(wide)});
    }
  }

  void step(std::uint32_t step) {
    if (kBad.contains(step)) return;
    const autograd::NoGrad no_grad;
    set_gradients_of(parameters, step);
    ++taken;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const double lr = kBaseLr * lr_factor_at(step) * (i == 1 ? kBiasFactor : 1.0),
                   decay = i == 1 ? kBiasDecay : kDecay, factor = 1.0 / kLossScale * clip_factor_at(step);
      const Out p(parameters[i]), master(masters[i]), a(states[i][0]), b(states[i][1]), c(states[i][2]);
      const Tensor g = autograd::grad(parameters[i]);
      switch (rule) {
        case Rule::sgd:
        case Rule::plain_sgd:
        case Rule::dampened_sgd: {
          const bool plain = rule == Rule::plain_sgd;
          kernels::sgd_step(std::vector{kernels::SgdItem{p, g, plain ? Out() : a, taken == 1, master}},
                            {.lr = lr,
                             .momentum = plain ? 0.0 : 0.9,
                             .dampening = rule == Rule::dampened_sgd ? 0.3 : 0.0,
                             .weight_decay = decay,
                             .nesterov = rule == Rule::sgd,
                             .gradient_factor = factor});
          break;
        }
        case Rule::adam:
        case Rule::adamw:
          kernels::adam_step(std::vector{kernels::AdamItem{p, g, a, b, rule == Rule::adam ? c : Out(), taken, master}},
                             {.lr = lr,
                              .weight_decay = decay,
                              .decoupled_weight_decay = rule == Rule::adamw,
                              .gradient_factor = factor});
          break;
        case Rule::rmsprop:
          kernels::rmsprop_step(std::vector{kernels::RmspropItem{p, g, a, b, c, master}},
                                {.lr = lr, .weight_decay = decay, .momentum = 0.9, .gradient_factor = factor});
          break;
        case Rule::muon:
          fail("there is no one kernel of Muon");
      }
    }
  }

 private:
  static Tensor empty_like(const Tensor& model, DType dtype) {
    return Tensor::empty(model.shape(), {.dtype = dtype, .device = model.device()})
        .as_strided(model.shape(), model.strides(), 0);
  }
  static Tensor zeros_of(const Tensor& model) {
    const Tensor result = empty_like(model, model.dtype());
    result.zero();
    return result;
  }
  static Tensor cast_like(const Tensor& from, const Tensor& to) {
    kernels::cast(from.detach(), Out(to));
    return to;
  }
};

}  // namespace tandem::test
