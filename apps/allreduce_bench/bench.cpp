// Rounds, times and checks.
#include "bench.h"

#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/out.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tandem::apps {

namespace {

using comm::ProcessGroup;
using comm::ReduceOp;

/// A group, what its rows are called, and its algorithm of messages, if it has one.
struct NamedGroup {
  std::string name;
  std::unique_ptr<ProcessGroup> group;
  std::string algorithm = {};
};

struct Contender {
  BenchRow row;
  ProcessGroup* group;
  std::string algorithm;
  Tensor input, output;
  std::vector<double> out_of_place = {}, in_place = {};  // seconds, by round
};

/// Whole numbers so small that their sums and products are exact in f32, in any order.
double value_at(int rank, std::int64_t index, ReduceOp op) {
  if (op == ReduceOp::product) return (rank + index) % 11 == 0 ? 2.0 : 1.0;
  return static_cast<double>((rank * 7 + index * 13) % 5);
}

void fill(const Tensor& tensor, int rank, ReduceOp op) {
  dispatch_all(tensor.dtype(), "fill", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const values = Out(tensor).data<T>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = T(static_cast<float>(value_at(rank, i, op)));
  });
}

double reduced_at(int ranks, std::int64_t index, ReduceOp op) {
  double result = value_at(0, index, op);
  for (int rank = 1; rank < ranks; ++rank) {
    const double value = value_at(rank, index, op);
    switch (op) {
      case ReduceOp::product:
        result *= value;
        break;
      case ReduceOp::min:
        result = std::min(result, value);
        break;
      case ReduceOp::max:
        result = std::max(result, value);
        break;
      default:
        result += value;
    }
  }
  return result;
}

std::int64_t wrong_elements(const Tensor& tensor, int ranks, ReduceOp op) {
  std::int64_t wrong = 0;
  dispatch_all(tensor.dtype(), "check", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const values = tensor.data<T>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      wrong += values[i] != T(static_cast<float>(reduced_at(ranks, i, op)));  // halves are rounded once
  });
  return wrong;
}

void reduce(const Contender& contender, bool in_place, ReduceOp op) {
  if (in_place) return contender.group->all_reduce(Out(contender.input), op);
  contender.group->all_reduce(contender.input, Out(contender.output), op);
}

/// Seconds of one, on the slowest rank.
double time_of(const Contender& contender, bool in_place, ReduceOp op) {
  constexpr std::int64_t kBytesPerRound = std::int64_t{16} << 20;
  const std::int64_t repeats = std::clamp<std::int64_t>(kBytesPerRound / (contender.row.bytes + 1), 1, 200);
  reduce(contender, in_place, op);  // warm-up
  contender.group->barrier();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < repeats; ++i) reduce(contender, in_place, op);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const Tensor slowest = Tensor::full({1}, elapsed.count() / static_cast<double>(repeats), {.dtype = DType::f64});
  contender.group->all_reduce(Out(slowest), ReduceOp::max);
  return slowest.item();
}

BenchTime summary(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return {seconds[seconds.size() / 2], seconds.front()};
}

std::int64_t wrong_of(const Contender& contender, ReduceOp op) {
  ProcessGroup& group = *contender.group;
  std::int64_t wrong = 0;
  for (const bool in_place : {false, true}) {
    fill(contender.input, group.rank(), op);
    reduce(contender, in_place, op);
    wrong += wrong_elements(in_place ? contender.input : contender.output, group.size(), op);
  }
  const Tensor total = Tensor::full({1}, static_cast<double>(wrong), {.dtype = DType::i64});
  group.all_reduce(Out(total));
  return static_cast<std::int64_t>(total.item());
}

std::vector<Contender> contenders_of(const std::vector<NamedGroup>& groups, std::int64_t bytes, DType dtype) {
  std::vector<Contender> contenders;
  for (const auto& [name, group, algorithm] : groups) {
    const std::int64_t count = std::max<std::int64_t>(1, bytes / size_of(dtype));
    const BenchRow row{.bytes = count * size_of(dtype), .backend = name};
    contenders.push_back({row, group.get(), algorithm, Tensor::zeros({count}, {.dtype = dtype}),
                          Tensor::zeros({count}, {.dtype = dtype})});
    if (row.backend != "native") continue;
    contenders.push_back(
        {row, group.get(), algorithm, group->shared_zeros({count}, dtype), group->shared_zeros({count}, dtype)});
    contenders.back().row.shared = true;
  }
  return contenders;
}

