// Questions with hidden answers.
#include "apps/sgd_lab/page_parts.h"
#include "tandem/comm/cost/speed_up.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>

#include <utility>

namespace tandem::sgd_lab {

namespace {

using Exercise = std::pair<std::string, std::string>;

void add(std::vector<Exercise>& all, const std::vector<Exercise>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::vector<Exercise> exercises_on_step(const Lesson& lesson) {
  return {{"Why are the averaged gradient and that of a single process not the same bits?",
           fmt::format("Sums of floating-point numbers depend on their order. The relative difference is {:.2g}; f32 "
                       "has about 7 digits.",
                       lesson.gradient.relative_difference)}};
}

std::vector<Exercise> exercises_on_ring(const Lesson& lesson) {
  const int ranks = lesson.options.ranks;
  return {
      {fmt::format("How many numbers does a rank send in the ring, of {} chunks of k numbers each?", ranks),
       fmt::format("2 (N - 1) k = {} k: a chunk in each of the {} rounds. As N grows this comes near to twice the "
                   "data, whatever the number of ranks.",
                   2 * (ranks - 1), 2 * (ranks - 1))},
      {"In which round is the first sum of all ranks complete, and where?",
       fmt::format("In round N - 1 = {}: then each rank has one complete chunk, and the rounds behind it only copy.",
                   ranks - 1)}};
}

std::vector<Exercise> exercises_on_time(const Lesson& lesson) {
  const TimedSteps& timed = lesson.timed.front();
  return {
      {"How much could a step gain at most if the whole exchange were hidden?",
       fmt::format("It would take T_comp, {:.3f} ms, in place of {:.3f} ms. The last bucket cannot be hidden: it is "
                   "full only when the backward pass ends.",
                   1e3 * timed.compute, 1e3 * timed.behind.step)},
      {"Why not a bucket for each weight?",
       "Each all-reduce has a latency, and ranks have work with every message. Buckets must be large enough for the "
       "bandwidth to count, and small enough to begin early."}};
}

std::vector<Exercise> exercises_on_speed_up(const Lesson& lesson) {
  const comm::SpeedUp &behind = lesson.speed_ups.behind.back(), &beside = lesson.speed_ups.beside.back();
  return {{fmt::format("{} ranks gain {:.1f} and {:.1f}, not {}. What would help?", behind.ranks, behind.factor,
                       beside.factor, behind.ranks),
           "A larger batch of each rank: T_comp grows with it, and the exchange does not. Then a faster network; for "
           "small models less latency, for large ones more bandwidth."}};
}

std::vector<Exercise> exercises_on_batch_size(const Lesson& lesson) {
  const BatchRun& largest = lesson.batches.scaled.back();
  if (largest.factor == 1) return {};
  return {
      {fmt::format("Why is the learning rate multiplied by {} with {} times the batch?", largest.factor,
                   largest.factor),
       fmt::format("There are {} times fewer updates for as many examples, and the mean gradient is about the same: "
                   "each must go as far as {} small ones. That fails where the gradient changes meanwhile, which is "
                   "why large batches often begin with a warm-up.",
                   largest.factor, largest.factor)}};
}

std::vector<Exercise> exercises_on_broken() {
  return {{"Without sync-init all replicas get the same gradient. Why does their distance stay what it was?",
           "All take the same steps, so that differences between weights never change. The gradient that each gets is "
           "an average over different places, and right for none of them."},
          {"Without the sampler replicas stay equal. How would one notice?",
           "By the examples that are used, or by the loss: hashes of replicas do not show it."}};
}

}  // namespace

void add_exercises(HtmlWriter& html, const Lesson& lesson) {
  const LabOptions& options = lesson.options;
  std::vector<Exercise> all;
  if (options.shows(Chapter::step)) add(all, exercises_on_step(lesson));
  if (options.shows(Chapter::ring)) add(all, exercises_on_ring(lesson));
  if (options.shows(Chapter::time)) add(all, exercises_on_time(lesson));
  if (options.shows(Chapter::speed_up)) add(all, exercises_on_speed_up(lesson));
  if (options.shows(Chapter::batch_size)) add(all, exercises_on_batch_size(lesson));
  if (options.shows(Chapter::broken)) add(all, exercises_on_broken());
  if (all.empty()) return;
  html.element("h2", "Exercises");
  train::report::begin_card(html);
  for (const auto& [question, answer] : all) {
    html.open("details");
    html.element("summary", question);
    html.element("p", answer);
    html.close();
  }
  html.close();
}

}  // namespace tandem::sgd_lab
