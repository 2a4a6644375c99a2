#include "apps/sgd_lab/batch_size.h"

#include "apps/sgd_lab/lesson.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::sgd_lab {

namespace {

BatchRun train_with(int factor, bool is_scaled, const LabOptions& options, const Examples& examples) {
  TrainingPlan plan = plan_of(options);
  plan.steps = options.steps / factor;
  plan.batch_per_rank = kBatchPerRank * factor;
  plan.keeps_weights = false;
  if (is_scaled) plan.learning_rate *= factor;
  BatchRun run{.factor = factor,
               .learning_rate = plan.learning_rate,
               .batch = plan.batch_per_rank * plan.ranks,
               .examples = {},
               .losses = mean_losses(train_replicas(plan, examples))};
  for (std::size_t step = 0; step < run.losses.size(); ++step)
    run.examples.push_back(static_cast<double>(run.batch) * static_cast<double>(step));
  return run;
}

}  // namespace

BatchLesson make_batch_lesson(const LabOptions& options, const Examples& examples) {
  BatchLesson lesson;
  for (const int factor : {1, 2, 4, 8}) {
    if (factor > options.steps) break;
    lesson.same.push_back(train_with(factor, false, options, examples));
    lesson.scaled.push_back(factor == 1 ? lesson.same.front() : train_with(factor, true, options, examples));
  }
  return lesson;
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
