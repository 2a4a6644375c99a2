// Sizes by settings, speeds by probes.
#include "apps/study/estimate.h"

#include "apps/study/bench_run.h"
#include "apps/study/catalogue.h"
#include "apps/study/memory.h"
#include "apps/study/process.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>

namespace tandem::study {
namespace {

namespace fs = std::filesystem;

/// Settings that decide how fast an image is learnt; others decide how many there are.
constexpr std::string_view kOfSpeed[] = {
    "dataset",   "data",           "model",      "layers",           "precision", "ranks",          "replicas",
    "backend",   "threads",        "device",     "conv-impl",        "hosts",     "comm-algorithm", "width",
    "optimizer", "shared-weights", "batch-norm", "simulate-network", "whitening", "activation"};
constexpr double kTestShare = 1.0 / 3.0;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double number_in(const Settings& settings, const std::string& name, double otherwise) {
  return parse_number<double>(value_of(settings, name)).value_or(otherwise);
}

Settings probe_settings(const Settings& settings) {
  Settings kept;
  for (const auto& setting : settings)
    if (std::ranges::find(kOfSpeed, setting.first) != std::end(kOfSpeed)) kept.push_back(setting);
  const std::string batch = value_of(settings, "batch-size");
  kept.emplace_back("batch-size", batch.empty() ? "64" : batch);
  kept.insert(kept.end(), {{"epochs", "2"}, {"limit-train", "256"}, {"limit-test", "64"}});
  return kept;
}

/// Of the last epoch: the first one begins with cold caches.
ProbedSpeed speed_of(const KeptRun& run) {
  if (run.outcome != RunOutcome::finished || run.data->epochs.empty()) return {};
  double epochs = 0.0;
  for (const auto& epoch : run.data->epochs) epochs += epoch.seconds;
  constexpr double kLaunch = 0.15;  // what a process takes before and behind what its log tells
  return {run.data->epochs.back().images_per_second,
          std::fmax(0.0, train::report::seconds_of(*run.data) - epochs) + kLaunch};
}

}  // namespace

RunSize size_of(const Settings& settings) {
  const std::string dataset = value_of(settings, "dataset");
  const bool is_mnist = dataset == "mnist" || dataset == "fashion-mnist", is_synthetic = dataset == "synthetic";
  const double all = is_mnist ? 60000.0 : is_synthetic ? 10000.0 : 50000.0, tests = is_synthetic ? 2000.0 : 10000.0;
  const auto limited = [&](const char* name, double most) {
    const double limit = number_in(settings, name, 0.0);
    return limit > 0.0 ? (is_synthetic ? limit : std::min(limit, most)) : most;
  };
  RunSize size{limited("limit-train", all), limited("limit-test", tests), number_in(settings, "epochs", 8.0)};
  const double split = number_in(settings, "validation-split", 0.0);
  size.test_images += split * size.train_images;
  size.train_images *= 1.0 - split;
  return size;
}

double seconds_by(const RunSize& size, const ProbedSpeed& speed) {
  if (!(speed.images_per_second > 0.0)) return kNaN;
  return speed.start_seconds +
         size.epochs * (size.train_images + kTestShare * size.test_images) / speed.images_per_second;
}

void Remaining::add(double estimate) {
  ++(std::isfinite(estimate) ? known_ : unknown_);
  if (std::isfinite(estimate)) planned_ += estimate;
}

void Remaining::finish(double estimate, double seconds) {
  leave(estimate);
  if (!std::isfinite(estimate)) return;
  estimated_ += estimate;
  taken_ += seconds;
}

void Remaining::leave(double estimate) {
  --(std::isfinite(estimate) ? known_ : unknown_);
  if (std::isfinite(estimate)) planned_ -= estimate;
}

double Remaining::seconds() const {
  const double mean = known_ > 0 ? planned_ / known_ : 0.0;
  const double ratio = estimated_ > 0.0 ? taken_ / estimated_ : 1.0;
  return std::fmax(0.0, (planned_ + mean * unknown_) * ratio);
}

ProbedSpeed Estimator::probe(const Study& study, const Settings& settings, const std::string& key) {
  const Plan probes{study, {{{}, settings, key, ""}}, {{0, 1, "probe-" + key}}};
  const std::string folder = (fs::path(folder_) / probes.runs.front().folder).string();
  KeptRun kept = find_run(folder_, probes, probes.runs.front());
  if (kept.outcome == RunOutcome::finished) return speed_of(kept);
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  require(!error, "{}: cannot be made: {}", folder, error.message());
  std::vector<std::string> words = command_of(program_file(study.program), study, probes.points.front(), 1);
  words.insert(words.end(), {"--run-dir=" + folder, "--progress=none"});
  constexpr std::chrono::seconds kLimit(120);
  run_process(words, (fs::path(folder) / kOutputFile).string(), kLimit, stop_);
  return speed_of(find_run(folder_, probes, probes.runs.front()));
}

double Estimator::seconds_of(const Plan& plan, const Point& point) {
  if (const Bench* const bench = find_bench(plan.study.program)) return bench->usual_seconds;
  const Settings settings = probe_settings(point.settings);
  const std::string key = key_of(plan.study, settings);
  const auto [place, is_new] = known_.try_emplace(key);
  if (is_new && !stop_()) place->second = probe(plan.study, settings, key);
  return seconds_by(size_of(point.settings), place->second);
}

}  // namespace tandem::study
