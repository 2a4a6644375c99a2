#include "apps/sgd_lab/batch_size.h"

#include "apps/sgd_lab/lesson.h"

#include <fmt/format.h>

namespace tandem::sgd_lab {

namespace {

/// Of all ranks, before the first step and behind each.
std::vector<double> examples_by_step(const Run& run) {
  std::vector<double> examples{0.0};
  for (std::size_t step = 0; step < run[0].batches.size(); ++step) {
    examples.push_back(examples.back());
    for (const RankRecord& rank : run) examples.back() += static_cast<double>(rank.batches[step].size());
  }
  return examples;
}

BatchRun train_with(int factor, bool is_scaled, TrainingPlan plan, const Examples& examples) {
  plan.steps /= factor;
  plan.batch_factor = factor;
  plan.keeps_weights = false;
  if (is_scaled) plan.learning_rate *= factor;
  const Run run = train_replicas(plan, examples);
  return {.factor = factor,
          .learning_rate = plan.learning_rate,
          .batch = kBatchPerRank * factor * plan.ranks,
          .examples = examples_by_step(run),
          .losses = mean_losses(run)};
}

int largest_factor(int steps) {
  int largest = 1;
  while (largest < 8 && 2 * largest <= steps) largest *= 2;
  return largest;
}

}  // namespace

BatchLesson make_batch_lesson(const LabOptions& options, const Examples& examples) {
  BatchLesson lesson;
  const int largest = largest_factor(options.steps);
  TrainingPlan plan = plan_of(options);
  plan.steps = options.steps / largest * largest;
  for (int factor = 1; factor <= largest; factor *= 2) {
    lesson.same.push_back(train_with(factor, false, plan, examples));
    lesson.scaled.push_back(factor == 1 ? lesson.same.front() : train_with(factor, true, plan, examples));
  }
  return lesson;
}

std::string examples_text(const BatchLesson& lesson) {
  const BatchRun &small = lesson.same.front(), &large = lesson.same.back();
  std::string text = fmt::format("Each run has seen the same examples, {:.0f} in all", small.examples.back());
  if (large.factor > 1)
    text += fmt::format(": {} batches of {}, or {} of {}", small.losses.size() - 1, small.batch,
                        large.losses.size() - 1, large.batch);
  return text + ".";
}

std::string batch_text(const BatchLesson& lesson) {
  if (lesson.same.size() < 2) return "One step has too few examples for a larger batch.";
  const BatchRun &small = lesson.same.front(), &same = lesson.same.back(), &scaled = lesson.scaled.back();
  const double gain = small.losses.front() - small.losses.back();
  const auto share = [&](const BatchRun& run) { return 100.0 * (run.losses.front() - run.losses.back()) / gain; };
  const auto updates = [](const BatchRun& run) {
    return fmt::format("{} update{}", run.losses.size() - 1, run.losses.size() == 2 ? "" : "s");
  };
  std::string text = fmt::format(
      "The batch of {} brings the loss from {:.4f} to {:.4f} in {}. {} times the batch brings it to {:.4f} "
      "in {} with the same learning rate, and to {:.4f} with {} times that",
      small.batch, small.losses.front(), small.losses.back(), updates(small), same.factor, same.losses.back(),
      updates(same), scaled.losses.back(), scaled.factor);
  if (gain > 0.0)
    text += fmt::format(": {:.0f} % and {:.0f} % of what the small batch gained", share(same), share(scaled));
  return text + ".";
}

}  // namespace tandem::sgd_lab
