// The loop over layers, dtypes and passes.
#include "apps/conv_bench/bench.h"

#include "apps/conv_bench/clocks.h"
#include "apps/conv_bench/oracle.h"
#include "apps/measure/quantile.h"
#include "tandem/core/error.h"
#include "tandem/train/terminal.h"
#include "tandem/train/wrapped_text.h"

#include <algorithm>

namespace tandem::conv_bench {

namespace {

std::vector<const Contestant*> verified(const BenchSettings& settings, const Workload& workload, Report& report) {
  std::vector<const Contestant*> right;
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
      right.push_back(&contestant);
    } else {
      report.wrong.push_back(fmt::format("{}: {} is wrong: {}", where, contestant.name, wrong));
    }
  }
  return right;
}

void find_floors(std::vector<Result>& results, const Ceilings& ceilings) {
  for (Result& result : results) result.floor_seconds = floor_of(result.parts, result.dtype, ceilings);
}

std::vector<Result> time_pass(const BenchSettings& settings, const Workload& workload,
                              const std::vector<Entrant>& entrants, Pass pass, Cache cache, Ceilings& ceilings) {
  std::vector<Result> results;
  std::vector<GroupTimer> timers;
  restore_forward_results(workload);
  for (const Entrant& entrant : entrants) {
    if (!entrant.can_do(pass)) continue;
    timers.emplace_back(settings.device, entrant.work(pass), entrant.contestant->can_be_recorded, cache,
                        settings.protocol);
    results.push_back({.layer = workload.layer,
                       .batch = workload.batch,
                       .dtype = workload.dtype(),
                       .pass = pass,
                       .impl = entrant.contestant->name,
                       .is_library = entrant.contestant->is_library,
                       .parts = parts_of(workload, pass, entrant.contestant->impl),
                       .launches = timers.back().launches(),
                       .is_recorded = timers.back().is_recorded()});
    results.back().work = sum_of(results.back().parts);
  }
  const std::vector<std::vector<double>> seconds = time_interleaved(timers, settings.protocol.groups);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Result& result = results[i];
    (cache == Cache::hot ? result.hot : result.cold) = seconds[i];
    // On a GPU, f32 tensors may be multiplied by tensor cores, and a library may take fewer products than the
    // definition: that says nothing of the ceiling of f32.
    if (settings.device.type == DeviceType::cuda && result.dtype == DType::f32) continue;
    raise_ceiling(ceilings, result.dtype, result.work.done_flops / apps::median(result.seconds()), result.impl);
  }
  return results;
}

/// The result of the same pass and contestant among those that are known, or their end.
std::vector<Result>::iterator same_as(std::vector<Result>& results, const Result& one) {
  return std::find_if(results.begin(), results.end(),
                      [&](const Result& known) { return known.impl == one.impl && known.is_rival_of(one); });
}

/// Adds a result, or its times to what is known with another cache; the number of launches stays the first.
void put_together(std::vector<Result>& results, const Result& more) {
  const auto same = same_as(results, more);
  if (same == results.end())
    results.push_back(more);
  else
    (more.hot.empty() ? same->cold : same->hot) = more.seconds();
}

/// Hot first: what is known before a process is ended is the more.
std::vector<Cache> in_order(std::vector<Cache> caches) {
  std::sort(caches.begin(), caches.end());
  caches.erase(std::unique(caches.begin(), caches.end()), caches.end());
  return caches;
}

/// A workload without the results that a pass does not make; the memory is the same.
std::shared_ptr<Workload> for_pass(const std::shared_ptr<Workload>& workload, Pass pass) {
  if (pass != Pass::backward_input && pass != Pass::backward_weight) return workload;
  const auto part = std::make_shared<Workload>(*workload);
  if (!has_input_gradient(pass)) part->grad_x = {};
  if (!has_weight_gradient(pass)) part->grad_w = part->grad_bias = {};
  return part;
}

}  // namespace

bool Entrant::can_do(Pass pass) const {
  if (pass == Pass::backward_input && workload->layer.is_first) return false;
  return has_forward(pass) || contestant->reads_mask;
}

std::function<void()> Entrant::work(Pass pass) const {
  return [run = contestant, on = for_pass(workload, pass), pass] {
    if (has_forward(pass)) run->forward(*on);
    if (pass != Pass::forward) run->backward(*on);
  };
}

void for_each_layer(const BenchSettings& settings, Verdicts& verdicts, Report& report,
                    const std::function<void(const Workload&, const std::vector<Entrant>&)>& visit) {
  std::size_t number = 0;
  for (const DType dtype : settings.dtypes) {
    for (const TimedLayer& timed : settings.layers) {
      for (const std::int64_t batch : timed.batches) {
        const Workload workload = make_workload(timed.layer, batch, dtype, settings.device);
        if (number == verdicts.size()) verdicts.push_back(verified(settings, workload, report));
        std::vector<Entrant> entrants;
        for (const Contestant* const right : verdicts[number++])
          entrants.push_back({right, std::make_shared<Workload>(workload)});
        visit(workload, entrants);
      }
    }
  }
}

Report run_bench(const BenchSettings& settings,
                 const std::function<void(const std::vector<Result>& of_layer, const Report& so_far)>& tell) {
  Report report;
  report.ceilings = settings.ceilings;
  report.skipped = settings.missing;
  Verdicts verdicts;
  for (const Cache cache : in_order(settings.caches)) {
    for_each_layer(settings, verdicts, report, [&](const Workload& workload, const std::vector<Entrant>& entrants) {
      std::vector<Result> timed;
      for (const Pass pass : settings.passes)
        for (Result& result : time_pass(settings, workload, entrants, pass, cache, report.ceilings))
          timed.push_back(std::move(result));
      const std::string clocks = clocks_of(settings.device);  // once: on a GPU that is a program of its own
      for (Result& result : timed) {
        result.clocks = clocks;
        put_together(report.results, result);
      }
      find_floors(report.results, report.ceilings);  // a later layer may have raised a ceiling
      for (Result& result : timed) result = *same_as(report.results, result);
      tell(timed, report);
    });
  }
  report.complete = true;
  return report;
}

int tell_problems(const Report& report, std::FILE* problems) {
  const auto tell = [problems, columns = train::line_columns(problems)](const std::string& line) {
    fmt::print(problems, "{}\n", train::wrapped(line, columns));
  };
  for (const std::string& note : report.skipped) tell("note: left out: " + note);
  for (const std::string& wrong : report.wrong) tell("error: left out: " + wrong);
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
