// Products of dimensions, and names of folders.
#include "apps/study/plan.h"

#include "tandem/comm/ddp/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tandem::study {
namespace {

/// Lists of a variant as one point each.
std::vector<Settings> steps_of(const Variant& variant) {
  const std::size_t count = variant.together.empty() ? 1 : variant.together.front().values.size();
  std::vector<Settings> steps(count);
  for (const Dimension& dimension : variant.together)
    for (std::size_t i = 0; i < count; ++i) steps[i].emplace_back(dimension.name, dimension.values[i]);
  return steps;
}

void set(Settings& settings, const std::string& name, const std::string& value) {
  const auto found = std::ranges::find(settings, name, &Settings::value_type::first);
  if (found == settings.end()) {
    settings.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

/// Letters, digits, points and dashes of a text, as a part of a name of a folder.
std::string slug(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string name;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (is_plain) name += c;
    if (!is_plain && !name.empty() && name.back() != '-') name += '-';
  }
  name = name.substr(0, kLongest);
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  return name;
}

/// Points without their settings: the product of variants and grid, the last dimension the fastest.
std::vector<std::pair<Settings, Settings>> coordinates_and_settings(const Study& study) {
  std::vector<std::pair<Settings, Settings>> points;
  if (study.variants.empty()) points.emplace_back();
  for (const Variant& variant : study.variants) {
    for (const Settings& step : steps_of(variant)) {
      Settings coordinates{{kVariant, variant.name}}, settings = variant.settings;
      if (!step.empty()) coordinates.push_back(step.front());  // the others follow from it
      set_all(settings, step);
      points.emplace_back(std::move(coordinates), std::move(settings));
    }
  }
  for (const Dimension& dimension : study.grid) {
    std::vector<std::pair<Settings, Settings>> product;
    for (const auto& [coordinates, settings] : points) {
      for (const std::string& value : dimension.values) {
        product.emplace_back(coordinates, settings);
        set(product.back().first, dimension.name, value);
        set(product.back().second, dimension.name, value);
      }
    }
    points = std::move(product);
  }
  return points;
}

}  // namespace

std::string key_of(const Study& study, const Settings& settings) {
  std::string text = study.program + '\n';
  for (const auto& [name, value] : settings) text += fmt::format("{}={}\n", name, value);
  return fmt::format("{:012x}", comm::hash_bytes(text.data(), text.size()) >> 16);
}

void set_all(Settings& settings, const Settings& others) {
  for (const auto& [name, value] : others) set(settings, name, value);
}

Plan make_plan(const Study& study, const PlanOptions& options) {
  Plan plan{study, {}, {}};
  for (auto& [coordinates, varied] : coordinates_and_settings(study)) {
    Settings settings = study.all;
    set_all(settings, options.extent == Extent::quick ? study.quick : study.full);
    set_all(settings, options.settings);
    set_all(settings, varied);
    std::ranges::sort(settings);
    const auto variant = std::ranges::find(study.variants, value_of(coordinates, kVariant), &Variant::name);
    const bool is_optional = variant != study.variants.end() && variant->is_optional;
    plan.points.push_back({coordinates, settings, key_of(study, settings), label_of(coordinates), is_optional});
  }
  for (int seed = 1; seed <= options.seeds; ++seed) {
    for (std::size_t i = 0; i < plan.points.size(); ++i) {
      const Point& point = plan.points[i];
      plan.runs.push_back(
          {i, seed, fmt::format("{}-{}-{}", slug(study.name), slug(point.label), folder_end(point, seed))});
    }
  }
  return plan;
}

std::string folder_end(const Point& point, int seed) { return fmt::format("{}-seed-{}", point.key, seed); }

std::string value_of(const Settings& settings, const std::string& name) {
  const auto found = std::ranges::find(settings, name, &Settings::value_type::first);
  return found == settings.end() ? "" : found->second;
}

std::string label_of(const Settings& coordinates) {
  std::string label;
  for (const auto& [name, value] : coordinates) {
    if (!label.empty()) label += " \xC2\xB7 ";
    label += name == kVariant ? value : fmt::format("{} {}", name, value);
  }
  return label;
}

std::vector<std::string> dimensions_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const Point& point : plan.points)
    for (const auto& coordinate : point.coordinates)
      if (std::ranges::find(names, coordinate.first) == names.end()) names.push_back(coordinate.first);
  return names;
}

std::size_t baseline_of(const Plan& plan, std::size_t point) {
  Settings wanted = plan.points[point].coordinates, baseline = plan.study.baseline;
  if (baseline.empty()) {
    // The first value of what is varied first.
    baseline.push_back(plan.points.front().coordinates.front());
  }
  for (auto& [name, value] : wanted)
    if (const std::string other = value_of(baseline, name); !other.empty()) value = other;
  const auto found = std::ranges::find(plan.points, wanted, &Point::coordinates);
  if (found != plan.points.end()) return static_cast<std::size_t>(found - plan.points.begin());
  // Variants may have lists of their own: the first point that has the baseline's values.
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const Settings& own = plan.points[i].coordinates;
    const bool fits =
        std::ranges::all_of(baseline, [&](const auto& entry) { return value_of(own, entry.first) == entry.second; });
    if (fits) return i;
  }
  return point;
}

std::vector<std::string> command_of(const std::string& program_file, const Study& study, const Point& point, int seed) {
  std::vector<std::string> words;
  if (const std::string ranks = value_of(point.settings, kRanks); !ranks.empty() && ranks != "1")
    words = {"mpirun", "-np", ranks};
  if (const std::string hosts = value_of(point.settings, kHosts); !hosts.empty() && !words.empty())
    words.insert(words.end(), {"--host", hosts});
  words.push_back(program_file);
  for (const auto& [name, value] : point.settings)
    if (name != kRanks && name != kHosts) words.push_back(fmt::format("--{}={}", name, value));
  if (study.program == "cifar_train") words.push_back(fmt::format("--seed={}", seed));
  return words;
}

}  // namespace tandem::study
