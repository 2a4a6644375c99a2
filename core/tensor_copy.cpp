// Tensor: moving elements between layouts and devices, from and to C++ containers.
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/dtype_values.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/core/strided_copy.h"
#include "tandem/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tandem {

namespace {

/// A transposed matrix: to[row * to_pitch + column] = from[column * from_pitch + row]. In square tiles as wide as a
/// cache line, so that what a line brings is used while it is there.
template <typename Word>
void copy_transposed(Word* to, std::int64_t to_pitch, const Word* from, std::int64_t from_pitch, std::int64_t rows,
                     std::int64_t columns) {
  constexpr std::int64_t kTile = 64 / sizeof(Word);
  for (std::int64_t row = 0; row < rows; row += kTile) {
    const std::int64_t height = std::min(kTile, rows - row);
    for (std::int64_t column = 0; column < columns; column += kTile) {
      const std::int64_t width = std::min(kTile, columns - column);
      Word* const tile = to + row * to_pitch + column;
      const Word* const source = from + column * from_pitch + row;
      for (std::int64_t i = 0; i < height; ++i)
        for (std::int64_t j = 0; j < width; ++j) tile[i * to_pitch + j] = source[j * from_pitch + i];
    }
  }
}

/// The nest's innermost dimension is dense at the destination and `across`, another, at the source.
template <typename Word>
void copy_across(const detail::LoopNest& nest, int across, Word* to, const Word* from) {
  const int inner = nest.sizes.rank() - 1;
  Shape sizes;
  Strides to_strides, from_strides;
  for (int dim = 0; dim < inner; ++dim) {
    if (dim == across) continue;
    sizes.push_back(nest.sizes[dim]);
    to_strides.push_back(nest.to[dim]);
    from_strides.push_back(nest.from[dim]);
  }
  detail::for_each_run(sizes, to_strides, from_strides,
                       [&](std::int64_t to_offset, std::int64_t from_offset, std::int64_t length,
                           std::int64_t to_stride, std::int64_t from_stride) {
                         for (std::int64_t i = 0; i < length; ++i)
                           copy_transposed(to + to_offset + i * to_stride, nest.to[across],
                                           from + from_offset + i * from_stride, nest.from[inner], nest.sizes[across],
                                           nest.sizes[inner]);
                       });
}

/// Copies between any two strided tensors of one shape and element size. The outermost dimension is shared out over
/// threads.
template <typename Word>
void copy_words(const Out& destination, const Tensor& source) {
  Word* const to = static_cast<Word*>(destination.raw_data());
  const Word* const from = static_cast<const Word*>(source.raw_data());
  const auto copy_part = [&](const Shape& shape, std::int64_t to_start, std::int64_t from_start) {
    const detail::LoopNest nest = detail::merge_dims(shape, destination.strides(), source.strides());
    if (const auto across = detail::dim_to_transpose(nest))
      return copy_across(nest, *across, to + to_start, from + from_start);
    detail::for_each_run(nest, [&](std::int64_t to_offset, std::int64_t from_offset, std::int64_t length,
                                   std::int64_t to_stride, std::int64_t from_stride) {
      Word* const to_run = to + to_start + to_offset;
      const Word* const from_run = from + from_start + from_offset;
      if (to_stride == 1 && from_stride == 1) {
        std::memcpy(to_run, from_run, static_cast<std::size_t>(length) * sizeof(Word));
        return;
      }
      for (std::int64_t i = 0; i < length; ++i) to_run[i * to_stride] = from_run[i * from_stride];
    });
  };
  constexpr std::int64_t kGrain = 1 << 15;
  const std::int64_t count = destination.numel();
  if (destination.rank() == 0 || count <= kGrain) return copy_part(destination.shape(), 0, 0);
  const std::int64_t rows = destination.size(0);
  parallel_for(rows, std::max<std::int64_t>(1, kGrain * rows / count), [&](std::int64_t begin, std::int64_t end) {
    Shape part = destination.shape();
    part[0] = end - begin;
    copy_part(part, begin * destination.stride(0), begin * source.stride(0));
  });
}

/// How far the last element lies behind the first.
std::int64_t extent(const Tensor& tensor) {
  std::int64_t last = 0;
  for (int dim = 0; dim < tensor.rank(); ++dim) last += (tensor.size(dim) - 1) * tensor.stride(dim);
  return last;
}

/// True if a part of one may lie in the memory of the other. Neither is empty, the dtype is one.
bool may_overlap(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() <= b.offset() + extent(b) && b.offset() <= a.offset() + extent(a);
}

}  // namespace

void Tensor::copy_from(const Tensor& source) const {
  source.refuse_on_tape("copy_from", "clone in place of the copy");
  copy_elements(source, false);
}

void Tensor::copy_from_async(const Tensor& source) const {
  source.refuse_on_tape("copy_from_async", "clone in place of the copy");
  copy_elements(source, true);
}

