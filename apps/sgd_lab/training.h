// Runs of data-parallel SGD written out, with all that a lesson wants to know of them.
#pragma once

#include "apps/sgd_lab/options.h"
#include "tandem/data/image_dataset.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tandem::sgd_lab {

inline constexpr std::int64_t kBatchPerRank = 8;
inline constexpr double kLearningRate = 0.02, kMomentum = 0.9;

/// All weights, or all gradients, of the network one after another.
using Flat = std::vector<float>;

/// The examples of a lesson: small drawn shapes, grey.
struct Examples {
  data::ImageDataset training, held_out;
};
Examples make_examples(std::uint64_t seed);

/// What one rank went through.
struct RankRecord {
  Flat drawn;                                      ///< weights before the broadcast
  Flat own_gradient, gradient;                     ///< of the first step, before and after the exchange
  std::vector<std::vector<std::int64_t>> batches;  ///< numbers of the examples, by step
  std::vector<Flat> weights;                       ///< before the first step, and behind each
  std::vector<double> losses;                      ///< on the held-out examples, of the same weights
  std::vector<double> compute_seconds;             ///< of forward, backward and update, by step
  std::vector<double> exchange_seconds;            ///< of the two all-reduces and waiting for other ranks, by step
};

using Run = std::vector<RankRecord>;  ///< by rank

/// How replicas are trained.
struct TrainingPlan {
  int ranks = 0, steps = 0;
  std::uint64_t seed = 0;
  std::optional<Part> without = {};  ///< a part of synchronous SGD
  int batch_factor = 1;  ///< how many batches of kBatchPerRank a rank, which follow each other, a step has as one
  double learning_rate = kLearningRate;
  bool keeps_weights = true;  ///< those of each step; else RankRecord::weights stays empty
};

TrainingPlan plan_of(const LabOptions& options, std::optional<Part> without = {});

/// Trains the replicas by synchronous SGD; each rank is a thread.
Run train_replicas(const TrainingPlan& plan, const Examples& examples);

/// The gradient of the mean loss of these examples at these weights, computed at once.
Flat single_process_gradient(const Flat& weights, const Examples& examples, const std::vector<std::int64_t>& batch);

}  // namespace tandem::sgd_lab
