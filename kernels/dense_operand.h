// For kernels that work on dense memory: operands that are not get a dense copy on the way in or out.
#pragma once

#include "core/memory.h"
#include "core/tensor.h"

namespace tandem::kernels {

/// `tensor` itself where it is dense in `layout`, else a copy that is.
inline Tensor dense_input(const Tensor& tensor, Layout layout = Layout::channels_last) {
  const MemoryTagScope scope(MemoryTag::workspace);
  return tensor.contiguous(layout);
}

/// Where a kernel may write densely for `target`: the target itself if it is dense in `layout`, else a new tensor whose
/// elements finish() copies there.
class DenseOutput {
 public:
  explicit DenseOutput(const Tensor& target, Layout layout = Layout::channels_last) : target_(target), dense_(target) {
    if (!target.defined() || target.is_dense(layout)) return;
    const MemoryTagScope scope(MemoryTag::workspace);
    dense_ = Tensor::empty(target.shape(), target.options(layout));
  }

  const Tensor& tensor() const { return dense_; }

  /// Call it once the kernel that writes is enqueued.
  void finish() const {
    if (target_.defined() && !dense_.is_same(target_)) target_.copy_from(dense_);
  }

 private:
  Tensor target_, dense_;
};

}  // namespace tandem::kernels
