// Loss and metrics of batches.
#include "tandem/train/scoring.h"

#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/functions/topk.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/describe.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/loss/add_scores.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/train/batch_loss.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <typeinfo>

namespace tandem::train {

namespace {

double sum_of(const Metric& metric, const Tensor& output, const Tensor& labels) {
  try {
    return metric.sum(output, labels);
  } catch (const Error& error) {
    if (typeid(error) != typeid(Error)) throw;  // one that all ranks have agreed on, say
    fail("metric '{}': {}", metric.name, error.what());
  }
}

/// The tensor itself on the CPU; of a GPU's, a copy that its current stream is yet to make.
Tensor on_its_way_here(const Tensor& tensor) {
  if (tensor.device() == Device{}) return tensor.detach();
  const MemoryTagScope tag(MemoryTag::workspace);
  const Tensor here = Tensor::empty(tensor.shape(), {.dtype = tensor.dtype(), .pinned = true});
  here.copy_from_async(tensor.detach());
  return here;
}

}  // namespace

void Scores::add(const Scores& other) {
  metrics.loss_sum += other.metrics.loss_sum;
  metrics.correct += other.metrics.correct;
  metrics.count += other.metrics.count;
  sums.resize(std::max(sums.size(), other.sums.size()));
  for (std::size_t i = 0; i < other.sums.size(); ++i) sums[i] += other.sums[i];
}

std::vector<double> Scores::to_numbers(std::size_t metrics_of_own) const {
  std::vector<double> numbers{metrics.loss_sum, static_cast<double>(metrics.correct),
                              static_cast<double>(metrics.count)};
  numbers.insert(numbers.end(), sums.begin(), sums.end());
  numbers.resize(3 + metrics_of_own);
  return numbers;
}

Scores Scores::from_numbers(std::span<const double> numbers) {
  Scores scores;
  scores.metrics = {numbers[0], static_cast<std::int64_t>(numbers[1]), static_cast<std::int64_t>(numbers[2])};
  scores.sums.assign(numbers.begin() + 3, numbers.end());
  return scores;
}

Scoring::Scoring(LossFunction loss, std::vector<Metric> metrics, double label_smoothing, ForwardFunction forward,
                 bool mixes)
    : loss_(std::move(loss)),
      metrics_(std::move(metrics)),
      label_smoothing_(label_smoothing),
      forward_(std::move(forward)),
      mixes_(mixes) {
  require(loss_ == nullptr || label_smoothing == 0.0,
          "trainer: label_smoothing is of the cross-entropy, and a loss function was given: let that smooth labels");
  std::set<std::string_view> names;
  for (const Metric& metric : metrics_) {
    require(metric.sum != nullptr && !metric.name.empty(), "trainer: metric '{}' needs a name and a function",
            metric.name);
    require(names.insert(metric.name).second, "trainer: two metrics are called '{}'; give each a name of its own",
            metric.name);
  }
}

Tensor Scoring::loss(const Tensor& output, const Tensor& labels) const {
  if (loss_ == nullptr) {
    const bool fits = mixes_ ? is_floating(labels.dtype()) && labels.shape() == output.shape()
                             : labels.dtype() == DType::i64 && labels.rank() == 1;
    require(
        output.rank() == 2 && fits,
        "trainer: without a loss function it is the cross-entropy of logits [N, C] and {}, and there are {} and {}; "
        "give one (TrainerOptions::loss)",
        mixes_ ? "class probabilities [N, C], as the loader mixes images" : "classes i64[N]", output, labels);
    return autograd::softmax_cross_entropy(output, labels, label_smoothing_);
  }
  const Tensor loss = loss_(output, labels);
  require(loss.defined() && loss.numel() == 1 && is_floating(loss.dtype()),
          "trainer: the loss function must return one floating number, the mean over the batch, got {}",
          describe(loss));
  return loss;
}

ScoredBatch Scoring::begin_reading(const Tensor& loss, const Tensor& output, const Tensor& labels) const {
  ScoredBatch batch;
  batch.loss = on_its_way_here(loss);
  if (loss_ == nullptr) {
    batch.output = on_its_way_here(output);
    batch.labels = on_its_way_here(labels);
  }
  if (!metrics_.empty()) {
    batch.metric_output = output.detach();
    batch.metric_labels = labels;
  }
  batch.arrived.record(current_stream(loss.device()));
  return batch;
}

double Scoring::add(Scores& scores, const ScoredBatch& batch, std::int64_t examples) const {
  batch.arrived.synchronize();
  const double mean =
      loss_ == nullptr && !mixes_ ? batch_loss(batch.loss, batch.output, batch.labels) : batch.loss.item();
  std::int64_t correct = 0, count = examples;
  if (loss_ == nullptr) {
    correct = count_correct(batch.output, mixes_ ? autograd::argmax(batch.labels, 1) : batch.labels);
    count = batch.labels.size(0);  // collate may make several rows of an example
  }
  scores.metrics.add(mean, correct, count);
  if (metrics_.empty()) return mean;
  const autograd::NoGrad no_grad;
  scores.sums.resize(metrics_.size());
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    scores.sums[i] += sum_of(metrics_[i], batch.metric_output, batch.metric_labels);
  return mean;
}

void Scoring::add_on_device(const Tensor& loss, const Tensor& output, const Tensor& labels, std::int64_t examples,
                            bool begins_step, const Out& sums) const {
  const Tensor mean = loss.detach();
  if (loss_ != nullptr) return kernels::add_scores(mean, {}, {}, {examples, begins_step}, sums);
  const Tensor classes = mixes_ ? autograd::argmax(labels, 1) : labels;
  kernels::add_scores(mean, output.detach(), classes, {labels.size(0), begins_step}, sums);
}

void Scoring::check_labels(const Tensor& labels, std::int64_t classes) const {
  if (checks_labels()) kernels::require_labels(labels, classes);
}

double Scoring::accuracy(const Metrics& metrics) const { return loss_ == nullptr ? metrics.accuracy() : std::nan(""); }

NamedValues Scoring::values(const Scores& scores) const {
  NamedValues values;
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    values.emplace_back(metrics_[i].name, scores.sums.at(i) / static_cast<double>(scores.metrics.count));
  return values;
}

Scores Scoring::sum_over_ranks(const Scores& mine, comm::ProcessGroup& group) const {
  Scores all{.metrics = train::sum_over_ranks(mine.metrics, group), .sums = mine.sums};
  if (metrics_.empty()) return all;
  all.sums.resize(metrics_.size());  // this rank may have had no batch
  const Tensor sums = Tensor::from(all.sums, {static_cast<std::int64_t>(all.sums.size())});
  group.all_reduce(Out(sums));
  all.sums = sums.to_vector<double>();
  return all;
}

}  // namespace tandem::train
