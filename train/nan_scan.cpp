// Counting, wording, and findings as JSON on their way between ranks.
#include "tandem/train/nan_scan.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/number_text.h"
#include "tandem/kernels/optimizer/all_finite.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

namespace tandem::train {
namespace {

using Json = nlohmann::json;

std::vector<double> values_of(const Tensor& tensor) {
  const autograd::NoGrad no_grad;
  return autograd::cast(tensor.detach().to(Device{}).contiguous(), DType::f64).to_vector<double>();
}

Json json_of(const NanFinding& f) {
  return {{"place", static_cast<int>(f.place)},
          {"step", f.step},
          {"in_evaluation", f.in_evaluation},
          {"rank", f.rank},
          {"layer", f.layer},
          {"description", f.description},
          {"tensor", f.tensor},
          {"dtype", f.dtype},
          {"shape", f.shape},
          {"elements", f.elements},
          {"nans", f.nans},
          {"infinities", f.infinities},
          {"largest_input", f.largest_input},
          {"examples", f.examples}};
}

NanFinding finding_of(const Json& json) {
  return {.place = static_cast<NanPlace>(json.at("place").get<int>()),
          .step = json.at("step"),
          .in_evaluation = json.at("in_evaluation"),
          .rank = json.at("rank"),
          .layer = json.at("layer"),
          .description = json.at("description"),
          .tensor = json.at("tensor"),
          .dtype = json.at("dtype"),
          .shape = json.at("shape"),
          .elements = json.at("elements"),
          .nans = json.at("nans"),
          .infinities = json.at("infinities"),
          .largest_input = json.at("largest_input"),
          .examples = json.at("examples"),
          .other_ranks = {}};
}

/// "features.3 (ReLU)"
std::string layer_text(const NanFinding& f) {
  if (f.layer.empty()) return fmt::format("the model ({})", f.description);
  return f.description.empty() ? f.layer : fmt::format("{} ({})", f.layer, f.description);
}

/// What it is, and what is known of how it came about.
std::pair<std::string, std::string> texts_of(const NanFinding& f) {
  const std::string layer = layer_text(f);
  switch (f.place) {
    case NanPlace::weight:
      return {f.tensor, "it was so before the step"};
    case NanPlace::model_input:
      return {"the input of " + layer, "that is what the loader gave"};
    case NanPlace::layer_input:
      return {"the input of " + layer, "what layers returned before it was finite: the model made it between them"};
    case NanPlace::output:
      return {"the output of " + layer,
              fmt::format("its input and its weights were finite, the largest input {:.4g}", f.largest_input)};
    case NanPlace::output_gradient:
      return {"the gradient of the output of " + layer,
              f.layer.empty() ? "the loss function made it" : "what uses that output made it"};
    case NanPlace::input_gradient:
      return {"the gradient of the input of " + layer, "the gradient of its output was finite: its backward made it"};
    case NanPlace::parameter_gradient:
      return {"the gradient of " + f.tensor,
              fmt::format("the gradient of the output of {} was finite: its backward made it", layer)};
    case NanPlace::exchanged_gradient:
      return {"the gradient of " + f.tensor + ", summed over ranks", "it was finite on each rank"};
    case NanPlace::update:
      return {f.tensor + " behind the step", "its gradient, if it has one, was finite: the step made it"};
  }
  return {};
}

}  // namespace

bool is_finite(const Tensor& tensor) {
  if (!tensor.defined() || !is_floating(tensor.dtype())) return true;
  const Tensor plain = tensor.detach();
  return kernels::all_finite(std::array{plain.is_dense() ? plain : plain.contiguous()});
}

NanFinding scan(const Tensor& tensor) {
  NanFinding finding;
  finding.dtype = name_of(tensor.dtype());
  finding.shape = to_string(tensor.shape());
  finding.elements = tensor.numel();
  for (const double value : values_of(tensor)) {
    finding.nans += std::isnan(value) ? 1 : 0;
    finding.infinities += std::isinf(value) ? 1 : 0;
  }
  return finding;
}

double largest(const Tensor& tensor) {
  if (!is_floating(tensor.dtype())) return 0.0;
  double most = 0.0;
  for (const double value : values_of(tensor)) most = std::max(most, std::abs(value));
  return most;
}

std::vector<std::int64_t> bad_rows(const Tensor& tensor) {
  if (tensor.rank() == 0 || tensor.size(0) == 0) return {};
  const std::vector<double> values = values_of(tensor);
  const std::int64_t row_size = tensor.numel() / tensor.size(0);
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < tensor.size(0); ++row) {
    const auto begin = values.begin() + row * row_size;
    if (!std::all_of(begin, begin + row_size, [](double value) { return std::isfinite(value); })) rows.push_back(row);
  }
  return rows;
}

std::optional<NanFinding> first_of_ranks(const std::optional<NanFinding>& mine, comm::ProcessGroup& group) {
  std::optional<NanFinding> first;
  std::vector<NanFinding> all;
  for (const std::string& text : group.all_gather_bytes(mine ? json_of(*mine).dump() : "")) {
    if (!text.empty()) all.push_back(finding_of(Json::parse(text)));
  }
  const auto order = [](const NanFinding& f) { return std::tuple(f.step, f.in_evaluation, f.place, f.rank); };
  for (const NanFinding& finding : all) {
    if (!first || order(finding) < order(*first)) first = finding;
  }
  for (const NanFinding& other : all) {
    if (other.rank != first->rank && other.step == first->step && other.place == first->place &&
        other.layer == first->layer && other.tensor == first->tensor)
      first->other_ranks.push_back(other.rank);
  }
  return first;
}

std::string_view name_of(NanPlace place) {
  constexpr std::array<std::string_view, 9> kNames{
      "weight",         "model input",        "layer input",        "output", "output gradient",
      "input gradient", "parameter gradient", "exchanged gradient", "update"};
  return kNames.at(static_cast<std::size_t>(place));
}

std::string to_string(const NanFinding& f) {
  const auto [what, why] = texts_of(f);
  std::string ranks = fmt::format("rank {}", f.rank);
  for (const int other : f.other_ranks) ranks += fmt::format(" and {}", other);
  return fmt::format("{}step {}, {}: {}, {}{}, has {} NaN and {} Inf among {} elements; {}",
                     f.in_evaluation ? "evaluation behind " : "", f.step, ranks, what, f.dtype, f.shape,
                     with_separators(f.nans), with_separators(f.infinities), with_separators(f.elements), why);
}

}  // namespace tandem::train
