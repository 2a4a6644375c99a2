// "Did you mean ...?": the known name nearest to a mistyped one, and what there is to choose from.
// Example:
//     const std::string near = nearest_name("rsnet18", {"resnet9", "resnet18", "vgg_lite"});  // "resnet18"
#pragma once

#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// The candidate with the fewest edits (insert, delete, replace or swap of neighbours; case counts for nothing) from
/// `name`, the first of equals. If none is near (at most one edit in three letters), the shortest candidate that begins
/// with `name`, of three letters or more; else empty.
std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates);

/// The same for any range of texts.
template <std::ranges::input_range Names>
std::string nearest_name(std::string_view name, const Names& candidates) {
  const std::vector<std::string_view> views(std::ranges::begin(candidates), std::ranges::end(candidates));
  return nearest_name(name, std::span<const std::string_view>(views));
}
inline std::string nearest_name(std::string_view name, std::initializer_list<std::string_view> candidates) {
  return nearest_name(name, std::span<const std::string_view>(candidates.begin(), candidates.size()));
}

/// "a, b or c"
std::string one_of(std::span<const std::string_view> names);

/// The same for any range of texts.
template <std::ranges::input_range Names>
std::string one_of(const Names& names) {
  const std::vector<std::string_view> views(std::ranges::begin(names), std::ranges::end(names));
  return one_of(std::span<const std::string_view>(views));
}

/// The error for a name that is none of these: "unknown optimizer 'sdg': did you mean sgd? (choices: sgd, adam)".
/// Without the question where none is near.
std::string unknown_name(std::string_view what, std::string_view name, std::span<const std::string_view> choices);

/// The same for any range of texts.
template <std::ranges::input_range Names>
std::string unknown_name(std::string_view what, std::string_view name, const Names& choices) {
  const std::vector<std::string_view> views(std::ranges::begin(choices), std::ranges::end(choices));
  return unknown_name(what, name, std::span<const std::string_view>(views));
}

}  // namespace tandem
