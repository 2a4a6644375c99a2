// For kernels that work on dense memory: operands that are not get a dense copy on the way in or out.
#pragma once

#include "tandem/core/memory.h"
#include "tandem/core/out.h"

namespace tandem::kernels {

/// `tensor` itself where it is dense in `layout`, else a copy that is.
inline Tensor dense_input(const Tensor& tensor, Layout layout = Layout::channels_last) {
  const MemoryTagScope scope(MemoryTag::workspace);
  return tensor.contiguous(layout);
}

/// `in` itself where a kernel that goes through the elements of `out` in the order of memory reads neighbours, else a
/// copy in that order: across its rows it would move a sector of memory for every element.
inline Tensor ordered_input(const Tensor& in, const Tensor& out) {
  int quickest_in = -1, quickest_out = -1;
  for (int dim = 0; dim < out.rank(); ++dim) {
    if (out.size(dim) == 1) continue;
    if (in.stride(dim) != 0 && (quickest_in < 0 || in.stride(dim) < in.stride(quickest_in))) quickest_in = dim;
    if (quickest_out < 0 || out.stride(dim) < out.stride(quickest_out)) quickest_out = dim;
  }
  if (quickest_in < 0 || in.stride(quickest_out) <= in.stride(quickest_in) || !out.is_dense()) return in;
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor ordered = Tensor::empty({in.numel()}, {.dtype = in.dtype(), .device = in.device()});
  const Tensor copy = ordered.as_strided(in.shape(), out.strides(), 0);
  copy.copy_from(in);
  return copy;
}

/// Where a kernel may write densely for `target`: the target itself if it is dense in `layout`, else a new tensor whose
/// elements finish() copies there.
class DenseOutput {
 public:
  explicit DenseOutput(const Out& target, Layout layout = Layout::channels_last) : target_(target), dense_(target) {
    if (!target.defined() || target.is_dense(layout)) return;
    const MemoryTagScope scope(MemoryTag::workspace);
    dense_ = Out(Tensor::empty(target.shape(), target.tensor().options(layout)));
  }

  const Out& dense() const { return dense_; }

  /// Call it once the kernel that writes is enqueued.
  void finish() const {
    if (target_.defined() && !dense_.tensor().is_same(target_)) target_.copy_from(dense_);
  }

 private:
  Out target_, dense_;
};

}  // namespace tandem::kernels
