// Figures of runs, from their logs.
#include "apps/study/measure.h"

#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tandem::study {
namespace {

using train::plot::Unit;
using train::report::Epoch;
using train::report::figure_in;
using train::report::kMissing;
using train::report::RunData;

double last_of(const RunData& run, double Epoch::* field) {
  for (std::size_t i = run.epochs.size(); i-- > 0;)
    if (std::isfinite(run.epochs[i].*field)) return run.epochs[i].*field;
  return kMissing;
}

/// What a run had, and took, before it diverged is no result.
bool has_diverged(const RunData& run) { return run.state == train::report::RunState::diverged; }

template <double Epoch::* kField>
double last(const RunData& run, const RunData* /*baseline*/) {
  return has_diverged(run) ? kMissing : last_of(run, kField);
}

/// Those of an epoch behind the first one, which begins with cold caches, where there are several.
template <typename Figure>
double mean_of_later_epochs(const RunData& run, const Figure& figure) {
  if (has_diverged(run)) return kMissing;
  double sum = 0.0;
  int count = 0;
  for (std::size_t i = run.epochs.size() > 1 ? 1 : 0; i < run.epochs.size(); ++i) {
    const double value = figure(run.epochs[i]);
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count > 0 ? sum / count : kMissing;
}

double seconds(const RunData& run, const RunData* /*baseline*/) {
  return has_diverged(run) ? kMissing : train::report::seconds_of(run);
}

double images_per_second(const RunData& run, const RunData* /*baseline*/) {
  return mean_of_later_epochs(run, [](const Epoch& epoch) { return epoch.images_per_second; });
}

double epoch_seconds(const RunData& run, const RunData* /*baseline*/) {
  return mean_of_later_epochs(run, [](const Epoch& epoch) { return epoch.seconds; });
}

double gap(const RunData& run, const RunData* baseline) {
  return last<&Epoch::train_accuracy>(run, baseline) - last<&Epoch::test_accuracy>(run, baseline);
}

double peak_memory(const RunData& run, const RunData* /*baseline*/) {
  double most = kMissing;
  for (const Epoch& epoch : run.epochs) most = std::fmax(most, epoch.peak_memory_bytes);
  return most;
}

double activation_memory(const RunData& run, const RunData* /*baseline*/) {
  return figure_in(run.peak_tensor_bytes, "activations");
}

double optimizer_memory(const RunData& run, const RunData* /*baseline*/) {
  return figure_in(run.peak_tensor_bytes, "optimizer");
}

double skipped_steps(const RunData& run, const RunData* /*baseline*/) {
  double sum = 0.0;
  for (const Epoch& epoch : run.epochs) sum += epoch.skipped_steps;
  return run.epochs.empty() || has_diverged(run) ? kMissing : sum;
}

double epochs(const RunData& run, const RunData* /*baseline*/) {
  return run.epochs.empty() || has_diverged(run) ? kMissing : static_cast<double>(run.epochs.back().epoch);
}

double speed_up(const RunData& run, const RunData* baseline) {
  return baseline == nullptr ? kMissing : images_per_second(run, nullptr) / images_per_second(*baseline, nullptr);
}

/// What the baseline's log predicts of as many ranks, each on a host of its own.
double predicted_speed_up(const RunData& run, const RunData* baseline) {
  if (baseline == nullptr || !baseline->scaling) return kMissing;
  for (const auto& ranks : baseline->scaling->of)
    if (ranks.ranks == run.ranks) return ranks.speed_up;
  return kMissing;
}

/// Times of a GPU's log are what enqueueing takes on the host: they say nothing of phases.
bool has_phase_times(const RunData& run) { return run.device == "cpu"; }

double per_step(const RunData& run, const std::vector<std::string_view>& phases) {
  if (!has_phase_times(run)) return kMissing;
  return mean_of_later_epochs(run,
                              [&](const Epoch& epoch) {
                                double sum = 0.0;
                                for (const std::string_view phase : phases) sum += figure_in(epoch.time, phase);
                                return sum;
                              }) /
         run.steps_per_epoch;
}

double forward_seconds(const RunData& run, const RunData* /*baseline*/) { return per_step(run, {"forward"}); }

double backward_seconds(const RunData& run, const RunData* /*baseline*/) { return per_step(run, {"backward"}); }

double computing_seconds(const RunData& run, const RunData* /*baseline*/) {
  return per_step(run, {"forward", "backward", "optimizer"});
}

double waiting_seconds(const RunData& run, const RunData* /*baseline*/) { return per_step(run, {"communication"}); }

/// From when the first bucket is full to the end of the last one's average.
double exchange_seconds(const RunData& run, const RunData* /*baseline*/) {
  if (!has_phase_times(run)) return kMissing;
  return mean_of_later_epochs(run, [](const Epoch& epoch) {
    return figure_in(epoch.exchange, "seconds") / figure_in(epoch.exchange, "steps");
  });
}

/// What the run's log predicts of its own number of ranks, by the costs of messages that it knows; null where it does
/// not, and on one rank, which exchanges nothing.
const train::report::PredictedScaling::Ranks* own_prediction(const RunData& run) {
  if (!run.scaling || !(run.ranks >= 2.0) || !has_phase_times(run)) return nullptr;
  const auto& all = run.scaling->of;
  const auto found = std::ranges::find(all, run.ranks, &train::report::PredictedScaling::Ranks::ranks);
  return found == all.end() ? nullptr : &*found;
}

/// Of the same span as exchange_seconds: the window of the backward pass and what is waited for behind it.
double predicted_exchange_seconds(const RunData& run, const RunData* /*baseline*/) {
  const auto* const own = own_prediction(run);
  return own == nullptr ? kMissing : run.scaling->window_seconds + own->waited_seconds;
}

/// The most ranks, of those that the log predicts, that are used by half or better.
double paying_ranks(const RunData& run, const RunData* /*baseline*/) {
  if (!run.scaling) return kMissing;
  constexpr double kEfficiency = 0.5;
  double most = kMissing;
  for (const auto& ranks : run.scaling->of)
    if (ranks.speed_up >= kEfficiency * ranks.ranks) most = std::fmax(most, ranks.ranks);
  return most;
}

/// By the predicted time of the all-reduces alone: what is measured goes on while a rank computes.
double compute_to_exchange(const RunData& run, const RunData* baseline) {
  const auto* const own = own_prediction(run);
  return own == nullptr ? kMissing : computing_seconds(run, baseline) / own->exchange_seconds;
}

/// Layers whose gradient was exactly 0 at the last step that --log-norms logged.
double layers_without_gradient(const RunData& run, const RunData* /*baseline*/) {
  if (run.epochs.empty() || run.epochs.back().layers.empty()) return kMissing;
  return static_cast<double>(
      std::ranges::count_if(run.epochs.back().layers, [](const auto& layer) { return layer.gradient_norm == 0.0; }));
}

/// Of all ReLUs' channels, in percent; with --log-dead-relus.
double dead_relus(const RunData& run, const RunData* /*baseline*/) {
  if (run.epochs.empty() || run.epochs.back().relus.empty()) return kMissing;
  double channels = 0.0, dead = 0.0;
  for (const auto& relu : run.epochs.back().relus) {
    channels += relu.channels;
    dead += relu.dead;
  }
  return 100.0 * dead / channels;
}

double first_layer_gradient(const RunData& run, const RunData* /*baseline*/) {
  if (run.epochs.empty() || run.epochs.back().layers.empty()) return kMissing;
  return run.epochs.back().layers.front().gradient_norm;
}

constexpr Measure kMeasures[] = {
    {"seconds", "time", Unit::seconds, Better::lower, seconds, nullptr},
    {"epoch_seconds", "time per epoch", Unit::seconds, Better::lower, epoch_seconds, &Epoch::seconds},
    {"images_per_second", "images/s", Unit::none, Better::higher, images_per_second, &Epoch::images_per_second},
    {"speed_up", "speed-up", Unit::none, Better::higher, speed_up, nullptr},
    {"predicted_speed_up", "predicted speed-up", Unit::none, Better::neither, predicted_speed_up, nullptr},
    {"test_accuracy", "test accuracy", Unit::percent, Better::higher, last<&Epoch::test_accuracy>,
     &Epoch::test_accuracy},
    {"validation_accuracy", "validation accuracy", Unit::percent, Better::higher, last<&Epoch::validation_accuracy>,
     &Epoch::validation_accuracy},
    {"train_accuracy", "train accuracy", Unit::percent, Better::higher, last<&Epoch::train_accuracy>,
     &Epoch::train_accuracy},
    {"gap", "train minus test accuracy", Unit::percent, Better::lower, gap, nullptr},
    {"test_loss", "test loss", Unit::none, Better::lower, last<&Epoch::test_loss>, &Epoch::test_loss},
    {"train_loss", "training loss", Unit::none, Better::lower, last<&Epoch::train_loss>, &Epoch::train_loss},
    {"peak_memory", "memory per rank", Unit::bytes, Better::lower, peak_memory, &Epoch::peak_memory_bytes},
    {"activation_memory", "memory of activations", Unit::bytes, Better::lower, activation_memory, nullptr},
    {"optimizer_memory", "memory of the optimizer", Unit::bytes, Better::lower, optimizer_memory, nullptr},
    {"epochs", "epochs", Unit::none, Better::neither, epochs, nullptr},
    {"skipped_steps", "skipped steps", Unit::none, Better::lower, skipped_steps, &Epoch::skipped_steps},
    {"computing_seconds", "computing per step", Unit::seconds, Better::lower, computing_seconds, nullptr},
    {"forward_seconds", "forward per step", Unit::seconds, Better::lower, forward_seconds, nullptr},
    {"backward_seconds", "backward per step", Unit::seconds, Better::lower, backward_seconds, nullptr},
    {"waiting_seconds", "waiting per step", Unit::seconds, Better::lower, waiting_seconds, nullptr},
    {"exchange_seconds", "first bucket to last average, per step", Unit::seconds, Better::lower, exchange_seconds,
     nullptr},
    {"predicted_exchange_seconds", "predicted first bucket to last average, per step", Unit::seconds, Better::neither,
     predicted_exchange_seconds, nullptr},
    {"paying_ranks", "ranks that pay", Unit::none, Better::higher, paying_ranks, nullptr},
    {"compute_to_exchange", "computing / predicted all-reduces", Unit::none, Better::higher, compute_to_exchange,
     nullptr},
    {"layers_without_gradient", "layers without gradient", Unit::none, Better::lower, layers_without_gradient, nullptr},
    {"dead_relus", "dead channels of ReLUs", Unit::percent, Better::lower, dead_relus, nullptr},
    {"all_reduce_seconds", "time of an all-reduce", Unit::seconds, Better::lower, nullptr, nullptr},
    {"bus_bandwidth", "bandwidth of the bus per second", Unit::bytes, Better::higher, nullptr, nullptr},
    {"conv_forward_seconds", "convolutions, forward", Unit::seconds, Better::lower, nullptr, nullptr},
    {"conv_backward_seconds", "convolutions, backward", Unit::seconds, Better::lower, nullptr, nullptr},
    {"first_layer_gradient", "gradient norm of the first layer", Unit::none, Better::neither, first_layer_gradient,
     nullptr},
};

}  // namespace

const Measure& find_measure(std::string_view name) {
  const auto* const found = std::ranges::find(kMeasures, name, &Measure::name);
  if (found != std::end(kMeasures)) return *found;
  std::vector<std::string> names;
  for (const Measure& measure : kMeasures) names.emplace_back(measure.name);
  fail("{}", unknown_name("measure", name, names));
}

}  // namespace tandem::study
