// The loop over layers, dtypes and passes.
#include "apps/conv_bench/bench.h"

#include "apps/conv_bench/clocks.h"
#include "apps/conv_bench/oracle.h"
#include "apps/measure/quantile.h"
#include "core/error.h"

namespace tandem::conv_bench {

namespace {

std::vector<Entrant> verified(const BenchSettings& settings, const Workload& workload, Report& report) {
  std::vector<Entrant> entrants;
  Oracle oracle(workload);
  const std::string where =
      fmt::format("{}, batch {}, {}", workload.layer.text(), workload.batch, name_of(workload.dtype()));
  for (const Contestant& contestant : settings.contestants) {
    std::string wrong;
    try {
      wrong = verify(contestant, workload, oracle);
    } catch (const Error& error) {
      report.skipped.push_back(fmt::format("{}: {}: {}", where, contestant.name, error.what()));
      continue;
    }
    if (wrong.empty()) {
      entrants.push_back({&contestant, std::make_shared<Workload>(workload)});
    } else {
      report.wrong.push_back(fmt::format("{}: {} is wrong: {}", where, contestant.name, wrong));
    }
  }
  return entrants;
}

void find_floors(std::vector<Result>& results, const Ceilings& ceilings) {
  for (Result& result : results) result.floor_seconds = floor_of(result.parts, result.dtype, ceilings);
}

std::vector<Result> time_pass(const BenchSettings& settings, const Workload& workload,
                              const std::vector<Entrant>& entrants, Pass pass, Ceilings& ceilings) {
  std::vector<Result> results;
  std::vector<const Entrant*> taking_part;
  for (const Entrant& entrant : entrants) {
    if (!entrant.can_do(pass)) continue;
    taking_part.push_back(&entrant);
    results.push_back({.layer = workload.layer,
                       .batch = workload.batch,
                       .dtype = workload.dtype(),
                       .pass = pass,
                       .impl = entrant.contestant->name,
                       .is_library = entrant.contestant->is_library,
                       .parts = parts_of(workload, pass, entrant.contestant->impl)});
    results.back().work = sum_of(results.back().parts);
  }
  restore_forward_results(workload);
  for (const Cache cache : settings.caches) {
    std::vector<GroupTimer> timers;
    for (const Entrant* entrant : taking_part)
      timers.emplace_back(settings.device, entrant->work(pass), entrant->contestant->can_be_recorded, cache,
                          settings.protocol);
    const std::vector<std::vector<double>> seconds = take_turns(timers, settings.protocol.groups);
    for (std::size_t i = 0; i < results.size(); ++i) {
      (cache == Cache::hot ? results[i].hot : results[i].cold) = seconds[i];
      if (results[i].launches == 0 || cache == Cache::hot) results[i].launches = timers[i].launches();
      results[i].is_recorded = timers[i].is_recorded();
    }
  }
  const std::string clocks = clocks_of(settings.device);
  for (Result& result : results) {
    result.clocks = clocks;
    raise_ceiling(ceilings, result.dtype, result.work.done_flops / apps::median(result.seconds()), result.impl);
  }
  find_floors(results, ceilings);
  return results;
}

}  // namespace

std::function<void()> Entrant::work(Pass pass) const {
  return [run = *this, pass] {
    if (pass != Pass::backward) run.contestant->forward(*run.workload);
    if (pass != Pass::forward) run.contestant->backward(*run.workload);
  };
}

Report for_each_layer(const BenchSettings& settings,
                      const std::function<void(const Workload&, const std::vector<Entrant>&)>& visit) {
  Report report;
  for (const DType dtype : settings.dtypes) {
    for (const TimedLayer& timed : settings.layers) {
      for (const std::int64_t batch : timed.batches) {
        const Workload workload = make_workload(timed.layer, batch, dtype, settings.device);
        visit(workload, verified(settings, workload, report));
      }
    }
  }
  return report;
}

Report run_bench(const BenchSettings& settings, const std::function<void(const std::vector<Result>&)>& tell) {
  std::vector<Result> results;
  Ceilings ceilings = settings.ceilings;
  Report report = for_each_layer(settings, [&](const Workload& workload, const std::vector<Entrant>& entrants) {
    std::vector<Result> of_layer;
    for (const Pass pass : settings.passes) {
      for (Result& result : time_pass(settings, workload, entrants, pass, ceilings))
        of_layer.push_back(std::move(result));
    }
    tell(of_layer);
    results.insert(results.end(), of_layer.begin(), of_layer.end());
  });
  find_floors(results, ceilings);  // a later layer may have raised a ceiling
  report.results = std::move(results);
  report.ceilings = std::move(ceilings);
  return report;
}

int tell_problems(const Report& report, std::FILE* problems) {
  for (const std::string& note : report.skipped) fmt::print(problems, "note: left out: {}\n", note);
  for (const std::string& wrong : report.wrong) fmt::print(problems, "error: left out: {}\n", wrong);
  return report.wrong.empty() ? 0 : 1;
}

std::optional<double> ratio_to_library(const Result& result, const std::vector<Result>& all) {
  std::optional<double> best;
  for (const Result& other : all) {
    if (!other.is_library || !other.is_rival_of(result)) continue;
    const double seconds = apps::median(other.seconds());
    if (!best || seconds < *best) best = seconds;
  }
  if (best) *best /= apps::median(result.seconds());
  return best;
}

}  // namespace tandem::conv_bench
