// What data sets that make whole batches have in common.
#include "tandem/data/batch_source.h"

namespace tandem::data {

void BatchSource::check_options(const BatchOptions& options) const {
  require(
      !options.augment.any(),
      "loader: augment is for images as bytes (ImageDataset, ImageFolder), and this data set has other tensors; give "
      "a transform");
}

std::shared_ptr<const BatchSource> BatchSource::resident_on(Device) const { return nullptr; }

std::optional<ImagesToMake> BatchSource::defer_batch(std::span<const std::int64_t>, std::uint32_t, const BatchOptions&,
                                                     std::vector<Tensor>&) const {
  return std::nullopt;
}

Example BatchSource::get(std::int64_t index) const {
  Example example = get_batch({&index, 1}, 0, {});
  for (Tensor& tensor : example) tensor = tensor.select(0, 0);
  return example;
}

}  // namespace tandem::data
