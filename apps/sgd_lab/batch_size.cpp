#include "apps/sgd_lab/batch_size.h"

#include "apps/sgd_lab/lesson.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::sgd_lab {

namespace {

BatchRun train_with(int factor, bool is_scaled, const LabOptions& options, const Examples& examples) {
  TrainingPlan plan = plan_of(options);
  plan.steps = std::max(1, options.steps / factor);
  plan.batch_per_rank = kBatchPerRank * factor;
  plan.keeps_weights = false;
  if (is_scaled) plan.learning_rate *= factor;
  BatchRun run{.factor = factor,
               .is_scaled = is_scaled,
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
  for (const int factor : {1, 2, 4, 8}) lesson.same.push_back(train_with(factor, false, options, examples));
  lesson.scaled.push_back(lesson.same.front());
  for (const int factor : {2, 4, 8}) lesson.scaled.push_back(train_with(factor, true, options, examples));
  return lesson;
}

std::string batch_text(const BatchLesson& lesson) {
  const BatchRun &small = lesson.same.front(), &same = lesson.same.back(), &scaled = lesson.scaled.back();
  const double gain = small.losses.front() - small.losses.back();
  const auto share = [&](const BatchRun& run) { return 100.0 * (run.losses.front() - run.losses.back()) / gain; };
  std::string text = fmt::format(
      "The batch of {} brings the loss from {:.4f} to {:.4f} in {} updates. {} times the batch brings it to {:.4f} in "
      "{} "
      "updates with the same learning rate, and to {:.4f} with {} times that",
      small.batch, small.losses.front(), small.losses.back(), small.losses.size() - 1, same.factor, same.losses.back(),
      same.losses.size() - 1, scaled.losses.back(), scaled.factor);
  if (gain > 0.0)
    text += fmt::format(": {:.0f} % and {:.0f} % of what the small batch gained", share(same), share(scaled));
  return text + ".";
}

}  // namespace tandem::sgd_lab