void Tensor::copy_elements(const Tensor& source, [[maybe_unused]] bool asynchronous) const {
  require(shape() == source.shape() && dtype() == source.dtype(), "copy: {} cannot take the elements of {}",
          describe(*this), describe(source));
  const Out to(*this, "copy_from");
  if (numel() == 0) return;
  if (may_overlap(*this, source)) {
    if (offset() == source.offset() && strides() == source.strides()) return;
    return copy_elements(source.detach().clone(), asynchronous);
  }
  if constexpr (kHasCuda) {
    const bool on_host = device().type == DeviceType::cpu && source.device().type == DeviceType::cpu;
    if (!on_host) return cuda::copy(to, source, asynchronous);
  }
  switch (size_of(dtype())) {
    case 8:
      return copy_words<std::uint64_t>(to, source);
    case 4:
      return copy_words<std::uint32_t>(to, source);
    case 2:
      return copy_words<std::uint16_t>(to, source);
    default:
      return copy_words<std::uint8_t>(to, source);
  }
}

Tensor Tensor::contiguous(Layout layout) const {
  refuse_on_tape("contiguous", "contiguous");
  if (is_dense(layout)) return *this;
  Tensor result = empty(shape(), options(layout));
  result.copy_elements(*this, false);
  return result;
}

Tensor Tensor::clone() const {
  refuse_on_tape("clone", "clone");
  Tensor result = empty_like(*this);
  result.copy_elements(*this, false);
  return result;
}

Tensor Tensor::to(Device target) const {
  refuse_on_tape("to", "to");
  if (device() == target) return *this;
  Tensor result = empty(shape(), {.dtype = dtype(), .device = target});
  if (is_dense() && numel() > 0) result = result.as_strided(shape(), strides(), 0);
  result.copy_elements(*this, false);
  return result;
}

void Tensor::fill(double value) const {
  const Out target(*this, "fill");
  require(is_in_range(dtype(), value), "fill: {} is no number that {} has, which is from {}", value, name_of(dtype()),
          range_text(dtype()));
  if (numel() == 0) return;
  if constexpr (kHasCuda) {
    if (device().type == DeviceType::cuda) return cuda::fill(target, value);
  }
  dispatch_all(dtype(), "fill", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T element = static_cast<T>(static_cast<compute_t<T>>(value));
    T* const to = target.data<T>();
    detail::for_each_run(
        shape(), strides(), strides(),
        [&](std::int64_t offset, std::int64_t, std::int64_t length, std::int64_t stride, std::int64_t) {
          for (std::int64_t i = 0; i < length; ++i) to[offset + i * stride] = element;
        });
  });
}

template <typename T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape, Layout layout, Device device) {
  require(static_cast<std::int64_t>(values.size()) == element_count(shape), "{} values do not fill shape {}",
          values.size(), to_string(shape));
  const Tensor flat = empty(shape, {.dtype = dtype_of<T>});
  if (!values.empty()) std::memcpy(Out(flat).raw_data(), values.data(), values.size_bytes());
  return flat.contiguous(layout).to(device);
}

template <typename T>
std::vector<T> Tensor::to_vector() const {
  const Tensor flat = (is_on_tape() ? detach() : *this).to(Device{}).contiguous();
  return dispatch_all(dtype(), "to_vector", [&](auto tag) {
    using From = typename decltype(tag)::type;
    const From* const from = flat.data<From>();
    std::vector<T> result(static_cast<std::size_t>(numel()));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<T>(static_cast<compute_t<From>>(from[i]));
    return result;
  });
}

double Tensor::item() const {
  require(numel() == 1, "item: {} does not hold exactly one element", describe(*this));
  return to_vector<double>().front();
}

template Tensor Tensor::from(std::span<const double>, const Shape&, Layout, Device);
template Tensor Tensor::from(std::span<const float>, const Shape&, Layout, Device);
template Tensor Tensor::from(std::span<const Half>, const Shape&, Layout, Device);
template Tensor Tensor::from(std::span<const BFloat16>, const Shape&, Layout, Device);
template Tensor Tensor::from(std::span<const std::int64_t>, const Shape&, Layout, Device);
template Tensor Tensor::from(std::span<const std::int32_t>, const Shape&, Layout, Device);
template Tensor Tensor::from(std::span<const std::uint8_t>, const Shape&, Layout, Device);
template std::vector<double> Tensor::to_vector() const;
template std::vector<float> Tensor::to_vector() const;
template std::vector<Half> Tensor::to_vector() const;
template std::vector<BFloat16> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;
template std::vector<std::int32_t> Tensor::to_vector() const;
template std::vector<std::uint8_t> Tensor::to_vector() const;
template std::vector<bool> Tensor::to_vector() const;

}  // namespace tandem
