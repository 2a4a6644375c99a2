// From toml++'s tree to a Study, with the line of what is wrong.
#include "apps/study/study_file.h"

#include "apps/arguments/arguments.h"
#include "apps/arguments/toml_lines.h"
#include "apps/study/plan.h"
#include "apps/study/study_shown.h"
#include "apps/study/study_toml.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/suggest.h"
#include "tandem/train/report/json_fields.h"

#include <algorithm>
#include <filesystem>
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

class Reader {
 public:
  Reader(const std::string& file, const OptionsOf& options_of) : file_(file), options_of_(options_of) {}

  Study read(const toml::table& root) {
    study_.file = file_.file();
    study_.name = std::filesystem::path(file_.file()).stem().string();
    for (const auto& [key, node] : in_order(root)) check_key(*key);
    study_.program = file_.text(root, "program").value_or("cifar_train");
    options_ = options_of_(study_.program);
    options_.emplace_back(kRanks);
    options_.emplace_back(kHosts);
    study_.title = file_.text(root, "title").value_or("");
    if (study_.title.empty())
      fail("{}: title: it is missing; give the study one, as title = \"Batch size\"", file_.file());
    study_.question = file_.text(root, "question").value_or("");
    study_.note = file_.text(root, "note").value_or("");
    read_number(root);
    study_.all = section(root, "run");
    study_.quick = section(root, "quick");
    study_.full = section(root, "full");
    read_variants(root);
    read_grid(root);
    check_hosts();
    read_shown(file_, root, study_);
    return std::move(study_);
  }

 private:
  void check_key(const toml::key& key) const {
    if (std::ranges::find(kKeys, key.str()) != std::end(kKeys)) return;
    const int line = static_cast<int>(key.source().begin.line);
    const std::vector<std::string> flags = options_of_("cifar_train");
    if (std::ranges::find(flags, key.str()) != flags.end())
      file_.fail_at(line, "'{}' is an option of runs: write it below [run], or below [grid]", key.str());
    file_.fail_at(line, "{}", unknown_name("key", key.str(), kKeys));
  }

  void read_number(const toml::table& root) {
    const toml::node* const node = root.get("number");
    if (node == nullptr) return;
    const auto* const value = node->as_integer();
    if (value == nullptr || value->get() < 1 || value->get() > 99)
      file_.fail_at(line_of(*node),
                    "number: is no whole number from 1 to 99, by which the study is asked for; leave it out "
                    "to ask by the name of the file");
    study_.number = static_cast<int>(value->get());
  }

  void check_flag(const toml::key& key) const {
    const int line = static_cast<int>(key.source().begin.line);
    const std::string name(key.str());
    if (std::ranges::find(kOwnFlags, name) != std::end(kOwnFlags))
      file_.fail_at(line, "{}: is given to each run by the study itself; leave it out", name);
    if (std::ranges::find(kNoRun, name) != std::end(kNoRun))
      file_.fail_at(line, "{}: with it there is no run to read figures of; leave it out", name);
    if (std::ranges::find(options_, name) != options_.end()) return;
    const std::string nearest = nearest_name(name, options_);
    file_.fail_at(line, "'{}' is no option of {}{}", name, study_.program,
                  nearest.empty() ? fmt::format("; {} --help lists them", study_.program)
                                  : fmt::format(": did you mean {}?", nearest));
  }

  Settings section(const toml::table& root, std::string_view name) const {
    Settings settings;
    const toml::table* const table = file_.table_in(root, name);
    if (table == nullptr) return settings;
    for (const auto& [key, node] : in_order(*table)) {
      check_flag(*key);
      if (node->is_array())
        file_.fail_at(line_of(*node), "{}: is a list; what a study varies stands below [grid] or [[variant]]",
                      key->str());
      settings.emplace_back(key->str(), file_.value(std::string(key->str()), *node));
    }
    return settings;
  }

  /// Throws for an empty list.
  Dimension dimension(const toml::key& key, const toml::array& list) const {
    Dimension dimension{std::string(key.str()), {}};
    for (const toml::node& node : list) dimension.values.push_back(file_.value(dimension.name, node));
    if (dimension.values.empty()) file_.fail_at(line_of(list), "{}: the list is empty; give it values", dimension.name);
    return dimension;
  }

  /// Of what is varied: throws for values that are there twice.
  void check_distinct(const Dimension& dimension, int line) const {
    for (const std::string& one : dimension.values)
      if (std::ranges::count(dimension.values, one) > 1)
        file_.fail_at(line, "{}: has {} twice; name each value once", dimension.name, one);
  }

