// Figures first, since some are against those of the baseline; then samples, then the best.
#include "apps/study/results.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace tandem::study {
namespace {

const train::report::RunData* data_of_seed(const PointResult& point, int seed) {
  for (const SeedResult& result : point.seeds)
    if (result.seed == seed && result.run.data && is_done(result.run.outcome)) return &*result.run.data;
  return nullptr;
}

double measured(const Measure& measure, const KeptRun& run, const train::report::RunData* baseline) {
  if (!is_done(run.outcome)) return train::report::kMissing;
  if (measure.value == nullptr) return train::report::figure_in(run.figures, measure.name);
  return run.data ? measure.value(*run.data, baseline) : train::report::kMissing;
}

void measure(Results& results) {
  for (PointResult& point : results.points) {
    for (SeedResult& result : point.seeds) {
      const auto* const baseline = data_of_seed(results.points[point.baseline], result.seed);
      for (const Measure* const measure : results.measures)
        result.values.push_back(measured(*measure, result.run, baseline));
    }
    for (std::size_t i = 0; i < results.measures.size(); ++i) {
      std::vector<double> values;
      for (const SeedResult& result : point.seeds) values.push_back(result.values[i]);
      point.samples.push_back(sample_of(values));
    }
  }
}

/// That of PointResult.
double best_figure(const Results& results, const PointResult& point) {
  const Measure& measure = find_measure(results.plan.study.best_by);
  std::vector<double> values;
  for (const SeedResult& result : point.seeds) {
    if (result.run.outcome == RunOutcome::diverged || result.run.outcome == RunOutcome::failed)
      return train::report::kMissing;
    values.push_back(measured(measure, result.run, data_of_seed(results.points[point.baseline], result.seed)));
  }
  const double mean = sample_of(values).mean;
  return measure.better == Better::lower ? -mean : mean;
}

/// All, or of each combination of the other dimensions the point whose value of `best_of` is best.
std::vector<std::size_t> shown_points(const Results& results) {
  const std::string& best_of = results.plan.study.best_of;
  std::vector<std::size_t> shown;
  std::vector<Settings> others;
  for (std::size_t i = 0; i < results.points.size(); ++i) {
    Settings rest = results.plan.points[i].coordinates;
    if (best_of.empty()) {
      shown.push_back(i);
      continue;
    }
    std::erase_if(rest, [&](const auto& coordinate) { return coordinate.first == best_of; });
    const double figure = results.points[i].best_figure;
    const auto found = std::ranges::find(others, rest);
    if (found == others.end()) {
      others.push_back(std::move(rest));
      shown.push_back(i);
      continue;
    }
    std::size_t& best = shown[static_cast<std::size_t>(found - others.begin())];
    const double other = results.points[best].best_figure;
    if (figure > other || (std::isnan(other) && std::isfinite(figure))) best = i;
  }
  return shown;
}

/// Where only the best of a dimension are shown, the baseline is the one of them that has its other values.
std::size_t shown_baseline(const Results& results, std::size_t point) {
  const Plan& plan = results.plan;
  Settings wanted = plan.points[baseline_of(plan, point)].coordinates;
  const auto is_other = [&](const auto& coordinate) { return coordinate.first != plan.study.best_of; };
  for (const std::size_t i : results.shown) {
    const Settings& own = plan.points[i].coordinates;
    const bool fits = std::ranges::all_of(wanted, [&](const auto& coordinate) {
      return !is_other(coordinate) || value_of(own, coordinate.first) == coordinate.second;
    });
    if (fits) return i;
  }
  return point;
}

}  // namespace

Results make_results(const Plan& plan, std::vector<KeptRun> kept) {
  Results results{plan, {}, {}, {}};
  for (const std::string& name : plan.study.measures) results.measures.push_back(&find_measure(name));
  for (std::size_t i = 0; i < plan.points.size(); ++i) results.points.push_back({i, baseline_of(plan, i)});
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    results.points[plan.runs[i].point].seeds.push_back({plan.runs[i].seed, std::move(kept[i]), {}});
  if (!plan.study.best_of.empty())
    for (PointResult& point : results.points) point.best_figure = best_figure(results, point);
  results.shown = shown_points(results);
  if (!plan.study.best_of.empty())
    for (const std::size_t i : results.shown) results.points[i].baseline = shown_baseline(results, i);
  measure(results);
  return results;
}

Results collect(const std::string& runs, const Plan& plan) {
  std::vector<KeptRun> kept;
  for (const PlannedRun& run : plan.runs) kept.push_back(find_run(runs, plan, run));
  return make_results(plan, std::move(kept));
}

}  // namespace tandem::study
