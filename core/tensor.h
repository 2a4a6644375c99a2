// Tensor: a counted handle to shaped, strided elements in a Storage. No arithmetic here: that is kernels/.
#pragma once

#include "tandem/core/device.h"
#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"
#include "tandem/core/storage.h"

#include <iosfwd>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tandem {

/// What autograd hangs on a tensor; the rest of it is in autograd/node.h.
struct AutogradMeta {
  bool requires_grad = false;  ///< of leaves that want a gradient, and of what was computed from them

  AutogradMeta() = default;
  virtual ~AutogradMeta() = default;
  AutogradMeta(const AutogradMeta&) = delete;
  AutogradMeta& operator=(const AutogradMeta&) = delete;

  /// The recorded operation that made the tensor; empty at a leaf.
  virtual std::string_view operation() const = 0;
};

/// How a new tensor is made.
struct TensorOptions {
  DType dtype = DType::f32;           ///< of the elements
  Layout layout = Layout::row_major;  ///< the order in which they lie in memory
  Device device{};                    ///< where they are
  bool pinned = false;                ///< page-locked host memory (device cpu), which a GPU copies without waiting
};

/// A handle: copies share elements, shape and autograd metadata. Image tensors have shape N,C,H,W and layout
/// channels_last; convolution weights K,C,R,S, likewise. On a CUDA device all is enqueued on the thread's current
/// stream (core/stream.h). Errors are thrown as tandem::Error.
///
/// Views, copies and writes of this class are raw: the tape knows nothing of them. While a thread records
/// (autograd/grad_mode.h) a tensor that requires a gradient, leaf or not, refuses them: its gradient would be lost or
/// wrong. Use the functions of autograd/ to record views and copies; detach() the tensor, or switch recording off by
/// autograd::NoGrad, to do without. A view that was taken with recording off refuses writes, too, once it is on again.
/// Reading values and detach() are always allowed.
/// Example:
///     const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
///     const Tensor column = x.select(1, 2);                         // [2]: a view
///     const std::vector<float> values = column.to_vector<float>();  // {3, 6}
///     const Tensor images = Tensor::zeros({8, 3, 32, 32}, {.dtype = DType::bf16, .layout = Layout::channels_last});
class Tensor {
 public:
  /// An undefined tensor: only defined() may be asked.
  Tensor() = default;

  /// Elements that nobody has written. Throws Error for a negative size, for too many elements, for a device that is
  /// not there, for pinned memory of a GPU, and where memory runs out.
  static Tensor empty(const Shape& shape, TensorOptions options = {});
  /// All elements 0. Throws as empty().
  static Tensor zeros(const Shape& shape, TensorOptions options = {});
  /// On memory that is there already, from its first byte on. Throws Error where it is too small for the elements.
  static Tensor on(std::shared_ptr<Storage> storage, const Shape& shape, DType dtype,
                   Layout layout = Layout::row_major);
  /// All elements `value`, as fill() writes it. Throws as empty() and fill().
  static Tensor full(const Shape& shape, double value, TensorOptions options = {});