  void check_count(std::size_t points, const std::string& name, int line) const {
    if (points > kMostPoints)
      file_.fail_at(line, "{}: makes {} combinations, and a study has at most {}; shorten a list", name, points,
                    kMostPoints);
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
    if (const toml::table* const grid = file_.table_in(root, "grid")) {
      for (const auto& [key, node] : in_order(*grid)) {
        check_flag(*key);
        if (!node->is_array())
          file_.fail_at(line_of(*node), "{}: is one value; [grid] has lists such as [1, 2], and [run] has values",
                        key->str());
        Dimension added = dimension(*key, *node->as_array());
        check_distinct(added, line_of(*node));
        const bool is_in_variant = std::ranges::any_of(study_.variants, [&](const Variant& variant) {
          return std::ranges::find(variant.together, added.name, &Dimension::name) != variant.together.end() ||
                 std::ranges::find(variant.settings, added.name, &Settings::value_type::first) !=
                     variant.settings.end();
        });
        if (is_in_variant)
          file_.fail_at(line_of(*node), "{}: stands in a variant, too; leave one of them out", added.name);
        points *= added.values.size();
        check_count(points, added.name, line_of(*node));
        study_.grid.push_back(std::move(added));
      }
    }
    if (study_.grid.empty() && study_.variants.empty())
      fail("{}: [grid]: a study varies something; list values, as batch-size = [16, 32] below [grid]", file_.file());
  }

  void read_variants(const toml::table& root) {
    const toml::node* const node = root.get("variant");
    if (node == nullptr) return;
    const auto* const list = node->as_array();
    if (list == nullptr || !list->is_homogeneous<toml::table>())
      file_.fail_at(line_of(*node), "variant: is no list of sections; write [[variant]] on a line of its own for each");
    for (const toml::node& entry : *list) read_variant(*entry.as_table());
  }

  void read_variant(const toml::table& table) {
    Variant variant{file_.text(table, "name").value_or("")};
    if (variant.name.empty())
      file_.fail_at(line_of(table), "variant: it has no name; give it one, as name = \"dropout\"");
    if (std::ranges::find(study_.variants, variant.name, &Variant::name) != study_.variants.end())
      file_.fail_at(line_of(table), "variant: there are two of the name '{}'; give each its own", variant.name);
    for (const auto& [key, node] : in_order(table)) {
      if (key->str() == "name") continue;
      if (key->str() == "optional") {
        if (node->as_boolean() == nullptr)
          file_.fail_at(line_of(*node), "optional: is neither true nor false; write one of them");
        variant.is_optional = node->as_boolean()->get();
        continue;
      }
      check_flag(*key);
      if (!node->is_array()) {
        variant.settings.emplace_back(key->str(), file_.value(std::string(key->str()), *node));
        continue;
      }
      variant.together.push_back(dimension(*key, *node->as_array()));
      if (variant.together.size() == 1) check_distinct(variant.together.front(), line_of(*node));
      const std::size_t length = variant.together.front().values.size();
      if (variant.together.back().values.size() != length)
        file_.fail_at(line_of(*node),
                      "{}: has {} values, and {} has {}; lists of a variant go together, so make them equally "
                      "long",
                      key->str(), variant.together.back().values.size(), variant.together.front().name, length);
    }
    study_.variants.push_back(std::move(variant));
    check_count(points_of_variants(), "variant", line_of(table));
  }

  /// Hosts are where mpirun starts ranks: without some there would be one run on this machine, told as on others.
  void check_hosts() const {
    for (const Extent extent : {Extent::quick, Extent::full}) {
      for (const Point& point : make_plan(study_, {extent, 1}).points) {
        const bool has_ranks = parse_number<int>(value_of(point.settings, kRanks)).value_or(1) >= 2;
        if (!value_of(point.settings, kHosts).empty() && !has_ranks)
          fail(
              "{}: hosts: {} has hosts and not at least 2 ranks to start there; give it ranks = 2 or more, or no hosts",
              file_.file(), point.label);
      }
    }
  }

  StudyToml file_;
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
      fail("{}:{}: {}; docs/study.md shows a study's file", file, error.source().begin.line,
           apps::printable(error.description()));
    }
  };
  return Reader(file, options_of).read(parse());
}

Study read_study(const std::string& path, const OptionsOf& options_of) {
  constexpr std::int64_t kLargestFile = 1 << 20;
  return parse_study(train::report::read_text(path, kLargestFile), path, options_of);
}

}  // namespace tandem::study
