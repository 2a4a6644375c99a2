// Verifying, then timing, all that was asked for.
#pragma once

#include "apps/conv_bench/settings.h"

#include <cstdio>
#include <memory>

namespace tandem::conv_bench {

/// One contestant's times of one pass over one layer.
struct Result {
  BenchLayer layer;
  std::int64_t batch = 0;
  DType dtype{};
  Pass pass{};
  std::string impl;
  bool is_library = false;
  std::vector<Work> parts = {};
  Work work = {};  // their sum
  std::optional<double> floor_seconds = {};
  std::vector<double> hot = {}, cold = {};  // seconds per run of each group; empty if not asked for
  int launches = 0;                         // in a group, hot unless only cold was asked for
  bool is_recorded = false;                 // by a CUDA graph
  std::string clocks = {};                  // right after the timing

  /// Those to judge by: hot, or cold if only that was asked for.
  const std::vector<double>& seconds() const { return hot.empty() ? cold : hot; }
  /// Of the same layer, batch, dtype and pass.
  bool is_rival_of(const Result& other) const {
    return layer.net == other.layer.net && layer.name == other.layer.name && batch == other.batch &&
           dtype == other.dtype && pass == other.pass;
  }
};

/// A contestant that has shown to be right, and the tensors that it works on: the same memory for all, but for results
/// that it makes anew.
struct Entrant {
  const Contestant* contestant;
  std::shared_ptr<Workload> workload;

  /// Backward alone needs something to start from.
  bool can_do(Pass pass) const { return pass != Pass::backward || contestant->reads_mask; }
  std::function<void()> work(Pass pass) const;
};

struct Report {
  std::vector<Result> results;
  Ceilings ceilings;                 // those of the settings, raised where they were beaten
  std::vector<std::string> wrong;    // implementations that were not timed because they are, and where
  std::vector<std::string> skipped;  // those that do not take a geometry, and why
};

/// Calls `visit` with each layer, batch and dtype that was asked for, and those who are right there. The report has no
/// results.
Report for_each_layer(const BenchSettings& settings,
                      const std::function<void(const Workload&, const std::vector<Entrant>&)>& visit);

/// Prints what is wrong or was skipped, a line each. Returns the exit code: 1 if anything is wrong, else 0.
int tell_problems(const Report& report, std::FILE* problems);

/// Calls `tell` with each finished layer's results. No result does more operations per second than the ceiling that its
/// floor comes from: where one would, the ceiling is raised first.
Report run_bench(const BenchSettings& settings, const std::function<void(const std::vector<Result>&)>& tell);

/// Best library time over this one's, by medians; nothing if no library took part.
std::optional<double> ratio_to_library(const Result& result, const std::vector<Result>& all);

}  // namespace tandem::conv_bench
