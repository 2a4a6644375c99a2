#include "apps/sgd_lab/text.h"

#include "apps/sgd_lab/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace tandem::sgd_lab {

namespace {

std::string weights_lines(const Run& run) {
  std::string text =
      "\n1. Initial weights\n"
      "Each rank draws its own; rank 0 then broadcasts its weights to all.\n"
      "  rank  drawn: hash       norm      after the broadcast  norm\n";
  for (std::size_t rank = 0; rank < run.size(); ++rank) {
    const Flat &drawn = run[rank].drawn, &weights = run[rank].weights[0];
    text += fmt::format("  {:4}  {}  {:8.5f}  {}     {:8.5f}\n", rank, hash(drawn), norm(drawn), hash(weights),
                        norm(weights));
  }
  return text;
}

std::string batch_lines(const Lesson& lesson) {
  std::string text = fmt::format(
      "\n2. Micro-batches of step 1\n"
      "The sampler cuts a batch of {} examples into {}, one for each rank.\n",
      kBatchPerRank * lesson.options.ranks, lesson.options.ranks);
  const std::vector<std::int64_t> labels = lesson.examples.training.labels.to_vector<std::int64_t>();
  for (std::size_t rank = 0; rank < lesson.intact.size(); ++rank) {
    const RankRecord& record = lesson.intact[rank];
    std::vector<std::int64_t> classes;
    for (const std::int64_t index : record.batches[0]) classes.push_back(labels[static_cast<std::size_t>(index)]);
    text += fmt::format("  rank {}: examples {}\n          classes  {}\n          gradient norm {:.6f}\n", rank,
                        fmt::join(record.batches[0], " "), fmt::join(classes, " "), norm(record.own_gradient));
  }
  return text;
}

std::string gradient_lines(const GradientCheck& check) {
  return fmt::format(
      "\n3. The averaged gradient\n"
      "One process with the joined batch computes the same, but for rounding.\n"
      "  averaged over ranks    norm {:.6f}\n"
      "  single process         norm {:.6f}\n"
      "  largest difference     {:.3g}\n"
      "  relative difference    {:.3g}\n",
      check.averaged_norm, check.single_norm, check.largest_difference, check.relative_difference);
}

std::string replica_lines(const Run& run) {
  std::string text = "\n4. Replicas after step 1, and after the last\n";
  for (std::size_t rank = 0; rank < run.size(); ++rank)
    text += fmt::format("  rank {}: {}  {}\n", rank, hash(run[rank].weights[1]), hash(run[rank].weights.back()));
  std::set<std::string> hashes;
  for (const RankRecord& rank : run) hashes.insert(hash(rank.weights.back()));
  return text + (hashes.size() == 1 ? "  All are equal, bit by bit.\n" : "  They are NOT equal.\n");
}

std::string values_lines(const Values& values) {
  std::string text;
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    text += fmt::format("     rank {}: {:>3}\n", rank, fmt::join(values[rank], " "));
  return text;
}

std::string ring_lines(const RingLesson& ring) {
  std::string text = fmt::format(
      "\n5. All-reduce by a ring, on small numbers\n"
      "{} ranks have {} chunks of one number each, and want the sums of all ranks.\n"
      "  before\n{}",
      ring.schedule.ranks, ring.schedule.chunks, values_lines(ring.before));
  for (std::size_t i = 0; i < ring.rounds.size(); ++i) {
    text += fmt::format("  round {} of {}\n", i + 1, ring.rounds.size());
    for (const Message& message : ring.rounds[i].messages) text += fmt::format("     {}\n", message_text(message));
    text += values_lines(ring.rounds[i].after);
  }
  return text + "The same as a table (\"0>1 c0+\": rank 0 sends chunk 0 to rank 1, which adds it):\n" +
         to_text(ring.schedule);
}

std::string time_lines(const Lesson& lesson) {
  std::string text = "\n6. Where the time goes\n";
  for (const std::string& paragraph : time_paragraphs(lesson)) text += paragraph + "\n";
  return text + to_text(time_table(lesson.timed.front()));
}

/// 0, 1, 2, 5, 10, 20, 50 ... and the last.
std::vector<std::size_t> shown_steps(std::size_t last) {
  std::set<std::size_t> steps{0, last};
  for (std::size_t power = 1; power <= last; power *= 10)
    for (const std::size_t factor : {1, 2, 5})
      if (factor * power < last) steps.insert(factor * power);
  return {steps.begin(), steps.end()};
}

std::string broken_lines(const Lesson& lesson, const BrokenRun& run) {
  std::string text = fmt::format(
      "\nLeft out: {}\n{}\n"
      "        loss on held-out examples   largest distance of replicas\n"
      "  step    intact      broken          intact      broken\n",
      run.left_out.name, run.left_out.what_breaks);
  for (const std::size_t step : shown_steps(run.losses.size() - 1))
    text += fmt::format("  {:4}  {:8.4f}    {:8.4f}        {:8.4f}    {:8.4f}\n", step, lesson.losses[step],
                        run.losses[step], lesson.distances[step], run.distances[step]);
  return text + difference_text(run) + "\n" +
         fmt::format("Different examples that were used: {} intact, {} broken.\n", lesson.examples_seen,
                     run.examples_seen);
}

}  // namespace

std::string message_text(const Message& message) {
  return fmt::format("rank {} -> {}: chunk {}, {} ({})", message.from, message.to, message.chunk, message.value,
                     message.is_added ? "added" : "copied");
}

std::string difference_text(const BrokenRun& run) {
  const auto when = [](const std::optional<int>& step) {
    if (!step) return std::string("never differ");
    return *step == 0 ? std::string("differ before the first step") : fmt::format("differ from step {} on", *step);
  };
  return fmt::format("Its replicas {}; rank 0's weights and those of the intact run {}.", when(run.replicas_differ_at),
                     when(run.differs_from_intact));
}

std::string lesson_text(const Lesson& lesson) {
  const LabOptions& options = lesson.options;
  std::string text = fmt::format("Synchronous SGD on {} ranks, {} steps, learning rate {}, momentum {}, seed {}\n",
                                 options.ranks, options.steps, kLearningRate, kMomentum, options.seed);
  if (options.shows(Chapter::step))
    text += weights_lines(lesson.intact) + batch_lines(lesson) + gradient_lines(lesson.gradient) +
            replica_lines(lesson.intact);
  if (options.shows(Chapter::ring)) text += ring_lines(lesson.ring);
  if (options.shows(Chapter::time)) text += time_lines(lesson);
  if (options.shows(Chapter::speed_up))
    text += fmt::format("\n7. What more ranks gain\n{}\n{}", speed_text(lesson), to_text(speed_table(lesson)));
  if (options.shows(Chapter::batch_size))
    text += fmt::format("\n8. Larger batches\nThe loss on held-out examples. {}\n{}", examples_text(lesson.batches),
                        to_text(batch_table(lesson.batches)));
  if (options.shows(Chapter::broken)) text += "\n9. What breaks when a part is left out\n";
  for (const BrokenRun& run : lesson.broken) text += broken_lines(lesson, run);
  return text;
}

}  // namespace tandem::sgd_lab
