// Batches on their way to a device. Internal to this library.
#pragma once

#include "tandem/core/stream.h"
#include "tandem/data/batch.h"
#include "tandem/data/deferred_batch.h"

#include <optional>

namespace tandem::data {

/// `copied` is passed once the batch has arrived on its device. Nothing at the end of a stream.
struct UploadedBatch {
  std::optional<Batch> batch;
  ImagesToMake images{};  // where the batch has none
  Event copied{};
};

/// Starts the copies of a batch in pinned memory on `stream`, which is the current one of its device. Returns the
/// batch.
UploadedBatch upload(UploadedBatch made, const Stream& stream);

/// Makes an uploaded batch the current stream's.
DeferredBatch receive(UploadedBatch uploaded, Device device);

}  // namespace tandem::data
