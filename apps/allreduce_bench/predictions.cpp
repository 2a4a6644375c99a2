// By the model of comm/cost.
#include "apps/allreduce_bench/predictions.h"

#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/transports/simulated/network_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::allreduce_bench {

namespace {

/// The hosts of all ranks, by rank.
std::vector<int> nodes_of(comm::ProcessGroup& group) {
  if (!group.network().empty()) return comm::parse_network_model(group.network()).node_of_rank();
  const Tensor mine = Tensor::from(std::vector{static_cast<std::int64_t>(group.node())}, {1});
  std::vector<int> nodes;
  for (const std::int64_t node : group.all_gather(mine).to_vector<std::int64_t>())
    nodes.push_back(static_cast<int>(node));
  return nodes;
}

/// The algorithm of messages that all-reduces of so many bytes go by; empty if they go by no such.
std::string algorithm_at(const NamedGroup& named, std::int64_t bytes) {
  if (named.algorithm != comm::kByCost) return named.algorithm;
  std::string chosen;  // nothing between one rank
  for (const comm::AlgorithmChoice& choice : named.group->algorithm_choices())
    if (choice.from_bytes <= bytes) chosen = choice.algorithm;
  return chosen;
}

}  // namespace

Predictor::Predictor(const std::vector<NamedGroup>& groups) {
  for (const NamedGroup& named : groups) {
    if (named.algorithm.empty()) continue;
    if (nodes_.empty()) {
      nodes_ = nodes_of(*named.group);
      costs_ = named.group->network().empty() ? named.group->measure_message_costs() : named.group->message_costs();
    }
    named.group->use_message_costs(costs_);
  }
}

void Predictor::predict(BenchRow& row, const NamedGroup& named) const {
  const std::string algorithm = algorithm_at(named, row.bytes);
  if (algorithm.empty()) return;
  if (named.algorithm == comm::kByCost) row.chosen = algorithm;
  row.predicted =
      comm::predicted_seconds(comm::all_reduce_algorithm(algorithm).make(nodes_), nodes_, row.bytes, costs_);
}

PredictionSummary summarize_predictions(std::span<const BenchRow> rows) {
  constexpr std::int64_t kSmallest = 64 << 10;
  std::vector<double> errors, choices;
  for (const BenchRow& row : rows) {
    if (row.bytes < kSmallest || row.predicted == 0.0) continue;
    if (row.chosen.empty()) {
      errors.push_back(std::abs(row.predicted / row.usual_time().median - 1.0));
      continue;
    }
    double best = 0.0, chosen = 0.0;
    for (const BenchRow& other : rows) {
      if (other.bytes != row.bytes || other.predicted == 0.0 || !other.chosen.empty()) continue;
      const double seconds = other.usual_time().median;
      if (best == 0.0 || seconds < best) best = seconds;
      if (other.backend == std::string(kAlgorithmOf) + row.chosen) chosen = seconds;
    }
    if (chosen > 0.0) choices.push_back(chosen / best);
  }
  const auto median = [](std::vector<double>& values) {
    std::ranges::sort(values);
    return values.empty() ? 0.0 : values[values.size() / 2];
  };
  PredictionSummary summary{.count = static_cast<int>(errors.size()), .median_error = median(errors)};
  summary.median_choice = median(choices);
  summary.worst_choice = choices.empty() ? 0.0 : choices.back();
  return summary;
}

std::string prediction_lines(std::span<const BenchRow> rows) {
  const PredictionSummary summary = summarize_predictions(rows);
  std::string text;
  if (summary.count > 0)
    text += fmt::format("predictions, from 64 KiB on, in place: the median error of {} is {:.0f} %\n", summary.count,
                        summary.median_error * 100.0);
  if (summary.worst_choice > 0.0)
    text +=
        fmt::format("what by-cost chose takes {:.2f} times as long as the best (median of the sizes; at most {:.2f})\n",
                    summary.median_choice, summary.worst_choice);
  std::string choices, last;
  for (const BenchRow& row : rows) {
    if (row.chosen.empty() || row.chosen == last) continue;
    choices += fmt::format("{:>12}  {}\n", row.bytes, row.chosen);
    last = row.chosen;
  }
  if (!choices.empty()) text += "by-cost chose, from so many bytes on:\n" + choices;
  return text;
}

}  // namespace tandem::allreduce_bench
