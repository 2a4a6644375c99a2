// An evaluation in detail: classes, confusions, calibration and the worst mistakes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::train {

/// Images by the confidence of their prediction, the largest probability of softmax: from < confidence <= to.
struct ConfidenceBin {
  double from = 0.0, to = 0.0;           ///< limits of the confidence
  std::int64_t images = 0, correct = 0;  ///< predictions in it, and those that were right
  double confidence = 0.0;               ///< mean; 0 of no images

  /// The share that was right; 0 of no images.
  double accuracy() const { return images == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(images); }
};

/// An image that was taken for another class than its own.
struct Misclassified {
  std::int64_t index = 0;                 ///< in the data set that was evaluated, from 0
  std::int64_t label = 0, predicted = 0;  ///< its own class, and the one that it was taken for
  double confidence = 0.0;                ///< of the prediction
  double loss = 0.0;                      ///< cross-entropy

  friend bool operator==(const Misclassified&, const Misclassified&) = default;
};

/// What EvaluationDetails found, of all ranks.
struct EvaluationReport {
  std::string split;         ///< "test" or "validation"
  std::int64_t epoch = 0;    ///< behind which it was
  std::int64_t images = 0;   ///< those whose outputs are no numbers included, which are only in this and class_images
  double loss = 0.0;         ///< mean
  double accuracy = 0.0;     ///< percent
  std::int64_t classes = 0;  ///< of the data set
  std::vector<std::int64_t> confusion;     ///< [classes x classes]: row = label, column = prediction
  std::vector<std::int64_t> class_images;  ///< by label
  double ece = 0.0;                        ///< expected calibration error, 0 to 1
  std::vector<ConfidenceBin> bins;         ///< of equal width
  std::vector<Misclassified> worst;        ///< those with the largest loss first

  /// How many images of class `label` were taken for `prediction`.
  std::int64_t confused(std::int64_t label, std::int64_t prediction) const {
    return confusion.at(static_cast<std::size_t>(label * classes + prediction));
  }
  /// Percent; NaN of a class without images. Example:
  ///     EvaluationReport report;
  ///     report.classes = 2;
  ///     report.confusion = {3, 1, 0, 4};
  ///     report.class_images = {4, 4};
  ///     const double accuracy = report.class_accuracy(0);  // 75
  double class_accuracy(std::int64_t label) const {
    return 100.0 * static_cast<double>(confused(label, label)) /
           static_cast<double>(class_images.at(static_cast<std::size_t>(label)));
  }
};

}  // namespace tandem::train
