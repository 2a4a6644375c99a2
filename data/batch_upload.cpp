// Copies beside the device's computing.
#include "tandem/data/batch_upload.h"

#include "tandem/core/memory.h"

#include <utility>

namespace tandem::data {

UploadedBatch upload(std::optional<Batch> batch, const Stream& stream) {
  UploadedBatch uploaded{std::move(batch), Event()};
  if (!uploaded.batch || stream.device() == Device{}) return uploaded;
  const MemoryTagScope tag(MemoryTag::data);
  for (Tensor& tensor : uploaded.batch->tensors) {
    if (tensor.device() == stream.device()) continue;  // made there
    const Tensor there = Tensor::empty(
        tensor.shape(), {.dtype = tensor.dtype(), .layout = Layout::channels_last, .device = stream.device()});
    there.copy_from_async(tensor);
    tensor = there;
  }
  uploaded.copied.record(stream);
  return uploaded;
}

Batch receive(Batch batch, const Event& copied, Device device) {
  const Stream stream = current_stream(device);
  stream.wait(copied);
  for (const Tensor& tensor : batch.tensors) tensor.storage()->record_stream(stream);
  if (!batch.tensors.empty()) {
    batch.images = batch.tensors.front();
    batch.labels = batch.tensors.back();
  }
  return batch;
}

}  // namespace tandem::data
