// Sums on a GPU, and their copies.
#include "tandem/train/running_scores.h"

#include "tandem/core/memory.h"
#include "tandem/core/work_graph.h"

#include <cmath>
#include <utility>

namespace tandem::train {

void RunningScores::reset(Scores scores) {
  pending_.clear();
  labels_.clear();
  scores_ = std::move(scores);
  if (sums_.defined()) sums_.copy_from_async(make_sums(sums_.device()));  // recorded work goes on adding there
}

void RunningScores::forget_bad_step() { bad_step_ = 0; }

void RunningScores::begin_step() {
  begins_step_ = true;
  labels_.clear();
  if (!sums_.defined()) step_loss_ = 0.0;
}

bool RunningScores::add_on_device(const Tensor& loss, const Tensor& output, const Tensor& labels,
                                  std::int64_t examples) {
  if (!scoring_.adds_on_device(loss)) return false;
  if (!sums_.defined()) {
    sums_ = make_sums(loss.device());
  }
  const std::int64_t classes = output.rank() == 2 ? output.size(1) : 0;
  if (WorkGraph::is_recording()) {
    scoring_.add_on_device(loss, output, labels, examples, true, Out(sums_));
    recorded_classes_ = classes;
    return true;
  }
  scoring_.add_on_device(loss, output, labels, examples, std::exchange(begins_step_, false), Out(sums_));
  note_labels(labels, classes);
  return true;
}

void RunningScores::add_launched(const Tensor& labels) {
  begins_step_ = false;
  note_labels(labels, recorded_classes_);
}

void RunningScores::note_labels(const Tensor& labels, std::int64_t classes) {
  if (scoring_.checks_labels()) labels_.push_back({labels, classes});
}

/// On that GPU, what was added up so far.
Tensor RunningScores::make_sums(Device device) const {
  const Metrics& so_far = scores_.metrics;
  return kernels::make_score_sums(device, {so_far.loss_sum, step_loss_, so_far.correct, so_far.count});
}

/// The host adds up from here on.
void RunningScores::take_over() {
  all();
  if (sums_.defined()) take(kernels::read_score_sums(sums_.to(Device{})), !begins_step_);
  sums_ = {};
  begins_step_ = false;
}

void RunningScores::take(const kernels::ScoreSums& sums, bool has_step) const {
  scores_.metrics = {sums.loss_sum, sums.correct, sums.count};
  step_loss_ = has_step ? sums.step_loss_sum : 0.0;
}

void RunningScores::add(const ScoredBatch& batch, std::int64_t examples) {
  take_over();
  const double mean = scoring_.add(scores_, batch, examples);
  step_loss_ += mean * static_cast<double>(examples);
}

void RunningScores::add(const Scores& scores, double step_loss) {
  scores_.add(scores);
  step_loss_ += step_loss;
}

void RunningScores::end_step(std::int64_t step, std::shared_ptr<comm::Work> exchange) {
  if (!sums_.defined()) return note_step(step);
  const MemoryTagScope tag(MemoryTag::workspace);
  Pending pending{.step = step,
                  .has_batches = !begins_step_,
                  .sums = Tensor::empty(sums_.shape(), {.dtype = sums_.dtype(), .pinned = true}),
                  .arrived = Event(),
                  .labels = std::exchange(labels_, {}),
                  .exchange = std::move(exchange)};
  pending.sums.copy_from_async(sums_);
  pending.arrived.record(current_stream(sums_.device()));
  pending_.push_back(std::move(pending));
}

void RunningScores::note_step(std::int64_t step) const {
  if (!std::isfinite(step_loss_) && bad_step_ == 0) bad_step_ = step;
}

void RunningScores::read(std::size_t but) const {
  while (pending_.size() > but) {
    const Pending step = std::move(pending_.front());
    pending_.pop_front();
    if (!step.arrived.is_done()) {
      if (step.exchange) step.exchange->wait();
      step.arrived.synchronize();
    }
    take(kernels::read_score_sums(step.sums), step.has_batches);
    note_step(step.step);
    if (std::isfinite(step_loss_)) continue;
    for (const Labels& of : step.labels) scoring_.check_labels(of.labels, of.classes);
  }
}

const Scores& RunningScores::all() const {
  read(0);
  return scores_;
}

double RunningScores::step_loss() const {
  all();
  return step_loss_;
}

const Scores& RunningScores::known() const { return scores_.metrics.count == 0 ? all() : scores_; }

}  // namespace tandem::train
