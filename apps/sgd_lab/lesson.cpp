#include "apps/sgd_lab/lesson.h"

#include "apps/measure/quantile.h"
#include "tandem/comm/ddp/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tandem::sgd_lab {

namespace {

std::vector<double> replica_distances(const Run& run) {
  std::vector<double> distances(run[0].weights.size());
  for (const RankRecord& rank : run)
    for (std::size_t step = 0; step < distances.size(); ++step)
      distances[step] = std::max(distances[step], distance(rank.weights[step], run[0].weights[step]));
  return distances;
}

/// The first step behind which two records of weights differ in a bit.
std::optional<int> first_difference(const std::vector<Flat>& a, const std::vector<Flat>& b) {
  for (std::size_t step = 0; step < a.size(); ++step)
    if (hash(a[step]) != hash(b[step])) return static_cast<int>(step);
  return std::nullopt;
}

std::optional<int> replicas_differ_at(const Run& run) {
  std::optional<int> first;
  for (const RankRecord& rank : run) {
    const std::optional<int> step = first_difference(rank.weights, run[0].weights);
    if (step) first = std::min(*step, first.value_or(*step));
  }
  return first;
}

std::int64_t examples_seen(const Run& run) {
  std::set<std::int64_t> seen;
  for (const RankRecord& rank : run)
    for (const auto& batch : rank.batches) seen.insert(batch.begin(), batch.end());
  return static_cast<std::int64_t>(seen.size());
}

double median_of(const Run& run, std::vector<double> RankRecord::* seconds) {
  std::vector<double> all;
  for (const RankRecord& rank : run) all.insert(all.end(), (rank.*seconds).begin(), (rank.*seconds).end());
  return apps::median(std::move(all));
}

GradientCheck check_gradient(const Run& run, const Examples& examples) {
  std::vector<std::int64_t> joined;
  for (const RankRecord& rank : run) joined.insert(joined.end(), rank.batches[0].begin(), rank.batches[0].end());
  const Flat single = single_process_gradient(run[0].weights[0], examples, joined);
  const Flat& averaged = run[0].gradient;
  GradientCheck check{.averaged_norm = norm(averaged), .single_norm = norm(single)};
  for (std::size_t i = 0; i < single.size(); ++i)
    check.largest_difference =
        std::max(check.largest_difference, std::abs(static_cast<double>(averaged[i]) - single[i]));
  check.relative_difference = distance(averaged, single) / check.single_norm;
  return check;
}

}  // namespace

std::vector<double> mean_losses(const Run& run) {
  std::vector<double> means(run[0].losses.size());
  for (const RankRecord& rank : run)
    for (std::size_t step = 0; step < means.size(); ++step)
      means[step] += rank.losses[step] / static_cast<double>(run.size());
  return means;
}

double norm(const Flat& values) { return distance(values, Flat(values.size())); }

double distance(const Flat& a, const Flat& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

std::string hash(const Flat& values) {
  return fmt::format("{:016x}", comm::hash_bytes(values.data(), values.size() * sizeof(float)));
}

Lesson make_lesson(const LabOptions& options) {
  Lesson lesson;
  lesson.options = options;
  lesson.examples = make_examples(options.seed);
  lesson.intact = train_replicas(plan_of(options), lesson.examples);
  lesson.gradient = check_gradient(lesson.intact, lesson.examples);
  lesson.ring = make_ring_lesson(options.ranks, options.seed);
  lesson.losses = mean_losses(lesson.intact);
  lesson.distances = replica_distances(lesson.intact);
  lesson.examples_seen = examples_seen(lesson.intact);
  lesson.compute_seconds = median_of(lesson.intact, &RankRecord::compute_seconds);
  lesson.exchange_seconds = median_of(lesson.intact, &RankRecord::exchange_seconds);
  if (options.shows(Chapter::time) || options.shows(Chapter::speed_up))
    lesson.timed.push_back(time_steps(2, options.network));
  if (options.shows(Chapter::speed_up)) {
    for (int ranks = 4; ranks <= most_timed_ranks(); ranks *= 2)
      lesson.timed.push_back(time_steps(ranks, options.network));
    lesson.speed_ups = predict_speed_ups(lesson.timed.front());
  }
  if (options.shows(Chapter::batch_size)) lesson.batches = make_batch_lesson(options, lesson.examples);
  if (!options.shows(Chapter::broken)) return lesson;
  for (const PartEntry& left_out : options.broken) {
    const Run run = train_replicas(plan_of(options, left_out.part), lesson.examples);
    lesson.broken.push_back({left_out, mean_losses(run), replica_distances(run), replicas_differ_at(run),
                             first_difference(run[0].weights, lesson.intact[0].weights), examples_seen(run)});
  }
  return lesson;
}

}  // namespace tandem::sgd_lab
