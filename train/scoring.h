// Loss and metrics of a training program's own choice.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/out.h"
#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"
#include "tandem/train/forward.h"
#include "tandem/train/metrics.h"
#include "tandem/train/records.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tandem::train {

/// The mean loss of a batch, one floating element, from what the model returned and the batch's labels: its last
/// tensor, of any dtype and shape. A function, a lambda, or a loss of autograd/functions/losses.h.
/// Example:
///     #include "tandem/autograd/functions.h"
///     const LossFunction squares = autograd::mse_loss;
///     const LossFunction sparse = [](const Tensor& output, const Tensor& labels) {
///       return autograd::mse_loss(output, labels) + 0.25 * autograd::mean(autograd::abs(output));
///     };
///     const double loss = sparse(Tensor::full({2}, 3.0), Tensor::full({2}, 1.0)).item();  // 4.75
using LossFunction = std::function<Tensor(const Tensor& output, const Tensor& labels)>;

/// A figure that is reported beside the loss: what `sum` adds up per batch, over all ranks, as a mean over all
/// examples; without a loss function, over all rows of labels. Example:
///     #include "tandem/autograd/functions.h"
///     const Metric rows{"rows", [](const Tensor& output, const Tensor&) { return double(output.size(0)); }};
///     const double sum = rows.sum(Tensor::zeros({3, 2}), Tensor());  // 3
struct Metric {
  std::string name;  ///< as logs and tables have it
  /// Sum over the samples of a batch; called with recording off.
  std::function<double(const Tensor& output, const Tensor& labels)> sum;
};

/// What is added up over batches.
struct Scores {
  Metrics metrics;             ///< of the loss and the accuracy
  std::vector<double> sums{};  ///< of the metrics of one's own; empty before the first batch

  /// Adds those of other batches.
  void add(const Scores& other);

  /// The loss sum, the counts and the sums of so many metrics, one after another; and back. Counts are exact up to
  /// 2^53.
  std::vector<double> to_numbers(std::size_t metrics_of_own) const;
  /// The reverse of to_numbers().
  static Scores from_numbers(std::span<const double> numbers);
};

/// A batch's loss, and what accuracy is counted of, where the CPU can read them once `arrived` is passed; and for
/// metrics of one's own, what they are given.
struct ScoredBatch {
  Tensor loss, output, labels;          ///< on the CPU; the last two are undefined where they are not read
  Tensor metric_output, metric_labels;  ///< where they were computed; undefined without such metrics
  Event arrived;                        ///< behind the copies of `loss`, `output` and `labels`
};

/// What is computed of a batch, the loss that is trained, and what is added up of each batch. Without a loss function
/// it is the cross-entropy of logits [N, C] and labels i64[N], and accuracy is counted; with one, accuracy is NaN. With
/// `mixes`, labels are class probabilities [N, C] (data::MixOptions), of which the largest counts for the accuracy.
class Scoring {
 public:
  /// An empty `loss` is softmax_cross_entropy(), with label smoothing. Throws Error for label smoothing beside a loss,
  /// and for metrics without a name or a function, or of one name.
  explicit Scoring(LossFunction loss = {}, std::vector<Metric> metrics = {}, double label_smoothing = 0.0,
                   ForwardFunction forward = {}, bool mixes = false);

  /// run_forward() of the function given.
  Tensor output(layers::Module& model, const data::Batch& batch) const { return run_forward(forward_, model, batch); }

  /// The loss of a batch, recorded for backward().
  Tensor loss(const Tensor& output, const Tensor& labels) const;

  /// Has what add() reads brought to the CPU, behind the work that the GPU was given so far. Called before backward(),
  /// it lets add() read while the GPU goes on with that.
  ScoredBatch begin_reading(const Tensor& loss, const Tensor& output, const Tensor& labels) const;
  /// Adds a batch of `examples`; returns its mean loss. The cross-entropy counts rows of labels, of which a data set's
  /// collate may make more or fewer than there are examples. Throws Error for labels outside of the classes, and what a
  /// metric throws, with the metric's name.
  double add(Scores& scores, const ScoredBatch& batch, std::int64_t examples) const;

  /// Whether add_on_device() does for batches with such a loss: on a GPU, without metrics of one's own.
  bool adds_on_device(const Tensor& loss) const { return metrics_.empty() && loss.device().type == DeviceType::cuda; }
  /// Adds a batch of `examples` as add() does, to kernels::make_score_sums() on the device of the loss, and nobody
  /// waits; `begins_step`: with it the sum of the step's losses begins. A label outside of the classes makes that NaN:
  /// check_labels() says so.
  void add_on_device(const Tensor& loss, const Tensor& output, const Tensor& labels, std::int64_t examples,
                     bool begins_step, const Out& sums) const;
  /// Whether check_labels() looks at labels: without a loss function, where they are no probabilities.
  bool checks_labels() const { return loss_ == nullptr && !mixes_; }
  /// Throws Error for labels outside of the classes, where those are what a loss that is not finite may come from.
  void check_labels(const Tensor& labels, std::int64_t classes) const;

  /// Percent; NaN where it is not counted.
  double accuracy(const Metrics& metrics) const;
  /// Means, by name.
  NamedValues values(const Scores& scores) const;
  /// The sums over all ranks, the same on each, also where a rank had no batch. Collective.
  Scores sum_over_ranks(const Scores& mine, comm::ProcessGroup& group) const;

  /// How many metrics of the program's own there are.
  std::size_t metrics_of_own() const { return metrics_.size(); }

 private:
  LossFunction loss_;
  std::vector<Metric> metrics_;
  double label_smoothing_;
  ForwardFunction forward_;
  bool mixes_;
};

}  // namespace tandem::train
