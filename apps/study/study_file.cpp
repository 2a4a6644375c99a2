// From toml++'s tree to a Study, with the line of what is wrong.
#include "apps/study/study_file.h"

#include "apps/arguments/toml_lines.h"
#include "apps/arguments/toml_value.h"
#include "apps/study/measure.h"
#include "apps/study/plan.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/suggest.h"
#include "tandem/train/report/json_fields.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>

namespace tandem::study {
namespace {

constexpr std::string_view kKeys[] = {"number",  "title", "question", "note",    "program",
                                      "measure", "plot",  "best-of",  "best-by", "run",
                                      "quick",   "full",  "grid",     "variant", "baseline"};
/// What the study itself gives to each run.
constexpr std::string_view kOwnFlags[] = {"seed", "run-dir", "resume", "progress", "config", "log", "json"};
/// By which a program makes no run that a study could read.
constexpr std::string_view kNoRun[] = {"help", "version", "print-config", "no-run-dir"};
constexpr std::size_t kMostPoints = 1000;

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

/// Keys and values in the order of their lines: a TOML table is sorted by name.
std::vector<std::pair<const toml::key*, const toml::node*>> in_order(const toml::table& table) {
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [key, node] : table) entries.emplace_back(&key, &node);
  std::ranges::stable_sort(entries, [](const auto& a, const auto& b) {
    const auto &first = a.first->source().begin, &second = b.first->source().begin;
    return std::pair(first.line, first.column) < std::pair(second.line, second.column);
  });
  return entries;
}

bool is_number(const std::string& text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

class Reader {
 public:
  Reader(std::string file, const OptionsOf& options_of) : file_(std::move(file)), options_of_(options_of) {}

  Study read(const toml::table& root) {
    study_.file = file_;
    study_.name = std::filesystem::path(file_).stem().string();
    for (const auto& [key, node] : in_order(root)) check_key(*key);
    study_.program = text(root, "program").value_or("cifar_train");
    options_ = options_of_(study_.program);
    options_.emplace_back(kRanks);
    options_.emplace_back(kHosts);
    study_.title = text(root, "title").value_or("");
    if (study_.title.empty()) fail("{}: title: it is missing; give the study one, as title = \"Batch size\"", file_);
    study_.question = text(root, "question").value_or("");
    study_.note = text(root, "note").value_or("");
    read_number(root);
    study_.all = section(root, "run");
    study_.quick = section(root, "quick");
    study_.full = section(root, "full");
    read_variants(root);
    read_grid(root);
    read_measures(root);
    read_plots(root);
    read_best(root);
    read_baseline(root);
    check_hosts();
    return std::move(study_);
  }

 private:
  template <typename... Arguments>
  [[noreturn]] void fail_at(int line, fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail("{}:{}: {}", file_, line, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  void check_key(const toml::key& key) const {
    if (std::ranges::find(kKeys, key.str()) != std::end(kKeys)) return;
    const int line = static_cast<int>(key.source().begin.line);
    const std::vector<std::string> flags = options_of_("cifar_train");
    if (std::ranges::find(flags, key.str()) != flags.end())
      fail_at(line, "'{}' is an option of runs: write it below [run], or below [grid]", key.str());
    fail_at(line, "{}", unknown_name("key", key.str(), kKeys));
  }

  std::optional<std::string> text(const toml::table& table, std::string_view key) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return std::nullopt;
    const auto* const value = node->as_string();
    if (value == nullptr) fail_at(line_of(*node), "{}: is no text; write {} = \"...\"", key, key);
    return value->get();
  }

  void read_number(const toml::table& root) {
    const toml::node* const node = root.get("number");
    if (node == nullptr) return;
    const auto* const value = node->as_integer();
    if (value == nullptr || value->get() < 1 || value->get() > 99)
      fail_at(line_of(*node),
              "number: is no whole number from 1 to 99, by which the study is asked for; leave it out "
              "to ask by the name of the file");
    study_.number = static_cast<int>(value->get());
  }

  const toml::table* table_in(const toml::table& root, std::string_view key) const {
    const toml::node* const node = root.get(key);
    if (node == nullptr) return nullptr;
    if (node->as_table() == nullptr)
      fail_at(line_of(*node), "{}: is no section; write [{}] on a line of its own, and options below it", key, key);
    return node->as_table();
  }

  void check_flag(const toml::key& key) const {
    const int line = static_cast<int>(key.source().begin.line);
    const std::string name(key.str());
    if (std::ranges::find(kOwnFlags, name) != std::end(kOwnFlags))
      fail_at(line, "{}: is given to each run by the study itself; leave it out", name);
    if (std::ranges::find(kNoRun, name) != std::end(kNoRun))
      fail_at(line, "{}: with it there is no run to read figures of; leave it out", name);
    if (std::ranges::find(options_, name) != options_.end()) return;
    const std::string nearest = nearest_name(name, options_);
    fail_at(line, "'{}' is no option of {}{}", name, study_.program,
            nearest.empty() ? fmt::format("; {} --help lists them", study_.program)
                            : fmt::format(": did you mean {}?", nearest));
  }

  std::string value(const std::string& name, const toml::node& node) const {
    const auto text = apps::toml_value_text(node);
    if (!text) fail_at(line_of(node), "{}: is no number, text, true or false; write one value", name);
    return *text;
  }

  Settings section(const toml::table& root, std::string_view name) const {
    Settings settings;
    const toml::table* const table = table_in(root, name);
    if (table == nullptr) return settings;
    for (const auto& [key, node] : in_order(*table)) {
      check_flag(*key);
      if (node->is_array())
        fail_at(line_of(*node), "{}: is a list; what a study varies stands below [grid] or [[variant]]", key->str());
      settings.emplace_back(key->str(), value(std::string(key->str()), *node));
    }
    return settings;
  }

  /// Throws for an empty list.
  Dimension dimension(const toml::key& key, const toml::array& list) const {
    Dimension dimension{std::string(key.str()), {}};
    for (const toml::node& node : list) dimension.values.push_back(value(dimension.name, node));
    if (dimension.values.empty()) fail_at(line_of(list), "{}: the list is empty; give it values", dimension.name);
    return dimension;
  }

  /// Of what is varied: throws for values that are there twice.
  void check_distinct(const Dimension& dimension, int line) const {
    for (const std::string& one : dimension.values)
      if (std::ranges::count(dimension.values, one) > 1)
        fail_at(line, "{}: has {} twice; name each value once", dimension.name, one);
  }

  void check_count(std::size_t points, const std::string& name, int line) const {
    if (points > kMostPoints)
      fail_at(line, "{}: makes {} combinations, and a study has at most {}; shorten a list", name, points, kMostPoints);
  }

  /// Variants, each as often as its lists are long.
  std::size_t points_of_variants() const {
    std::size_t points = 0;
    for (const Variant& variant : study_.variants)
      points += variant.together.empty() ? 1 : variant.together.front().values.size();
    return points;
  }

  void read_grid(const toml::table& root) {
    std::size_t points = std::max<std::size_t>(1, points_of_variants());
    if (const toml::table* const grid = table_in(root, "grid")) {
      for (const auto& [key, node] : in_order(*grid)) {
        check_flag(*key);
        if (!node->is_array())
          fail_at(line_of(*node), "{}: is one value; [grid] has lists such as [1, 2], and [run] has values",
                  key->str());
        Dimension added = dimension(*key, *node->as_array());
        check_distinct(added, line_of(*node));
        const bool is_in_variant = std::ranges::any_of(study_.variants, [&](const Variant& variant) {
          return std::ranges::find(variant.together, added.name, &Dimension::name) != variant.together.end() ||
                 std::ranges::find(variant.settings, added.name, &Settings::value_type::first) !=
                     variant.settings.end();
        });
        if (is_in_variant) fail_at(line_of(*node), "{}: stands in a variant, too; leave one of them out", added.name);
        points *= added.values.size();
        check_count(points, added.name, line_of(*node));
        study_.grid.push_back(std::move(added));
      }
    }
    if (study_.grid.empty() && study_.variants.empty())
      fail("{}: [grid]: a study varies something; list values, as batch-size = [16, 32] below [grid]", file_);
  }

  void read_variants(const toml::table& root) {
    const toml::node* const node = root.get("variant");
    if (node == nullptr) return;
    const auto* const list = node->as_array();
    if (list == nullptr || !list->is_homogeneous<toml::table>())
      fail_at(line_of(*node), "variant: is no list of sections; write [[variant]] on a line of its own for each");
    for (const toml::node& entry : *list) read_variant(*entry.as_table());
  }

  void read_variant(const toml::table& table) {
    Variant variant{text(table, "name").value_or("")};
    if (variant.name.empty()) fail_at(line_of(table), "variant: it has no name; give it one, as name = \"dropout\"");
    if (std::ranges::find(study_.variants, variant.name, &Variant::name) != study_.variants.end())
      fail_at(line_of(table), "variant: there are two of the name '{}'; give each its own", variant.name);
    for (const auto& [key, node] : in_order(table)) {
      if (key->str() == "name") continue;
      if (key->str() == "optional") {
        if (node->as_boolean() == nullptr)
          fail_at(line_of(*node), "optional: is neither true nor false; write one of them");
        variant.is_optional = node->as_boolean()->get();
        continue;
      }
      check_flag(*key);
      if (!node->is_array()) {
        variant.settings.emplace_back(key->str(), value(std::string(key->str()), *node));
        continue;
      }
      variant.together.push_back(dimension(*key, *node->as_array()));
      if (variant.together.size() == 1) check_distinct(variant.together.front(), line_of(*node));
      const std::size_t length = variant.together.front().values.size();
      if (variant.together.back().values.size() != length)
        fail_at(line_of(*node),
                "{}: has {} values, and {} has {}; lists of a variant go together, so make them equally "
                "long",
                key->str(), variant.together.back().values.size(), variant.together.front().name, length);
    }
    study_.variants.push_back(std::move(variant));
    check_count(points_of_variants(), "variant", line_of(table));
  }

  /// Of a text or a list of texts; `line` of each.
  std::vector<std::pair<std::string, int>> texts(const toml::table& root, std::string_view key) const {
    std::vector<std::pair<std::string, int>> all;
    const toml::node* const node = root.get(key);
    if (node == nullptr) return all;
    if (const auto* const one = node->as_string()) return {{one->get(), line_of(*node)}};
    const auto* const list = node->as_array();
    if (list == nullptr || !list->is_homogeneous<std::string>())
      fail_at(line_of(*node), "{}: is no list of texts; write {} = [\"...\", \"...\"]", key, key);
    for (const toml::node& entry : *list) all.emplace_back(entry.as_string()->get(), line_of(entry));
    return all;
  }

  /// Throws for an unknown one.
  void check_measure(std::string_view key, const std::string& name, int line) const {
    try {
      find_measure(name);
    } catch (const Error& error) {
      fail_at(line, "{}: {}", key, error.what());
    }
  }

  void read_measures(const toml::table& root) {
    for (const auto& [name, line] : texts(root, "measure")) {
      check_measure("measure", name, line);
      study_.measures.push_back(name);
    }
    if (study_.measures.empty()) study_.measures = {"seconds", "images_per_second", "peak_memory", "test_accuracy"};
  }

  /// Of lists that go together, the first one: the others follow from it.
  static std::span<const Dimension> varied_in(const Variant& variant) {
    return std::span(variant.together).first(std::min<std::size_t>(1, variant.together.size()));
  }

  bool is_dimension(const std::string& name) const { return !values_of(name).empty(); }

  std::vector<std::string> values_of(const std::string& name) const {
    std::vector<std::string> values;
    if (name == kVariant)
      for (const Variant& variant : study_.variants) values.push_back(variant.name);
    for (const Dimension& dimension : study_.grid)
      if (dimension.name == name) values.insert(values.end(), dimension.values.begin(), dimension.values.end());
    for (const Variant& variant : study_.variants)
      for (const Dimension& dimension : varied_in(variant))
        if (dimension.name == name) values.insert(values.end(), dimension.values.begin(), dimension.values.end());
    return values;
  }

  std::vector<std::string> dimension_names() const {
    std::vector<std::string> names;
    if (!study_.variants.empty()) names.emplace_back(kVariant);
    for (const Dimension& dimension : study_.grid) names.push_back(dimension.name);
    for (const Variant& variant : study_.variants)
      for (const Dimension& dimension : varied_in(variant))
        if (std::ranges::find(names, dimension.name) == names.end()) names.push_back(dimension.name);
    return names;
  }

  void check_layers(const std::string& norm, int line) const {
    if (std::ranges::find(kLayerNorms, norm) == std::end(kLayerNorms))
      fail_at(line, "plot: {}", unknown_name("norm", norm, kLayerNorms));
    if (value_in(study_.all, "log-norms") != "true")
      fail_at(line, "plot: layers are known of runs that log norms; write log-norms = true below [run]");
  }

  static std::string value_in(const Settings& settings, std::string_view name) {
    const auto found = std::ranges::find(settings, name, &Settings::value_type::first);
    return found == settings.end() ? "" : found->second;
  }

  void read_plots(const toml::table& root) {
    constexpr std::string_view kKinds[] = {"bars", "curves", "line", "layers"};
    for (const auto& [description, line] : texts(root, "plot")) {
      std::istringstream words(description);
      std::string kind, measure, over, dimension, rest;
      words >> kind >> measure >> over >> dimension >> rest;
      const auto* const found = std::ranges::find(kKinds, kind);
      if (found == std::end(kKinds)) fail_at(line, "plot: {}", unknown_name("kind", kind, kKinds));
      Plot plot{static_cast<PlotKind>(found - std::begin(kKinds)), measure, dimension};
      if (plot.kind == PlotKind::layers) {
        check_layers(measure, line);
      } else {
        check_measure("plot", measure, line);
      }
      if (plot.kind == PlotKind::line) {
        if (over != "over" || dimension.empty() || !rest.empty())
          fail_at(line, "plot: '{}': a line is \"line MEASURE over OPTION\"", description);
        if (!is_dimension(dimension))
          fail_at(line, "plot: '{}' is not varied; over what is varied: {}", dimension, one_of(dimension_names()));
        if (!std::ranges::all_of(values_of(dimension), is_number))
          fail_at(line, "plot: the values of {} are no numbers; plot \"bars {}\"", dimension, measure);
      } else if (!over.empty()) {
        fail_at(line, "plot: '{}': only a line has something behind its measure", description);
      }
      if (plot.kind == PlotKind::curves && find_measure(measure).curve == nullptr)
        fail_at(line, "plot: there are no curves of {} over epochs; plot \"bars {}\"", measure, measure);
      const bool is_measured = plot.kind == PlotKind::bars || plot.kind == PlotKind::line;
      if (is_measured && std::ranges::find(study_.measures, measure) == study_.measures.end())
        study_.measures.push_back(measure);
      study_.plots.push_back(std::move(plot));
    }
    if (study_.plots.empty())
      for (const std::string& measure : study_.measures) study_.plots.push_back({PlotKind::bars, measure});
  }

  void read_best(const toml::table& root) {
    study_.best_of = text(root, "best-of").value_or("");
    study_.best_by = text(root, "best-by").value_or("test_accuracy");
    if (const toml::node* const node = root.get("best-of"); node != nullptr && !is_dimension(study_.best_of))
      fail_at(line_of(*node), "best-of: '{}' is not varied; one of what is varied: {}", study_.best_of,
              one_of(dimension_names()));
    if (const toml::node* const node = root.get("best-by")) check_measure("best-by", study_.best_by, line_of(*node));
    if (find_measure(study_.best_by).better == Better::neither)
      fail_at(line_of(*root.get("best-by")), "best-by: of {}, neither more nor less is better; name another measure",
              study_.best_by);
  }

  void read_baseline(const toml::table& root) {
    const toml::table* const table = table_in(root, "baseline");
    if (table == nullptr) return;
    for (const auto& [key, node] : in_order(*table)) {
      const std::string name(key->str()), wanted = value(name, *node);
      const std::vector<std::string> values = values_of(name);
      if (values.empty())
        fail_at(line_of(*node), "baseline: '{}' is not varied; one of what is varied: {}", name,
                one_of(dimension_names()));
      if (std::ranges::find(values, wanted) == values.end())
        fail_at(line_of(*node), "baseline: {}", unknown_name(name, wanted, values));
      study_.baseline.emplace_back(name, wanted);
    }
  }

  /// Hosts are where mpirun starts ranks: without some there would be one run on this machine, told as on others.
  void check_hosts() const {
    for (const Extent extent : {Extent::quick, Extent::full}) {
      for (const Point& point : make_plan(study_, {extent, 1}).points) {
        const bool has_ranks = parse_number<int>(value_of(point.settings, kRanks)).value_or(1) >= 2;
        if (!value_of(point.settings, kHosts).empty() && !has_ranks)
          fail(
              "{}: hosts: {} has hosts and not at least 2 ranks to start there; give it ranks = 2 or more, or no hosts",
              file_, point.label);
      }
    }
  }

  std::string file_;
  const OptionsOf& options_of_;
  std::vector<std::string> options_;
  Study study_;
};

}  // namespace

Study parse_study(const std::string& text, const std::string& file, const OptionsOf& options_of) {
  apps::check_toml_lines(text, file);
  const auto parse = [&] {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      fail("{}:{}: {}; docs/study.md shows a study's file", file, error.source().begin.line, error.description());
    }
  };
  return Reader(file, options_of).read(parse());
}

Study read_study(const std::string& path, const OptionsOf& options_of) {
  constexpr std::int64_t kLargestFile = 1 << 20;
  return parse_study(train::report::read_text(path, kLargestFile), path, options_of);
}

}  // namespace tandem::study
