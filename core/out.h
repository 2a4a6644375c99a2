// Out: a tensor that a function writes, as its signature says it.
#pragma once

#include "tandem/core/tensor.h"

#include <span>
#include <string_view>
#include <vector>

namespace tandem {

/// An argument that is written: `relu_forward(x, Out(y))`. Only an Out gives pointers that can be written through. What
/// is written may be read as well (running statistics, weights that an optimizer changes).
///
/// Making one says that the elements are about to change: it counts a new version of the storage, so that backward()
/// refuses a saved tensor that is no longer what it was, and throws Error where Tensor::fill() would (a tensor on the
/// tape). So make one where the function is called, before anything is written, and hand it on from there; copies count
/// nothing. A default-constructed or undefined one means "not wanted", where a function allows that.
/// Example:
///     void add_one(const Out& x) {
///       float* const elements = x.data<float>();
///       for (std::int64_t i = 0; i < x.numel(); ++i) elements[i] += 1.0f;
///     }
///     const Tensor x = Tensor::zeros({3});
///     add_one(Out(x));
///     const std::vector<float> values = x.to_vector<float>();  // {1, 1, 1}
class Out {
 public:
  Out() = default;
  /// Messages begin with `writer`.
  explicit Out(const Tensor& tensor, std::string_view writer = "Out");

  /// False of Out{}, which names no tensor.
  bool defined() const { return tensor_.defined(); }
  /// To read it, or to make views of it.
  const Tensor& tensor() const { return tensor_; }
  /// Implicitly, too: what is written may be read.
  operator const Tensor&() const { return tensor_; }

  /// As of Tensor.
  /// @{
  const Shape& shape() const { return tensor_.shape(); }
  const Strides& strides() const { return tensor_.strides(); }
  int rank() const { return tensor_.rank(); }
  std::int64_t size(int dim) const { return tensor_.size(dim); }
  std::int64_t stride(int dim) const { return tensor_.stride(dim); }
  std::int64_t numel() const { return tensor_.numel(); }
  DType dtype() const { return tensor_.dtype(); }
  Device device() const { return tensor_.device(); }
  bool is_dense(Layout layout) const { return tensor_.is_dense(layout); }
  bool is_dense() const { return tensor_.is_dense(); }
  /// @}

  /// The first element, in the memory of device(); throws Error unless T is the tensor's dtype.
  template <typename T>
  T* data() const {
    return const_cast<T*>(tensor_.data<T>());
  }
  /// The same, without a type.
  void* raw_data() const { return const_cast<void*>(tensor_.raw_data()); }

  /// As of Tensor: what is written goes to the tensor's elements.
  /// @{
  void copy_from(const Tensor& source) const { tensor_.copy_from(source); }
  void fill(double value) const { tensor_.fill(value); }
  void zero() const { tensor_.zero(); }
  /// @}

 private:
  Tensor tensor_;
};

/// An Out of each.
std::vector<Out> outs_of(std::span<const Tensor> tensors);

}  // namespace tandem
