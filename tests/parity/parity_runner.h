// What the kinds of parity cases share: the case that came in and the tensors that go out.
#pragma once

#include "tandem/kernels/activation/activation.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/pool/pool2d_options.h"
#include "tandem/layers/module.h"
#include "tandem/layers/safetensors.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/schedule.h"

#include <nlohmann/json.hpp>

namespace tandem::parity {

using nlohmann::json;

/// A case file: its description, its tensors, and the path of its other files without their suffixes.
struct CaseFile {
  json description;
  NamedTensors tensors;
  std::string stem;

  /// A tensor by name; undefined where the case has none.
  Tensor find(const std::string& name) const;
  /// Throws where there is none.
  Tensor at(const std::string& name) const;
};

/// {"kind": "op", "op": name, "options": {...}, "constant": [names], "state": [names]}: inputs by name and grad_output.
/// Gives "output", "grad.<input>" and "state.<input>".
NamedTensors run_op(const CaseFile& file);

/// The same with "op": "layer.<Class>"; inputs other than x are the layer's state dict.
NamedTensors run_layer(const CaseFile& file);

/// {"kind": "optimizer", "optimizer", "schedule", "steps", "clip_norm"}: tensors "parameter.<i>" and "gradient.<i>",
/// one gradient per step. Gives the last parameters, "lr" and "norm". With "lookahead": {"every", "decay", "power"},
/// also "statistics", what a buffer is at first and behind each step; gives the last "buffer", too.
NamedTensors run_optimizer(const CaseFile& file);

/// {"kind": "model", "model": {...}, "training": bool}: loss, logits and all gradients of one batch; weights from
/// <stem>.weights.safetensors.
NamedTensors run_model(const CaseFile& file);

/// {"kind": "training", ...}: the losses of one step per batch; the trained weights go to <stem>.trained.safetensors.
/// With "lookahead" as above, these are the slow ones.
NamedTensors run_training(const CaseFile& file);

/// {"kind": "single_steps", ...}: each step begins with what PyTorch has before it, of <stem>.states.safetensors:
/// "model.<name>", "optimizer.<name>" and "lookahead.<name>", a row for each step. Gives "losses": of the first batch,
/// and of each further one behind the step before it.
NamedTensors run_single_steps(const CaseFile& file);

/// {"kind": "views", "model", "views", "share"}: the logits of test-time augmentation; weights as above.
NamedTensors run_views(const CaseFile& file);

/// {"kind": "whitening", "kernel", "eps"}: the filters of these images.
NamedTensors run_whitening(const CaseFile& file);

/// The network of a case with the weights beside it, in the dtype of these.
std::unique_ptr<layers::Module> load_model(const CaseFile& file);
std::unique_ptr<optim::Optimizer> make_optimizer(const json& description, std::vector<Tensor> parameters);
std::unique_ptr<optim::Schedule> make_schedule(const json& description);
/// "groups" of an optimizer's description, by the places of parameters.
void add_groups(const json& description, optim::Optimizer& optimizer);
optim::LookaheadOptions lookahead_options(const json& description);

/// A value of a JSON object as {height, width}.
HeightWidth pair_of(const json& options, const char* key, HeightWidth otherwise);
kernels::Conv2dOptions conv_options(const json& options);
kernels::Pool2dOptions pool_options(const json& options);
/// "activation": its name.
kernels::Activation activation_of(const json& options);

}  // namespace tandem::parity
