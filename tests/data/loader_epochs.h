// Epochs of a loader as numbers.
#pragma once

#include "tandem/data/iterable_dataset.h"
#include "tandem/data/loader.h"
#include "tests/support/catch.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tandem::test {

using namespace tandem::data;

inline std::shared_ptr<IterableDataset> stream_to(std::int64_t end, std::optional<std::int64_t> size = std::nullopt) {
  return stream_of(
      [end](std::uint32_t epoch) {
        return [n = std::int64_t{0}, end, epoch]() mutable -> std::optional<Example> {
          if (n == end) return std::nullopt;
          return Example{Tensor::full({1}, static_cast<double>(1000 * epoch + n++))};
        };
      },
      size);
}

/// The first value of each example of an epoch behind `skip` batches, batch by batch.
inline std::vector<std::vector<float>> run(Loader& loader, std::uint32_t epoch, std::int64_t skip = 0) {
  std::vector<std::vector<float>> batches;
  loader.start(epoch, skip);
  while (const auto batch = loader.next()) {
    REQUIRE(batch->index == skip + static_cast<std::int64_t>(batches.size()));
    batches.emplace_back();
    if (batch->count() == 0) continue;
    REQUIRE(batch->images.size(0) == batch->count());
    batches.back() = batch->images.narrow(1, 0, 1).to_vector<float>();
  }
  return batches;
}

using Batches = std::vector<std::vector<float>>;

}  // namespace tandem::test
