// Names of measures and of what is varied, checked against the plan.
#include "apps/study/study_shown.h"

#include "apps/study/measure.h"
#include "apps/study/plan.h"
#include "apps/study/run_lines.h"
#include "tandem/core/number_text.h"
#include "tandem/core/suggest.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace tandem::study {
namespace {

class Reader {
 public:
  Reader(const StudyToml& file, Study& study) : file_(file), study_(study), plan_(make_plan(study, {.seeds = 1})) {}

  void read(const toml::table& root) {
    read_measures(root);
    read_plots(root);
    read_best(root);
    read_baseline(root);
  }

 private:
  /// Throws for an unknown one.
  void check_measure(std::string_view key, const std::string& name, int line) const {
    try {
      find_measure(name);
    } catch (const Error& error) {
      file_.fail_at(line, "{}: {}", key, error.what());
    }
  }

  void read_measures(const toml::table& root) {
    for (const auto& [name, line] : file_.texts(root, "measure")) {
      check_measure("measure", name, line);
      if (std::ranges::find(study_.measures, name) != study_.measures.end())
        file_.fail_at(line, "measure: has {} twice; name each measure once", name);
      study_.measures.push_back(name);
    }
    if (study_.measures.empty()) study_.measures = {"seconds", "images_per_second", "peak_memory", "test_accuracy"};
  }

  std::vector<std::string> names() const { return dimensions_of(plan_); }
  bool is_varied(const std::string& name) const { return !values_of(name).empty(); }

  /// Of what is varied, each once, in the order of the study; none of what is not.
  std::vector<std::string> values_of(const std::string& name) const {
    std::vector<std::string> values;
    for (const Point& point : plan_.points) {
      const std::string value = value_of(point.coordinates, name);
      if (!value.empty() && std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    return values;
  }

  void check_line_of_runs(const Plot& plot, int line) const {
    try {
      const RunLine& found = find_run_line(plot.kind, plot.measure);
      if (!found.option.empty() && value_of(study_.all, std::string(found.option)) != "true")
        fail("{} is known of runs that log it; write {} = true below [run]", plot.measure, found.option);
    } catch (const Error& error) {
      file_.fail_at(line, "plot: {}", error.what());
    }
  }

  void read_plots(const toml::table& root) {
    constexpr std::string_view kKinds[] = {"bars", "curves", "line", "layers", "ranks"};
    for (const auto& [description, line] : file_.texts(root, "plot")) {
      std::istringstream words(description);
      std::string kind, measure, over, dimension, rest;
      words >> kind >> measure >> over >> dimension >> rest;
      const auto* const found = std::ranges::find(kKinds, kind);
      if (found == std::end(kKinds)) file_.fail_at(line, "plot: {}", unknown_name("kind", kind, kKinds));
      Plot plot{static_cast<PlotKind>(found - std::begin(kKinds)), measure, dimension};
      if (is_line_of_runs(plot.kind)) {
        check_line_of_runs(plot, line);
      } else {
        check_measure("plot", measure, line);
      }
      if (plot.kind == PlotKind::line) {
        if (over != "over" || dimension.empty() || !rest.empty())
          file_.fail_at(line, "plot: '{}': a line is \"line MEASURE over OPTION\"", description);
        if (!is_varied(dimension))
          file_.fail_at(line, "plot: '{}' is not varied; over what is varied: {}", dimension, one_of(names()));
        if (!std::ranges::all_of(values_of(dimension), [](const std::string& value) {
              return std::isfinite(parse_number<double>(value).value_or(std::nan("")));
            }))
          file_.fail_at(line, "plot: the values of {} are no numbers; plot \"bars {}\"", dimension, measure);
      } else if (!over.empty()) {
        file_.fail_at(line, "plot: '{}': only a line has something behind its measure", description);
      }
      if (plot.kind == PlotKind::curves && find_measure(measure).curve == nullptr)
        file_.fail_at(line, "plot: there are no curves of {} over epochs; plot \"bars {}\"", measure, measure);
      const bool is_measured = plot.kind == PlotKind::bars || plot.kind == PlotKind::line;
      if (is_measured && std::ranges::find(study_.measures, measure) == study_.measures.end())
        study_.measures.push_back(measure);
      if (std::ranges::find(study_.plots, plot) != study_.plots.end())
        file_.fail_at(line, "plot: has '{}' twice; name each plot once", description);
      study_.plots.push_back(std::move(plot));
    }
    if (study_.plots.empty())
      for (const std::string& measure : study_.measures) study_.plots.push_back({PlotKind::bars, measure});
  }

  void read_best(const toml::table& root) {
    study_.best_of = file_.text(root, "best-of").value_or("");
    study_.best_by = file_.text(root, "best-by").value_or("test_accuracy");
    if (const toml::node* const node = root.get("best-of"); node != nullptr && !is_varied(study_.best_of))
      file_.fail_at(line_of(*node), "best-of: '{}' is not varied; one of what is varied: {}", study_.best_of,
                    one_of(names()));
    if (const toml::node* const node = root.get("best-by")) check_measure("best-by", study_.best_by, line_of(*node));
    if (find_measure(study_.best_by).better == Better::neither)
      file_.fail_at(line_of(*root.get("best-by")),
                    "best-by: of {}, neither more nor less is better; name another measure", study_.best_by);
  }

  void read_baseline(const toml::table& root) {
    const toml::table* const table = file_.table_in(root, "baseline");
    if (table == nullptr) return;
    for (const auto& [key, node] : in_order(*table)) {
      const std::string name(key->str()), wanted = file_.value(name, *node);
      const std::vector<std::string> values = values_of(name);
      if (values.empty())
        file_.fail_at(line_of(*node), "baseline: '{}' is not varied; one of what is varied: {}", name, one_of(names()));
      if (std::ranges::find(values, wanted) == values.end())
        file_.fail_at(line_of(*node), "baseline: {}", unknown_name(name, wanted, values));
      study_.baseline.emplace_back(name, wanted);
    }
  }

  const StudyToml& file_;
  Study& study_;
  Plan plan_;
};

}  // namespace

void read_shown(const StudyToml& file, const toml::table& root, Study& study) { Reader(file, study).read(root); }

}  // namespace tandem::study