/// The hosts of all ranks, by rank.
std::vector<int> nodes_of(ProcessGroup& group) {
  const Tensor mine = Tensor::from(std::vector{static_cast<std::int64_t>(group.node())}, {1});
  std::vector<int> nodes;
  for (const std::int64_t node : group.all_gather(mine).to_vector<std::int64_t>())
    nodes.push_back(static_cast<int>(node));
  return nodes;
}

/// The algorithm of messages that all-reduces of so many bytes go by; empty if they go by no such.
std::string algorithm_at(const Contender& contender) {
  if (contender.algorithm != comm::kByCost) return contender.algorithm;
  std::string chosen;  // nothing between one rank
  for (const comm::AlgorithmChoice& choice : contender.group->algorithm_choices())
    if (choice.from_bytes <= contender.row.bytes) chosen = choice.algorithm;
  return chosen;
}

/// Predictions by what messages cost between these ranks.
class Predictor {
 public:
  /// Collective. Measures it, and has the groups choose by it.
  explicit Predictor(const std::vector<NamedGroup>& groups) {
    for (const NamedGroup& named : groups) {
      if (named.algorithm.empty()) continue;
      if (nodes_.empty()) {
        nodes_ = nodes_of(*named.group);
        costs_ = named.group->measure_message_costs();
      }
      named.group->use_message_costs(costs_);
    }
  }
  void predict(Contender& contender) const {
    const std::string algorithm = algorithm_at(contender);
    if (algorithm.empty()) return;
    if (contender.algorithm == comm::kByCost) contender.row.chosen = algorithm;
    contender.row.predicted = comm::predicted_seconds(comm::all_reduce_algorithm(algorithm).make(nodes_), nodes_,
                                                      contender.row.bytes, costs_);
  }

 private:
  std::vector<int> nodes_;
  comm::MessageCosts costs_;
};

}  // namespace

PredictionSummary summarize_predictions(std::span<const BenchRow> rows) {
  constexpr std::int64_t kSmallest = 64 << 10;
  std::vector<double> errors, choices;
  for (const BenchRow& row : rows) {
    if (row.bytes < kSmallest || row.predicted == 0.0) continue;
    if (row.chosen.empty()) {
      errors.push_back(std::abs(row.predicted / row.in_place.median - 1.0));
      continue;
    }
    double best = 0.0, chosen = 0.0;
    for (const BenchRow& other : rows) {
      if (other.bytes != row.bytes || other.predicted == 0.0 || !other.chosen.empty()) continue;
      if (best == 0.0 || other.in_place.median < best) best = other.in_place.median;
      if (other.backend == "native, " + row.chosen) chosen = other.in_place.median;
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

double bus_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }

void run_bench(comm::MpiEnvironment& environment, const BenchOptions& options,
               const std::function<void(const BenchRow&)>& show) {
  std::vector<NamedGroup> groups;
  for (const std::string& backend : options.backends) {
    auto group = comm::make_process_group(backend, environment);
    const std::string name(group->name());
    groups.push_back({name, std::move(group)});
  }
  for (const std::string& algorithm : options.algorithms) {
    const bool by_messages = algorithm != "auto" && algorithm != "shared-memory";
    groups.push_back({"native, " + algorithm,
                      comm::make_process_group({.backend = "native", .algorithm = algorithm}, environment),
                      by_messages ? algorithm : ""});
  }
  std::optional<Predictor> predictor;
  if (options.predicts) predictor.emplace(groups);
  for (std::int64_t bytes = options.min_bytes; bytes <= options.max_bytes; bytes *= options.factor) {
    std::vector<Contender> contenders = contenders_of(groups, bytes, options.dtype);
    for (std::int64_t round = 0; round < options.rounds; ++round) {
      for (Contender& contender : contenders) {
        contender.out_of_place.push_back(time_of(contender, false, options.op));
        contender.in_place.push_back(time_of(contender, true, options.op));
      }
    }
    for (Contender& contender : contenders) {
      contender.row.out_of_place = summary(contender.out_of_place);
      contender.row.in_place = summary(contender.in_place);
      contender.row.wrong = wrong_of(contender, options.op);
      if (predictor) predictor->predict(contender);
      if (contender.group->rank() == 0) show(contender.row);
    }
  }
}

}  // namespace tandem::apps
