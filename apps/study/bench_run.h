// Runs of benchmarks, which keep no run directory of their own.
#pragma once

#include "tandem/train/report/run_data.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::study {

/// A program that a study can run beside cifar_train.
struct Bench {
  std::string_view program;
  double usual_seconds;  ///< that a run takes, about
  /// What makes it tell its figures as JSON; `folder`: of the run.
  std::vector<std::string> (*options)(const std::string& folder);
  /// Its figures by the names of measures; empty where it told none.
  train::report::NumberTable (*figures)(const std::string& folder, const std::string& output);
};

std::span<const Bench> benches();

/// Null where the program is none.
const Bench* find_bench(std::string_view program);

/// Of the first object that allreduce_bench --json printed: all_reduce_seconds and bus_bandwidth, in place.
train::report::NumberTable all_reduce_figures(const std::string& output);

/// Of the text of a file of conv_bench --json FILE: conv_forward_seconds and conv_backward_seconds, sums of the medians
/// of all convolutions, each as often as its network has it. Empty where it did not come to its end, left a convolution
/// out, whose time the sums would lack, or timed several implementations, of which they would be no one's.
train::report::NumberTable convolution_figures(const std::string& json);

}  // namespace tandem::study
