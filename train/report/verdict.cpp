// Rule by rule.
#include "tandem/train/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::train::report {
namespace {

/// The last epochs that have both training and held-out figures.
struct Figures {
  std::vector<double> epochs, train_loss, train_accuracy, loss, accuracy;
  std::string name;

  double gap() const { return train_accuracy.back() - accuracy.back(); }
};

Figures figures_of(const RunData& run) {
  const HeldOut held = held_out(run);
  Figures all;
  all.name = held.name;
  for (std::size_t i = 0; i < held.epochs.size(); ++i) {
    const auto epoch = std::ranges::find(run.epochs, static_cast<std::int64_t>(held.epochs[i]), &Epoch::epoch);
    if (!std::isfinite(epoch->train_loss) || !std::isfinite(epoch->train_accuracy) || !std::isfinite(held.accuracy[i]))
      continue;
    all.epochs.push_back(held.epochs[i]);
    all.train_loss.push_back(epoch->train_loss);
    all.train_accuracy.push_back(epoch->train_accuracy);
    all.loss.push_back(held.loss[i]);
    all.accuracy.push_back(held.accuracy[i]);
  }
  return all;
}

std::string gap_text(const Figures& f) {
  return fmt::format("Training accuracy is {:.2f} %, {} accuracy {:.2f} %: {:.2f} points {}.", f.train_accuracy.back(),
                     f.name, f.accuracy.back(), std::abs(f.gap()), f.gap() >= 0.0 ? "less" : "more");
}

Verdict diverged(const RunData& run) {
  return {Fit::diverged,
          fmt::format("Diverged in epoch {}", run.epochs.empty() ? 0 : run.epochs.back().epoch),
          {"It ended early: " + reason_of_divergence(run)},
          {"Try a lower learning rate (--lr), or clip gradients (--clip-norm 1). The same command with --find-nan, and "
           "this run's folder as --run-dir, tells where it comes from."}};
}

Verdict overfitting(const Figures& f, std::size_t best, bool has_risen, bool is_wide) {
  Verdict verdict{Fit::overfitting, "Overfitting", {}, {}};
  if (has_risen) {
    verdict.headline = fmt::format("Overfitting since epoch {:.0f}", f.epochs[best]);
    verdict.reasons.push_back(fmt::format(
        "The {0} loss was lowest in epoch {1:.0f}, at {2:.4g}, and is {3:.4g} now, {4:.0f} % above that, while the "
        "training loss fell from {5:.4g} to {6:.4g}.",
        f.name, f.epochs[best], f.loss[best], f.loss.back(), 100.0 * (f.loss.back() / f.loss[best] - 1.0),
        f.train_loss[best], f.train_loss.back()));
  }
  verdict.reasons.push_back(gap_text(f));
  if (is_wide && !has_risen)
    verdict.reasons.push_back(fmt::format("More than {:.0f} points are a wide gap.", kWideGap));
  verdict.advice.emplace_back(
      "More images or --augment help most; then --weight-decay, --dropout or --label-smoothing, or a smaller network.");
  if (has_risen)
    verdict.advice.push_back(
        fmt::format("The weights of epoch {0:.0f} have the lowest {1} loss: a run with --best-by {1}_loss keeps them.",
                    f.epochs[best], f.name));
  return verdict;
}

/// "The learning rate ended at 4e-07 ...", or "" where it did not end at nearly 0.
std::string ended_rate(const RunData& run) {
  double highest = 0.0;
  for (const Epoch& epoch : run.epochs) highest = std::isfinite(epoch.lr) ? std::max(highest, epoch.lr) : highest;
  const double last = run.epochs.back().lr;
  if (!(last < kEndedRate * highest)) return "";
  return fmt::format(
      "The learning rate ended at {:.2g}, which makes losses fall at the end: these weights have little more to gain.",
      last);
}

/// What lets a run be longer: where early stopping ended it, more epochs do not.
const char* way_to_longer(const RunData& run) {
  return run.stopped_early ? "more patience of --early-stopping" : "--epochs";
}

std::string early_text(const RunData& run) {
  if (run.best_by.empty() || run.best_epoch < 0) return "It was stopped early (--early-stopping).";
  return fmt::format("It was stopped early (--early-stopping): by {}, no epoch was better than epoch {}.", run.best_by,
                     run.best_epoch);
}

Verdict still_learning(const RunData& run, const Figures& f, const std::string& trend) {
  Verdict verdict{Fit::still_learning, "Still learning when it ended", {trend, gap_text(f)}, {}};
  const std::string rate = ended_rate(run);
  if (rate.empty()) {
    verdict.advice.emplace_back("A longer run (--epochs) is likely to gain.");
  } else {
    verdict.reasons.push_back(rate);
    verdict.advice.emplace_back(
        "A longer run from the beginning (--epochs), with which the schedule stretches, may gain; going on with this "
        "one hardly does.");
  }
  return verdict;
}

/// `before`: the first epoch of the trend.
Verdict underfitting(const RunData& run, const Figures& f, std::size_t before, const std::string& trend) {
  const double fallen = 1.0 - f.train_loss.back() / f.train_loss[before];
  const double risen = f.train_accuracy.back() - f.train_accuracy[before];
  const bool stands_still = std::abs(fallen) <= kFallingLoss && std::abs(risen) <= kStillAccuracy;
  const std::string only =
      fmt::format("Training accuracy is only {:.1f} %, below {:.0f} %", f.train_accuracy.back(), kLowAccuracy);
  Verdict verdict{Fit::underfitting, "Underfitting", {}, {}};
  verdict.reasons.push_back(stands_still ? only + ", and stands still."
                                         : fmt::format("{}; in epoch {:.0f} it was {:.1f} %.", only, f.epochs[before],
                                                       f.train_accuracy[before]));
  verdict.reasons.push_back(trend);
  verdict.reasons.push_back(gap_text(f));
  if (const std::string rate = ended_rate(run); !stands_still && !rate.empty()) verdict.reasons.push_back(rate);
  const std::string change =
      "a larger network (--model), another learning rate, or less augmentation and weight decay.";
  verdict.advice.push_back(stands_still ? "Try " + change
                                        : fmt::format("Train longer first ({}). Where that stands still, try {}",
                                                      way_to_longer(run), change));
  return verdict;
}

Verdict judge_figures(const RunData& run, const Figures& f) {
  const std::size_t n = f.epochs.size();
  if (n == 0) return {Fit::unknown, "No verdict yet", {"There is no epoch with training and held-out figures."}, {}};

  const double classes = run.evaluation ? static_cast<double>(run.evaluation->classes.size()) : 0.0;
  if (n < kLeastEpochs) {
    return {
        Fit::unknown,
        "Too short to judge",
        {fmt::format("{} epoch{} with {} figures; the verdict takes {}.", n, n == 1 ? "" : "s", f.name, kLeastEpochs),
         gap_text(f)},
        {run.epochs.size() < kLeastEpochs ? fmt::format("Train longer: {}.", way_to_longer(run))
                                          : "Evaluate more of the epochs: --evaluate-every 1."}};
  }
  if (classes >= 2.0 && f.train_accuracy.back() < kChanceFactor * 100.0 / classes) {
    return {Fit::not_learning,
            "Not learning",
            {fmt::format("Training accuracy is {:.1f} %; guessing among {:.0f} classes gives {:.1f} %.",
                         f.train_accuracy.back(), classes, 100.0 / classes)},
            {"Try a learning rate ten times lower or higher, and look at the images and labels themselves."}};
  }
  const auto best = static_cast<std::size_t>(std::ranges::min_element(f.loss) - f.loss.begin());
  const bool has_risen = f.loss.back() > (1.0 + kRisenLoss) * f.loss[best] && f.train_loss.back() < f.train_loss[best];
  const bool is_wide = f.gap() > kWideGap;
  if (has_risen || is_wide) return overfitting(f, best, has_risen, is_wide);

  const std::size_t before = n - 1 - std::max<std::size_t>(1, n / 5);
  const double fallen = 1.0 - f.train_loss.back() / f.train_loss[before];
  const std::string trend = fmt::format(
      "From epoch {:.0f} to {:.0f} the training loss went from {:.4g} to {:.4g} ({:+.1f} %), the {} loss "
      "from {:.4g} to {:.4g}.",
      f.epochs[before], f.epochs.back(), f.train_loss[before], f.train_loss.back(), -100.0 * fallen, f.name,
      f.loss[before], f.loss.back());
  // Early stopping has decided that it learns no more.
  if (!run.stopped_early && fallen > kFallingLoss && f.loss.back() < (1.0 - kFallingLoss) * f.loss[before])
    return still_learning(run, f, trend);
  if (f.train_accuracy.back() < kLowAccuracy) return underfitting(run, f, before, trend);
  return {Fit::good,
          "A good fit",
          {gap_text(f), trend,
           fmt::format("The {} loss is within {:.0f} % of its lowest, {:.4g} in epoch {:.0f}.", f.name,
                       100.0 * kRisenLoss, f.loss[best], f.epochs[best])},
          {}};
}

}  // namespace

Verdict judge(const RunData& run) {
  if (run.state == RunState::diverged) return diverged(run);
  Verdict verdict = judge_figures(run, figures_of(run));
  if (run.stopped_early) verdict.reasons.push_back(early_text(run));
  return verdict;
}

}  // namespace tandem::train::report
