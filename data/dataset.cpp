// Checks of a dataset.
#include "tandem/data/dataset.h"

namespace tandem::data {

void check(const Dataset& dataset) {
  require(dataset.images.defined() && dataset.images.rank() == 4 && dataset.images.dtype() == DType::u8 &&
              dataset.images.is_dense(Layout::row_major),
          "dataset '{}': images must be u8 [N,C,H,W], row-major dense, got {}", dataset.name,
          dataset.images.defined() ? describe(dataset.images) : "none");
  require(dataset.labels.defined() && dataset.labels.dtype() == DType::i64 &&
              dataset.labels.shape() == Shape({dataset.size()}) && dataset.labels.is_dense(Layout::row_major),
          "dataset '{}': labels must be i64 [{}], got {}", dataset.name, dataset.size(),
          dataset.labels.defined() ? describe(dataset.labels) : "none");
  const auto channels = static_cast<std::size_t>(dataset.channels());
  require(dataset.mean.size() == channels && dataset.deviation.size() == channels,
          "dataset '{}': {} means and {} deviations for {} channels", dataset.name, dataset.mean.size(),
          dataset.deviation.size(), channels);
  if (dataset.size() == 0) return;
  const auto* labels = dataset.labels.data<std::int64_t>();
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    require(labels[i] >= 0 && labels[i] < dataset.classes(), "dataset '{}': image {} has label {}, expected 0 to {}",
            dataset.name, i, labels[i], dataset.classes() - 1);
  }
}

}  // namespace tandem::data
