// Tensor: construction, views and metadata.
#include "tandem/core/tensor.h"

#include "tandem/core/describe.h"
#include "tandem/core/recording.h"
#include "tandem/core/timeline.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {

namespace {

/// "made by the recorded operation 'scale'", for messages.
std::string origin(const AutogradMeta& meta) {
  return meta.operation().empty() ? std::string("a leaf that requires a gradient")
                                  : fmt::format("made by the recorded operation '{}'", meta.operation());
}

[[noreturn]] void refuse_write(std::string_view writer, const Tensor& tensor, const AutogradMeta& on_tape,
                               std::string_view relation) {
  fail("{}: {}, {}{}, would get wrong gradients if it were changed in place: {}", writer, tensor, relation,
       origin(on_tape),
       on_tape.operation().empty() ? "write under autograd::NoGrad" : "write into detach().clone() and use that");
}

}  // namespace

bool Tensor::is_on_tape() const {
  const auto& meta = impl().meta;
  return meta != nullptr && meta->requires_grad && detail::recording;
}

void Tensor::refuse_on_tape(std::string_view operation, std::string_view recorded) const {
  if (is_on_tape()) [[unlikely]] {
    fail("{}: {}, {}, would lose its gradient: call autograd::{} to record it, or detach() first", operation, *this,
         origin(*impl().meta), recorded);
  }
}

void Tensor::mark_written(std::string_view writer) const {
  if (is_on_tape()) [[unlikely]]
    refuse_write(writer, *this, *impl().meta, "");
  if (const auto viewed = impl().viewed.lock(); viewed != nullptr && viewed->requires_grad && detail::recording) {
    refuse_write(
        writer, *this, *viewed,
        viewed->operation().empty() ? "a view taken under NoGrad of " : "a view taken under NoGrad of a tensor ");
  }
  storage()->bump_version();
}

Tensor Tensor::on(std::shared_ptr<Storage> storage, const Shape& shape, DType dtype, Layout layout) {
  std::int64_t bytes = 0;
  require(!__builtin_mul_overflow(element_count(shape), size_of(dtype), &bytes) && bytes <= storage->bytes(),
          "Tensor::on: {}{} does not fit into {} bytes", name_of(dtype), shape, storage->bytes());
  Tensor result;
  result.impl_ = std::make_shared<Impl>();
  result.impl_->storage = std::move(storage);
  result.impl_->dtype = dtype;
  result.impl_->shape = shape;
  result.impl_->strides = dense_strides(shape, layout);
  if (timeline_is_recorded()) [[unlikely]]
    detail::describe_storage(result.storage().get(), describe(result));
  return result;
}

Tensor Tensor::empty(const Shape& shape, TensorOptions options) {
  const std::int64_t count = element_count(shape);
  std::int64_t bytes = 0;
  require(!__builtin_mul_overflow(count, size_of(options.dtype), &bytes), "shape {} has too many elements", shape);
  auto storage = std::make_shared<Storage>(bytes, options.device, current_memory_tag(), options.pinned);
  return on(std::move(storage), shape, options.dtype, options.layout);
}

Tensor Tensor::zeros(const Shape& shape, TensorOptions options) { return full(shape, 0.0, options); }

Tensor Tensor::full(const Shape& shape, double value, TensorOptions options) {
  Tensor result = empty(shape, options);
  result.fill(value);
  return result;
}

const void* Tensor::raw_data() const {
  return static_cast<const std::byte*>(impl().storage->data()) + impl().offset * size_of(impl().dtype);
}

bool Tensor::is_dense(Layout layout) const {
  const Strides expected = dense_strides(shape(), layout);
  for (int dim = 0; dim < rank(); ++dim) {
    if (size(dim) == 0) return true;
  }
  for (int dim = 0; dim < rank(); ++dim) {
    if (size(dim) != 1 && stride(dim) != expected[dim]) return false;
  }
  return true;
}

bool Tensor::is_dense() const {
  DimOrder order{};
  int count = 0;
  for (int dim = 0; dim < rank(); ++dim) {
    if (size(dim) == 0) return true;
    if (size(dim) != 1) order[static_cast<std::size_t>(count++)] = dim;
  }
  sort_dims(order, count, [&](int a, int b) { return stride(a) < stride(b); });
  std::int64_t expected = 1;
  for (int i = 0; i < count; ++i) {
    const int dim = order[static_cast<std::size_t>(i)];
    if (stride(dim) != expected) return false;
    expected *= size(dim);
  }
  return true;
}

