// Gathering an evaluation's details batch by batch, and over ranks.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/tensor.h"
#include "tandem/train/evaluation_report.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::train {

/// Counts what the images of this rank were taken for. All sums are of integers, so that the report has the same bits
/// however the images were cut into batches and ranks, as long as the outputs do.
/// Example:
///     #include "tandem/comm/launch/mpi_environment.h"
///     comm::MpiEnvironment environment;
///     const auto group = comm::make_process_group("auto", environment);
///     EvaluationDetails details;
///     const std::vector<std::int64_t> numbers{10, 11};
///     details.add(Tensor::from<float>({5, 0, 0, 5}, {2, 2}), Tensor::from<std::int64_t>({0, 0}, {2}), numbers);
///     const EvaluationReport report = details.report(*group);
///     const std::int64_t worst = report.worst[0].index;  // 11: it is of class 0 and was taken for 1
class EvaluationDetails {
 public:
  static constexpr std::int64_t kBins = 15;  ///< bins of confidence
  static constexpr std::size_t kWorst = 24;  ///< mistakes that are kept, those with the largest loss

  /// Outputs (floating [N, C], before softmax), labels i64 [N] in [0, C), and the images' numbers in their data set. An
  /// image with an output that is not finite was taken for nothing. Throws Error for other tensors, for a label that is
  /// no class, and for another number of classes than before.
  void add(const Tensor& logits, const Tensor& labels, std::span<const std::int64_t> numbers);

  /// Of all ranks, the same on each; split, epoch, loss and accuracy are left to the caller. The expected calibration
  /// error is that of Guo et al. ("On calibration of modern neural networks", 2017): the mean over images of the
  /// distance between a bin's accuracy and its mean confidence. Collective.
  EvaluationReport report(comm::ProcessGroup& group) const;

 private:
  struct Bin {
    std::int64_t images = 0, correct = 0, confidence = 0;  // the last in units of kUnit
  };

  void resize(std::int64_t classes);
  void add_image(const float* outputs, std::int64_t label, std::int64_t number);
  std::vector<std::int64_t> counts() const;

  std::int64_t classes_ = 0;
  std::vector<std::int64_t> confusion_, class_images_;
  std::vector<Bin> bins_ = std::vector<Bin>(kBins);
  std::vector<Misclassified> worst_;
};

}  // namespace tandem::train
