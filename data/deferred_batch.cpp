// Making images where they are wanted.
#include "tandem/data/deferred_batch.h"

#include "tandem/core/memory.h"

#include <algorithm>

namespace tandem::data {

namespace {

bool are_alike(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && a.device() == b.device() && a.strides() == b.strides();
}

}  // namespace

bool DeferredBatch::is_like(const std::vector<Tensor>& tensors) const {
  if (tensors.size() != batch_.tensors.size()) return false;
  if (images_.make == nullptr) return std::ranges::equal(batch_.tensors, tensors, are_alike);
  const Tensor& first = tensors.front();
  return first.shape() == images_.shape && first.dtype() == images_.options.dtype &&
         first.device() == images_.options.device && first.is_dense(images_.options.layout) &&
         std::equal(tensors.begin() + 1, tensors.end(), batch_.tensors.begin() + 1, are_alike);
}

const Batch& DeferredBatch::whole() {
  if (images_.make == nullptr) return batch_;
  const MemoryTagScope tag(MemoryTag::data);
  const Tensor images = Tensor::empty(images_.shape, images_.options);
  images_.make(Out(images));
  images_ = {};
  batch_.images = batch_.tensors.front() = images;
  return batch_;
}

void DeferredBatch::write_to(const std::vector<Tensor>& tensors) const {
  std::size_t i = 0;
  if (images_.make != nullptr) images_.make(Out(tensors[i++]));
  for (; i < tensors.size(); ++i) tensors[i].copy_from_async(batch_.tensors[i]);
}

}  // namespace tandem::data
