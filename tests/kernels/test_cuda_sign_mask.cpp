// The 1-bit masks of ReLU on a GPU, of every number of elements that ends a word, a warp or a vector early, from
// aligned addresses and others.
#include "tandem/core/out.h"
#include "tandem/kernels/conv/implementations.h"
#include "tests/kernels/image_support.h"
#include "tests/kernels/product_support.h"

#include <cmath>
#include <limits>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

constexpr std::int64_t kCounts[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 255, 256, 257, 2047, 2051};
constexpr std::int64_t kAround = 16;  // elements before and behind what a pass may touch

/// Numbers of both signs, zeros of both, infinities and NaN; `count` of them from element `first` of a larger tensor.
Tensor values_from(std::int64_t first, std::int64_t count, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double kinds[] = {1.5, -2.0, 0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 0.25, -0.125, 3.0, 6.0};
  std::vector<double> values;
  for (std::int64_t i = 0; i < count + 2 * kAround; ++i) values.push_back(kinds[static_cast<std::size_t>(i * i) % 11]);
  const Tensor all = in_dtype(Tensor::from<double>(values, {count + 2 * kAround}), dtype);
  return on_gpu(all).narrow(0, first, count);
}

std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  return tensor.to(Device{}).contiguous().to_vector<std::uint8_t>();
}

/// The elements' bits: NaN must stay what it is.
std::vector<int> bits_of(const Tensor& tensor) {
  const Tensor here = tensor.to(Device{}).contiguous();
  const auto* const bytes = static_cast<const std::uint8_t*>(here.raw_data());
  return {bytes, bytes + here.numel() * size_of(here.dtype())};
}

}  // namespace

TEST_CASE("sign masks have a bit for each element, whatever the number and the address", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const DType dtype : kGpuDTypes)
    for (const std::int64_t first : {0, 8, 1, 4, 7})
      for (const std::int64_t count : kCounts) {
        INFO(name_of(dtype) << ", " << count << " elements from " << first << " on");
        const Tensor y = values_from(first, count, dtype);
        const std::int64_t mask_bytes = (count + 7) / 8;
        const Tensor mask = Tensor::full({mask_bytes + 4}, 0xAA, {.dtype = DType::u8, .device = kGpu});
        k::cuda::sign_mask(y, Out(mask.narrow(0, 0, mask_bytes)));
        const Tensor expected = Tensor::full({mask_bytes + 4}, 0xAA, {.dtype = DType::u8});
        k::reference::sign_mask(y.to(Device{}), Out(expected.narrow(0, 0, mask_bytes)));
        CHECK(bytes_of(mask) == bytes_of(expected));
      }
}

TEST_CASE("masks are applied bit for bit, whatever the number and the address", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const DType dtype : kGpuDTypes)
    for (const std::int64_t first : {0, 8, 1, 4, 7})
      for (const std::int64_t count : kCounts)
        for (const bool in_place : {false, true}) {
          INFO(name_of(dtype) << ", " << count << " elements from " << first << " on, in place: " << in_place);
          const Tensor gradient = values_from(first, count, dtype), here = gradient.to(Device{}).contiguous();
          const Tensor mask = Tensor::empty({(count + 7) / 8}, {.dtype = DType::u8});
          for (std::int64_t i = 0; i < mask.numel(); ++i)
            Out(mask).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(37 * i + 11);
          // A result elsewhere begins at an address of another kind.
          const Tensor around = in_place ? Tensor() : on_gpu(in_dtype(Tensor::full({count + 2 * kAround}, 7.0), dtype));
          const Tensor out = in_place ? gradient : around.narrow(0, kAround - first, count);
          k::cuda::apply_mask(gradient, on_gpu(mask), Out(out));
          const Tensor expected = empty_like(here);
          k::reference::apply_mask(here, mask, Out(expected));
          CHECK(bits_of(out) == bits_of(expected));
          if (in_place) continue;
          for (const Tensor& beside :
               {around.narrow(0, 0, kAround - first), around.narrow(0, kAround - first + count, first)})
            for (const double value : beside.to_vector<double>()) CHECK(value == 7.0);
        }
}

}  // namespace tandem::test
