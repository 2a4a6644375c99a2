// Tensor: moving elements between layouts and devices, from and to C++ containers.
#include "core/cuda/runtime.h"
#include "core/parallel.h"
#include "core/strided_copy.h"
#include "core/tensor.h"

#include <cstring>

namespace tandem {

namespace {

/// Copies between any two strided tensors of one shape and element size. The outermost dimension is shared out over
/// threads.
template <typename Word>
void copy_words(const Tensor& destination, const Tensor& source) {
  const auto copy_part = [](const Tensor& to_part, const Tensor& from_part) {
    Word* const to = static_cast<Word*>(to_part.raw_data());
    const Word* const from = static_cast<const Word*>(from_part.raw_data());
    detail::for_each_run(to_part.shape(), to_part.strides(), from_part.strides(),
                         [&](std::int64_t to_offset, std::int64_t from_offset, std::int64_t length,
                             std::int64_t to_stride, std::int64_t from_stride) {
                           if (to_stride == 1 && from_stride == 1) {
                             std::memcpy(to + to_offset, from + from_offset,
                                         static_cast<std::size_t>(length) * sizeof(Word));
                             return;
                           }
                           for (std::int64_t i = 0; i < length; ++i)
                             to[to_offset + i * to_stride] = from[from_offset + i * from_stride];
                         });
  };
  constexpr std::int64_t kGrain = 1 << 15;
  const std::int64_t count = destination.numel();
  if (destination.rank() == 0 || count <= kGrain) return copy_part(destination, source);
  const std::int64_t rows = destination.size(0);
  // The threads of the workers have not switched recording off, as this one may have.
  const Tensor to = destination.detach(), from = source.detach();
  parallel_for(rows, std::max<std::int64_t>(1, kGrain * rows / count), [&](std::int64_t begin, std::int64_t end) {
    copy_part(to.narrow(0, begin, end - begin), from.narrow(0, begin, end - begin));
  });
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
  mark_written("copy_from");
  if (numel() == 0) return;
  if constexpr (kHasCuda) {
    const bool on_host = device().type == DeviceType::cpu && source.device().type == DeviceType::cpu;
    if (!on_host) return cuda::copy(*this, source, asynchronous);
  }
  switch (size_of(dtype())) {
    case 8:
      return copy_words<std::uint64_t>(*this, source);
    case 4:
      return copy_words<std::uint32_t>(*this, source);
    case 2:
      return copy_words<std::uint16_t>(*this, source);
    default:
      return copy_words<std::uint8_t>(*this, source);
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
  mark_written("fill");
  if (numel() == 0) return;
  if constexpr (kHasCuda) {
    if (device().type == DeviceType::cuda) return cuda::fill(*this, value);
  }
  dispatch_all(dtype(), "fill", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T element = static_cast<T>(static_cast<compute_t<T>>(value));
    T* const to = data<T>();
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
  if (!values.empty()) std::memcpy(flat.raw_data(), values.data(), values.size_bytes());
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

}  // namespace tandem