Tensor Tensor::make_view(const Shape& shape, const Strides& strides, std::int64_t offset) const {
  Tensor result;
  result.impl_ = std::make_shared<Impl>(Impl{storage(), dtype(), shape, strides, offset, nullptr, impl().viewed});
  if (impl().meta != nullptr && impl().meta->requires_grad) result.impl_->viewed = impl().meta;
  return result;
}

void Tensor::set_data(const Tensor& source) const {
  require(defined() && source.defined() && source.shape() == shape(),
          "set_data: {} cannot become {}: both must be defined and of one shape", *this, source);
  const auto& mine = impl().meta;
  const auto& others = source.impl().meta;
  require(mine == nullptr || mine->operation().empty(), "set_data: {} was made by a recorded operation; use detach()",
          *this);
  require(others == nullptr || !others->requires_grad, "set_data: {} requires a gradient itself; give its detach()",
          source);
  Impl& target = impl();
  const Impl& from = source.impl();
  target.storage = from.storage;
  target.dtype = from.dtype;
  target.strides = from.strides;
  target.offset = from.offset;
}

Tensor Tensor::view(const Shape& requested) const {
  refuse_on_tape("view", "reshape");
  Shape shape = requested;
  std::int64_t known = 1;
  int open = -1;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] >= 0) {
      require(!__builtin_mul_overflow(known, shape[dim], &known), "view: shape {} has too many elements", requested);
      continue;
    }
    require(shape[dim] == -1 && open < 0, "view: shape {} may hold one -1 and no other negative size", requested);
    open = dim;
  }
  if (open >= 0) {
    require(known > 0 && numel() % known == 0, "view: {} cannot be seen as {}", *this, requested);
    shape[open] = numel() / known;
  }
  require(element_count(shape) == numel(), "view: {} has {} elements, shape {} has {}", *this, numel(), shape,
          element_count(shape));
  if (numel() == 0) return make_view(shape, dense_strides(shape, Layout::row_major), offset());

  // Each group of old dimensions that follow each other without gaps may be cut up anew.
  Strides strides = Strides::zeros(shape.rank());
  int next = shape.rank() - 1;
  for (int dim = rank() - 1; dim >= 0;) {
    std::int64_t group = 1, step = stride(dim);
    const std::int64_t inner_stride = stride(dim);
    while (dim >= 0 && (size(dim) == 1 || group == 1 || stride(dim) == step)) {
      if (group == 1 && size(dim) != 1) step = stride(dim);
      group *= size(dim);
      step *= size(dim);
      --dim;
    }
    std::int64_t unit = group == 1 ? inner_stride : step / group;
    std::int64_t filled = 1;
    while (next >= 0 && (filled < group || shape[next] == 1)) {
      strides[next] = unit;
      unit *= shape[next];
      filled *= shape[next--];
    }
    require(filled == group, "view: {} with strides {} cannot be seen as {} without a copy; call contiguous() first",
            *this, this->strides(), shape);
  }
  for (; next >= 0; --next) strides[next] = 1;  // leading sizes of 1
  return make_view(shape, strides, offset());
}

Tensor Tensor::permute(std::span<const int> order) const {
  refuse_on_tape("permute", "permute");
  require(static_cast<int>(order.size()) == rank(), "permute: {} needs {} dimensions, got {}", *this, rank(),
          order.size());
  Shape shape;
  Strides strides;
  std::array<bool, kMaxRank> seen{};
  for (const int requested : order) {
    const int dim = this->shape().wrap(requested);
    require(!seen[static_cast<std::size_t>(dim)], "permute: dimension {} named twice", dim);
    seen[static_cast<std::size_t>(dim)] = true;
    shape.push_back(size(dim));
    strides.push_back(stride(dim));
  }
  return make_view(shape, strides, offset());
}

Tensor Tensor::transpose(int a, int b) const {
  refuse_on_tape("transpose", "transpose");
  Shape shape = this->shape();
  Strides strides = this->strides();
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return make_view(shape, strides, offset());
}

Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length, std::int64_t step) const {
  refuse_on_tape("narrow", "narrow");
  const bool inside = step >= 1 && start >= 0 && length >= 0 && start <= size(dim) &&
                      (length == 0 || (start < size(dim) && length - 1 <= (size(dim) - 1 - start) / step));
  require(inside, "narrow: {} elements from {} in steps of {} do not fit dimension {} of {}", length, start, step, dim,
          *this);
  Shape shape = this->shape();
  Strides strides = this->strides();
  shape[dim] = length;
  if (length > 1) strides[dim] *= step;
  return make_view(shape, strides, offset() + start * stride(dim));
}