  /// A new dense tensor with the elements of `values` in row-major order of `shape`, stored in `layout`. A vector of
  /// bools makes a mask: u8, 1 for true. Throws Error unless there are as many values as elements.
  template <typename T>
  static Tensor from(std::span<const T> values, const Shape& shape, Layout layout = Layout::row_major,
                     Device device = {});
  template <typename T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Layout layout = Layout::row_major,
                     Device device = {}) {
    if constexpr (std::is_same_v<T, bool>)  // whose vector has no elements in memory
      return from(std::vector<std::uint8_t>(values.begin(), values.end()), shape, layout, device);
    else
      return from(std::span<const T>(values), shape, layout, device);
  }

  /// False of Tensor(), which has neither shape nor elements.
  bool defined() const { return impl_ != nullptr; }
  /// Of a defined tensor; Error of another. Sizes, strides and the offset count elements; size() and stride() take
  /// negative dimensions, which count from the end.
  /// @{
  const Shape& shape() const { return impl().shape; }
  const Strides& strides() const { return impl().strides; }
  int rank() const { return shape().rank(); }
  std::int64_t size(int dim) const { return shape()[dim]; }
  std::int64_t stride(int dim) const { return strides()[dim]; }
  std::int64_t numel() const { return element_count(shape()); }
  std::int64_t offset() const { return impl().offset; }
  DType dtype() const { return impl().dtype; }
  Device device() const { return storage()->device(); }
  TensorOptions options(Layout layout = Layout::row_major) const { return {dtype(), layout, device()}; }
  const std::shared_ptr<Storage>& storage() const { return impl().storage; }
  /// @}

  /// The first element, to be read, in the memory of device(); throws Error unless T is this tensor's dtype. Write
  /// through `Out(tensor).data<T>()` (core/out.h).
  template <typename T>
  const T* data() const {
    require(dtype_of<T> == dtype(), "tensor holds {}, asked for {}", name_of(dtype()), name_of(dtype_of<T>));
    return static_cast<const T*>(raw_data());
  }
  /// The same, without a type.
  const void* raw_data() const;

  /// The only element of a one-element tensor, as a double (exact for all dtypes but large i64). Throws Error for a
  /// tensor of more or fewer elements. Waits for the current stream.
  double item() const;

  /// All elements in row-major order, converted to T (to bool: those that are not 0 are true). For tests and small
  /// tensors. Waits for the current stream.
  template <typename T>
  std::vector<T> to_vector() const;

  /// True if the elements lie one after another, in the order of `layout` (sizes of 1 have no say).
  bool is_dense(Layout layout) const;
  /// True if dense in some order of dimensions, without gaps or overlaps.
  bool is_dense() const;

  // Views: O(1), of the same storage, without autograd metadata.
  /// Same elements, other shape; one size may be -1. Throws Error where the numbers of elements differ, and where
  /// strides do not allow it without a copy.
  Tensor view(const Shape& shape) const;
  /// Dimensions in another order: dimension i of the view is `order[i]` of this tensor; a and b change places.
  /// @{
  Tensor permute(std::span<const int> order) const;
  Tensor transpose(int a, int b) const;
  /// @}
  /// `length` elements of `dim`: start, start + step, start + 2 step and so on. Throws Error where they are not all
  /// there.
  Tensor narrow(int dim, std::int64_t start, std::int64_t length, std::int64_t step = 1) const;
  /// The `index`-th slice of `dim`, from 0 on; the dimension disappears.
  Tensor select(int dim, std::int64_t index) const;
  /// Without `dim`, whose size must be 1.
  Tensor squeeze(int dim) const;
  /// With a new dimension of size 1, which becomes `dim`.
  Tensor unsqueeze(int dim) const;
  /// Repeats dimensions of size 1, and adds new ones in front, by a stride of 0.
  Tensor expand(const Shape& shape) const;
  /// Any shape, strides (in elements, >= 0) and offset that stay inside the storage; the offset counts elements from
  /// the storage's beginning, not from this tensor's.
  Tensor as_strided(const Shape& shape, const Strides& strides, std::int64_t offset) const;
  /// The same elements behind a new handle without autograd metadata. Unlike other views it may always be written to:
  /// gradients of what is computed from this tensor afterwards do not know of that.
  Tensor detach() const;

  // Copies; they carry no autograd metadata.
  /// This tensor if it is dense in `layout` already, else a dense copy.
  Tensor contiguous(Layout layout = Layout::row_major) const;
  /// A copy, in the same strides where they are dense.
  Tensor clone() const;
  /// This tensor if it is on `device` already, else a copy there, in the same strides where they are dense.
  Tensor to(Device device) const;
  /// Writes the elements of `source` (same shape and dtype, any strides and device) here, in place. Where both share
  /// memory, the result is as if `source` had been copied before. Host memory may be read and written as soon as this
  /// returns; between two tensors of CUDA devices nobody waits.
  void copy_from(const Tensor& source) const;
  /// The same, but pinned host memory is still in use until the current stream has done the copy: wait for that (or for
  /// an Event behind it) before reading the copy, or writing to the source.
  void copy_from_async(const Tensor& source) const;
  /// Makes every element `value`: rounded to a floating dtype, without its fraction in an integer one. Throws Error
  /// where an integer dtype has no such number, NaN included.
  void fill(double value) const;
  /// Makes every element 0.
  void zero() const { fill(0.0); }
  /// This handle and its copies become `source` (of the same shape): they name its elements, in its dtype and on its
  /// device, and keep their autograd metadata. Views made before keep the old elements. Throws Error for a tensor that
  /// an operation on the tape made, and for a `source` that requires a gradient.
  void set_data(const Tensor& source) const;

  /// Autograd's slot; empty for most tensors.
  std::shared_ptr<AutogradMeta>& autograd_meta() const { return impl().meta; }

  /// True if no other handle, view or copy of this handle, can see the elements.
  bool is_sole_owner() const { return impl_.use_count() == 1 && storage().use_count() == 1; }

  /// True if both handles name the same tensor.
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

 private:
  friend class Out;  // mark_written()

  struct Impl {
    std::shared_ptr<Storage> storage;
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;
    std::int64_t offset = 0;  // in elements
    std::shared_ptr<AutogradMeta> meta;
    std::weak_ptr<AutogradMeta> viewed;  // of the tensor on the tape that this is a raw view of
  };

  Tensor make_view(const Shape& shape, const Strides& strides, std::int64_t offset) const;
  void copy_elements(const Tensor& source, bool asynchronous) const;
  /// Counts a new version of the storage; throws Error on the tape. `writer` is named in the message.
  void mark_written(std::string_view writer) const;
  /// True if operations on this tensor are being recorded.
  bool is_on_tape() const;
  /// Throws Error if it is: `operation` is raw, and the remedy is `recorded`, a function of autograd/, or detach().
  void refuse_on_tape(std::string_view operation, std::string_view recorded) const;
  Impl& impl() const {
    require(impl_ != nullptr, "this tensor is undefined: it was default-constructed or moved from");
    return *impl_;
  }

  std::shared_ptr<Impl> impl_;
};

/// A new tensor, contents undefined, with the shape, dtype, device and (where dense) strides of `other`.
Tensor empty_like(const Tensor& other);
/// The same with elements of 0.
Tensor zeros_like(const Tensor& other);

/// "f32[2, 3, 32, 32]", for messages.
std::string describe(const Tensor& tensor);

/// Writes values as NumPy shows them, dtype, shape and device: what to_string() of core/print.h gives.
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);
/// Write to_string() or name_of() of it.
/// @{
std::ostream& operator<<(std::ostream& stream, const Shape& shape);
std::ostream& operator<<(std::ostream& stream, const Strides& strides);
std::ostream& operator<<(std::ostream& stream, DType dtype);
std::ostream& operator<<(std::ostream& stream, Device device);
/// @}

}  // namespace tandem
