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

/// "what: a, b, c and 5 more"; empty for no names.
std::string list_names(std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  constexpr std::size_t kShown = 6;
  const std::size_t shown = std::min(names.size(), kShown);
  const std::string rest = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : std::string();
  return fmt::format("; {}: {}{}", what,
                     fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "), rest);
}

}  // namespace

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

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  const NamedTensors own = state_dict();
  std::map<std::string_view, const Tensor*> given;
  std::vector<std::string> missing, unexpected, unfit;
  for (const auto& [name, tensor] : state) {
    require(tensor.defined(), "load_state_dict: tensor {} is undefined", printable(name));
    require(given.emplace(name, &tensor).second, "load_state_dict: tensor {} is given twice", printable(name));
  }
  std::vector<std::pair<Tensor, Tensor>> copies;  // to, from
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    if (found == given.end()) {
      missing.push_back(name);
      continue;
    }
    const Tensor& from = *found->second;
    given.erase(found);
    if (from.shape() != tensor.shape()) {
      unfit.push_back(
          fmt::format("{} is {}, the model has {}", name, to_string(from.shape()), to_string(tensor.shape())));
    } else if (from.dtype() != tensor.dtype() && !(is_floating(from.dtype()) && is_floating(tensor.dtype()))) {
      unfit.push_back(fmt::format("{} holds {}, the model {}", name, name_of(from.dtype()), name_of(tensor.dtype())));
    } else {
      copies.emplace_back(tensor, from);
    }
  }
  for (const auto& [name, tensor] : state) {
    if (given.contains(name)) unexpected.push_back(printable(name));  // it may come from any file
  }
  if (!strict) {
    missing.clear();
    unexpected.clear();
  }
  require(missing.empty() && unexpected.empty() && unfit.empty(),
          "load_state_dict: the tensors do not fit this model{}{}{}", list_names("missing", missing),
          list_names("unexpected", unexpected), list_names("wrong shape or dtype", unfit));

  const autograd::NoGrad no_grad;
  for (const auto& [to, from] : copies)
    to.copy_from(from.dtype() == to.dtype() ? from : autograd::cast(from.detach(), to.dtype()));
}

}  // namespace tandem::layers
