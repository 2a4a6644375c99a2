// Copies beside the device's computing.
#include "tandem/data/batch_upload.h"

#include "tandem/core/memory.h"

#include <utility>

namespace tandem::data {

UploadedBatch upload(UploadedBatch made, const Stream& stream) {
  if (!made.batch || stream.device() == Device{}) return made;
  const MemoryTagScope tag(MemoryTag::data);
  for (Tensor& tensor : made.batch->tensors) {
    if (!tensor.defined() || tensor.device() == stream.device()) continue;  // is made there
    const Tensor there = Tensor::empty(
        tensor.shape(), {.dtype = tensor.dtype(), .layout = Layout::channels_last, .device = stream.device()});
    there.copy_from_async(tensor);
    tensor = there;
  }
  made.copied.record(stream);
  return made;
}

DeferredBatch receive(UploadedBatch uploaded, Device device) {
  Batch& batch = *uploaded.batch;
  const Stream stream = current_stream(device);
  stream.wait(uploaded.copied);
  for (const std::vector<Tensor>& tensors : {batch.tensors, uploaded.images.memory})
    for (const Tensor& tensor : tensors)
      if (tensor.defined()) tensor.storage()->record_stream(stream);
  if (!batch.tensors.empty()) {
    batch.images = batch.tensors.front();
    batch.labels = batch.tensors.back();
  }
  return {std::move(batch), std::move(uploaded.images)};
}

}  // namespace tandem::data