Tensor Tensor::select(int dim, std::int64_t index) const {
  refuse_on_tape("select", "select");
  require(index >= 0 && index < size(dim),
          "select: index {} is outside dimension {} of {}; give one from 0 on, less than its size", index, dim, *this);
  return narrow(dim, index, 1).squeeze(dim);
}

Tensor Tensor::squeeze(int dim) const {
  refuse_on_tape("squeeze", "squeeze");
  require(size(dim) == 1, "squeeze: dimension {} of {} is not 1; use select or reshape", dim, *this);
  const int removed = shape().wrap(dim);
  Shape shape;
  Strides strides;
  for (int i = 0; i < rank(); ++i) {
    if (i == removed) continue;
    shape.push_back(size(i));
    strides.push_back(stride(i));
  }
  return make_view(shape, strides, offset());
}

Tensor Tensor::unsqueeze(int dim) const {
  refuse_on_tape("unsqueeze", "unsqueeze");
  require(dim >= -rank() - 1 && dim <= rank(), "unsqueeze: dimension {} is out of range for {}", dim, *this);
  const int inserted = dim < 0 ? dim + rank() + 1 : dim;
  Shape shape;
  Strides strides;
  for (int i = 0; i <= rank(); ++i) {
    if (i == inserted) {
      shape.push_back(1);
      strides.push_back(i < rank() ? size(i) * stride(i) : 1);
    }
    if (i == rank()) break;
    shape.push_back(size(i));
    strides.push_back(stride(i));
  }
  return make_view(shape, strides, offset());
}

Tensor Tensor::expand(const Shape& shape) const {
  refuse_on_tape("expand", "expand");
  require(shape.rank() >= rank(), "expand: {} cannot become {}, which has fewer dimensions", *this, shape);
  Strides strides = Strides::zeros(shape.rank());
  const int added = shape.rank() - rank();
  for (int dim = 0; dim < shape.rank(); ++dim) {
    const std::int64_t old_size = dim < added ? 1 : size(dim - added);
    require(old_size == shape[dim] || (old_size == 1 && shape[dim] >= 0),
            "expand: {} cannot become {}: only dimensions of size 1 can be repeated; reshape it first", *this, shape);
    strides[dim] = dim < added || old_size != shape[dim] ? 0 : stride(dim - added);
  }
  return make_view(shape, strides, offset());
}

Tensor Tensor::as_strided(const Shape& shape, const Strides& strides, std::int64_t offset) const {
  refuse_on_tape("as_strided", "reshape, permute or narrow");
  require(shape.rank() == strides.rank(), "as_strided: shape {} and strides {} differ in rank", shape, strides);
  std::int64_t last = offset;
  bool overflow = false;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    require(strides[dim] >= 0, "as_strided: negative stride in {}", strides);
    std::int64_t reach = 0;
    if (shape[dim] <= 1) continue;
    overflow = overflow || __builtin_mul_overflow(shape[dim] - 1, strides[dim], &reach);
    overflow = overflow || __builtin_add_overflow(last, reach, &last);
  }
  const bool empty = element_count(shape) == 0;
  require(offset >= 0 && (empty || (!overflow && last < storage()->bytes() / size_of(dtype()))),
          "as_strided: shape {}, strides {} and offset {} leave the storage of {} bytes", shape, strides, offset,
          storage()->bytes());
  return make_view(shape, strides, offset);
}

Tensor Tensor::detach() const {
  Tensor result;
  result.impl_ = std::make_shared<Impl>(Impl{storage(), dtype(), shape(), strides(), offset(), nullptr, {}});
  return result;
}

Tensor empty_like(const Tensor& other) {
  Tensor result = Tensor::empty(other.shape(), other.options());
  return other.is_dense() && other.numel() > 0 ? result.as_strided(other.shape(), other.strides(), 0) : result;
}

Tensor zeros_like(const Tensor& other) {
  Tensor result = empty_like(other);
  result.zero();
  return result;
}

std::string describe(const Tensor& tensor) {
  return tensor.defined() ? fmt::format("{}{}", name_of(tensor.dtype()), to_string(tensor.shape()))
                          : std::string("undefined tensor");
}

}  // namespace tandem
