// Module: state dicts out and in.
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/layers/module.h"
#include "tandem/layers/safetensors/header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace tandem::layers {

namespace {

/// A name for messages. State dicts may come from any file, and their names may hold anything.
std::string printable(const std::string& name) {
  constexpr std::size_t kLongest = 200;
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
  return plain && name.size() <= kLongest ? name : safetensors::escaped(name);
}

/// "; what: a, b, c and 5 more"; empty for no names.
std::string list_names(std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  constexpr std::size_t kShown = 6;
  const std::size_t shown = std::min(names.size(), kShown);
  const std::string rest = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : std::string();
  return fmt::format("; {}: {}{}", what,
                     fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "), rest);
}

/// Why `from` cannot be copied to `to`, the module's tensor of this name; or empty.
std::string misfit_of(const std::string& name, const Tensor& from, const Tensor& to) {
  if (from.shape() != to.shape())
    return fmt::format("{} is {}, the model has {}", name, to_string(from.shape()), to_string(to.shape()));
  if (from.dtype() != to.dtype() && !(is_floating(from.dtype()) && is_floating(to.dtype())))
    return fmt::format("{} holds {}, the model {}", name, name_of(from.dtype()), name_of(to.dtype()));
  return {};
}

/// Which options would let these pass.
std::string advice_for(const IncompatibleKeys& refused) {
  std::string options;
  if (!refused.missing_keys.empty() || !refused.unexpected_keys.empty()) options = ".strict = false";
  if (!refused.mismatched_keys.empty())
    options += fmt::format("{}.ignore_mismatched = true", options.empty() ? "" : ", ");
  return fmt::format(" (LoadStateDictOptions{{{}}} would pass over them)", options);
}

}  // namespace

std::string to_string(const IncompatibleKeys& keys) {
  std::vector<std::string> unexpected, problems;  // names may come from any file
  for (const std::string& name : keys.unexpected_keys) unexpected.push_back(printable(name));
  for (const auto& mismatch : keys.mismatched_keys) problems.push_back(mismatch.problem);
  const std::string text = list_names("missing", keys.missing_keys) + list_names("unexpected", unexpected) +
                           list_names("wrong shape or dtype", problems);
  return text.empty() ? text : text.substr(2);
}

NamedTensors Module::state_dict() const {
  NamedTensors result;
  for (const auto& [name, parameter] : parameters_) result.emplace_back(name, parameter->detach());
  for (const auto& [name, buffer] : buffers_) result.emplace_back(name, buffer->detach());
  for (const auto& [child_name, child] : children_) {
    for (const auto& [name, tensor] : child->state_dict())
      result.emplace_back(fmt::format("{}.{}", child_name, name), tensor);
  }
  return result;
}

IncompatibleKeys Module::load_state_dict(const NamedTensors& state, const LoadStateDictOptions& options) {
  const NamedTensors own = state_dict();
  std::map<std::string_view, const Tensor*> given;
  IncompatibleKeys left;
  for (const auto& [name, tensor] : state) {
    require(tensor.defined(), "load_state_dict: tensor {} is undefined", printable(name));
    require(given.emplace(name, &tensor).second, "load_state_dict: tensor {} is given twice", printable(name));
  }
  std::vector<std::pair<Tensor, Tensor>> copies;  // to, from
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    if (found == given.end()) {
      left.missing_keys.push_back(name);
      continue;
    }
    const Tensor& from = *found->second;
    given.erase(found);
    const std::string problem = misfit_of(name, from, tensor);
    if (problem.empty())
      copies.emplace_back(tensor, from);
    else
      left.mismatched_keys.push_back({name, problem});
  }
  for (const auto& [name, tensor] : state) {
    if (given.contains(name)) left.unexpected_keys.push_back(name);
  }
  IncompatibleKeys refused = left;
  if (!options.strict) refused.missing_keys = refused.unexpected_keys = {};
  if (options.ignore_mismatched) refused.mismatched_keys = {};
  if (!refused.empty()) {
    throw IncompatibleStateError(fmt::format("load_state_dict: the tensors do not fit this model; {}{}",
                                             to_string(refused), advice_for(refused)),
                                 refused);
  }

  const autograd::NoGrad no_grad;
  for (const auto& [to, from] : copies)
    to.copy_from(from.dtype() == to.dtype() ? from : autograd::cast(from.detach(), to.dtype()));
  return left;
}

}  // namespace tandem::layers
