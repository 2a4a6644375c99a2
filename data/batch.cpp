// Parts of a batch.
#include "tandem/data/batch.h"

#include "tandem/core/describe.h"

namespace tandem::data {

Batch examples_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  if (first == 0 && count == batch.count()) return batch;
  Batch part = batch;
  for (Tensor& tensor : part.tensors) {
    require(tensor.rank() > 0 && tensor.size(0) == batch.count(),
            "batch: {} has not a row for each of {} examples, and cannot be cut into micro-batches", tensor,
            batch.count());
    tensor = tensor.narrow(0, first, count);
  }
  part.images = part.tensors.front();
  part.labels = part.tensors.back();
  part.local_count = count;
  return part;
}

}  // namespace tandem::data
