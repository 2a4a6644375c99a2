// Gradients, buffers and scores of micro-batches.
#include "tandem/train/canonical_step.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/ddp/hash.h"

#include <utility>

namespace tandem::train {

namespace {

std::vector<Tensor> buffers_of(const NamedTensors& all, bool floating) {
  std::vector<Tensor> chosen;
  for (const auto& [name, buffer] : all)
    if (is_floating(buffer.dtype()) == floating) chosen.push_back(buffer);
  return chosen;
}

std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

void copy(const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_from(from[i]);
}

Tensor numbers_of(const Scores& scores, std::size_t metrics_of_own) {
  const std::vector<double> numbers = scores.to_numbers(metrics_of_own);
  return Tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())});
}

Tensor room_for_scores(std::size_t metrics_of_own) { return numbers_of({}, metrics_of_own); }

Scores scores_of(const Tensor& numbers) { return Scores::from_numbers(numbers.to_vector<double>()); }

}  // namespace

CanonicalStep::CanonicalStep(comm::ProcessGroup& group, std::vector<Tensor> parameters, const NamedTensors& buffers,
                             int micro_batches, std::size_t metrics_of_own)
    : metrics_of_own_(metrics_of_own),
      parameters_(std::move(parameters)),
      buffers_(buffers_of(buffers, true)),
      integers_(buffers_of(buffers, false)),
      gradients_(group, micro_batches, parameters_),
      changes_(group, micro_batches, buffers_),
      scores_(group, micro_batches, {room_for_scores(metrics_of_own)}) {}

void CanonicalStep::start() {
  const autograd::NoGrad no_grad;
  gradients_.start();
  changes_.start();
  scores_.start();
  buffers_before_ = copies_of(buffers_);
  hashes_before_.clear();
  for (const Tensor& buffer : buffers_) hashes_before_.push_back(comm::hash_tensor(buffer));
  integers_before_ = copies_of(integers_);
  integers_after_.clear();
}

void CanonicalStep::restore() {
  const autograd::NoGrad no_grad;
  for (const Tensor& parameter : parameters_) autograd::clear_grad(parameter);
  copy(buffers_before_, buffers_);
  copy(integers_before_, integers_);
}

void CanonicalStep::end_micro_batch(double share, const Scores& scores) {
  const autograd::NoGrad no_grad;
  std::vector<Tensor> gradients, changes;
  for (const Tensor& parameter : parameters_) gradients.push_back(autograd::grad(parameter));
  // Undefined where no bit has changed: infinity minus infinity would be NaN.
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    changes.push_back(comm::hash_tensor(buffers_[i]) == hashes_before_[i]
                          ? Tensor()
                          : autograd::sub(buffers_[i], buffers_before_[i]));
  gradients_.add(gradients);
  changes_.add(changes, share);
  scores_.add({numbers_of(scores, metrics_of_own_)});
  if (integers_after_.empty()) integers_after_ = copies_of(integers_);
}

void CanonicalStep::skip_micro_batch() {
  gradients_.add(std::vector<Tensor>(parameters_.size()));
  changes_.add(std::vector<Tensor>(buffers_.size()));
  scores_.add({numbers_of({}, metrics_of_own_)});
}

Scores CanonicalStep::finish() {
  const autograd::NoGrad no_grad;
  copy(integers_after_, integers_);
  const std::vector<Tensor> gradients = gradients_.finish();
  for (std::size_t i = 0; i < parameters_.size(); ++i) autograd::set_grad(parameters_[i], gradients[i]);
  const std::vector<Tensor> changes = changes_.finish();
  copy(buffers_before_, buffers_);
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (changes[i].defined())
      buffers_[i].copy_from(autograd::add(buffers_before_[i], autograd::cast(changes[i], buffers_[i].dtype())));
  return scores_of(scores_.finish().front());
}

CanonicalScores::CanonicalScores(comm::ProcessGroup& group, int micro_batches, std::size_t metrics_of_own)
    : metrics_of_own_(metrics_of_own), sum_(group, micro_batches, {room_for_scores(metrics_of_own)}) {}

Scores CanonicalScores::sum(const std::vector<Scores>& mine) {
  sum_.start();
  for (const Scores& scores : mine) sum_.add({numbers_of(scores, metrics_of_own_)});
  return scores_of(sum_.finish().front());
}

}  // namespace tandem::train
