// The scores of the epoch in work, which a GPU adds up by itself.
#pragma once

#include "tandem/comm/work.h"
#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/loss/add_scores.h"
#include "tandem/train/scoring.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace tandem::train {

/// Adds up the batches of an epoch, step by step. Those whose loss is on a GPU are added up there, and the host reads
/// the sums of a step three steps later, behind what it enqueues for that one: it waits only where it is so far ahead,
/// and the GPU never runs out of work by it. Whoever asks for all of them waits. The sums have the same bits whoever
/// adds them up. Example:
///     const Scoring scoring;
///     RunningScores scores(scoring);
///     scores.begin_step();
///     const Tensor logits = Tensor::zeros({2, 4}), labels = Tensor::from<std::int64_t>({0, 3}, {2});
///     const Tensor loss = scoring.loss(logits, labels);
///     if (!scores.add_on_device(loss, logits, labels, 2)) scores.add(scoring.begin_reading(loss, logits, labels), 2);
///     scores.end_step(1);
///     const double accuracy = scores.all().metrics.accuracy();  // 50
class RunningScores {
 public:
  /// Of batches that this scores.
  explicit RunningScores(Scoring scoring) : scoring_(std::move(scoring)) {}
  /// What a GPU adds to has one owner.
  /// @{
  RunningScores(RunningScores&&) noexcept = default;
  RunningScores(const RunningScores&) = delete;
  RunningScores& operator=(RunningScores&&) noexcept = default;
  RunningScores& operator=(const RunningScores&) = delete;
  ~RunningScores() = default;
  /// @}

  /// Goes on from these, and forgets what was not read yet.
  void reset(Scores scores = {});
  /// As if no step had had a loss that is not finite.
  void forget_bad_step();

  /// Before the batches of a step.
  void begin_step();
  /// Adds a batch where its loss is on a GPU that can; else returns false and does nothing.
  bool add_on_device(const Tensor& loss, const Tensor& output, const Tensor& labels, std::int64_t examples);
  /// Work of add_on_device() was recorded (WorkGraph), and a launch of it has added a batch with these labels. Recorded
  /// work begins a step.
  void add_launched(const Tensor& labels);
  /// Where add_on_device() adds to; undefined where it has not, or the host has since. Stays as it is from epoch to
  /// epoch.
  const Tensor& sums() const { return sums_; }
  /// Adds one that the host reads; waits for it. Throws Error as Scoring::add() does.
  void add(const ScoredBatch& batch, std::int64_t examples);
  /// Adds what others have added up, and this to the step's loss.
  void add(const Scores& scores, double step_loss);
  /// Ends the step of this number, and has its sums copied to the host. `exchange`: what the GPU waits for before, if
  /// it waits for other ranks; whoever reads the sums waits for it first, as that ends with an Error where a rank is
  /// gone.
  void end_step(std::int64_t step, std::shared_ptr<comm::Work> exchange = nullptr);
  /// Within a step: reads the sums of those before it, but for the last two. Throws Error for labels outside of the
  /// classes in one of them, as whatever reads sums does.
  void read_earlier_steps() const { read(kUnread); }

  /// The sums of all steps that have ended, for which it waits; on the CPU of all that was added.
  const Scores& all() const;
  /// The sum over the images of the last step, likewise.
  double step_loss() const;
  /// The sums that were read already, of all on the CPU; waits where there are none.
  const Scores& known() const;
  /// The first step whose loss is not finite, of those that were read; 0: none.
  std::int64_t bad_step() const { return bad_step_; }

 private:
  /// What make_score_sums() was given labels of.
  struct Labels {
    Tensor labels;
    std::int64_t classes;
  };
  /// The sums behind a step, on their way.
  struct Pending {
    std::int64_t step;
    bool has_batches;
    Tensor sums;  // on the CPU once `arrived` is passed
    Event arrived;
    std::vector<Labels> labels;
    std::shared_ptr<comm::Work> exchange;
  };

  /// The steps whose sums a step leaves unread.
  static constexpr std::size_t kUnread = 2;

  /// All but the last `but` ones of those that are on their way.
  void read(std::size_t but) const;
  void note_labels(const Tensor& labels, std::int64_t classes);
  Tensor make_sums(Device device) const;
  void take_over();
  void take(const kernels::ScoreSums& sums, bool has_step) const;
  void note_step(std::int64_t step) const;

  Scoring scoring_;
  Tensor sums_;  // of all that was added, on the GPU that adds them up; undefined: none does
  bool begins_step_ = true;
  std::vector<Labels> labels_;  // of the step in work
  std::int64_t recorded_classes_ = 0;
  // Of what the host has read; mutable, as whoever asks first reads.
  mutable Scores scores_;
  mutable double step_loss_ = 0.0;
  mutable std::int64_t bad_step_ = 0;
  mutable std::deque<Pending> pending_;
};

}  // namespace tandem::train
