// Batches on their way to a device. Internal to this library.
#pragma once

#include "tandem/core/stream.h"
#include "tandem/data/batch.h"

#include <optional>

namespace tandem::data {

/// `copied` is passed once the batch has arrived on its device. Nothing at the end of a stream.
struct UploadedBatch {
  std::optional<Batch> batch;
  Event copied;
};

/// Starts the copies of a batch in pinned memory on `stream`, which is the current one of its device.
UploadedBatch upload(std::optional<Batch> batch, const Stream& stream);

/// Makes an uploaded batch the current stream's.
Batch receive(Batch batch, const Event& copied, Device device);

}  // namespace tandem::data
