// Looking for infinities and NaN in many tensors: one pass over all of them, shared out over threads.
#include "tandem/kernels/optimizer/all_finite.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/optimizer/all_finite_implementations.h"
#include "tandem/kernels/optimizer/tensor_list.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

namespace tandem::kernels {

namespace {

// By their bits, which compilers turn into vector code: a number is finite unless all bits of its exponent are set.
bool is_finite(double value) { return std::abs(value) < std::numeric_limits<double>::infinity(); }
bool is_finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) != 0x7f800000u; }
bool is_finite(Half value) { return (value.bits & 0x7c00u) != 0x7c00u; }
bool is_finite(BFloat16 value) { return (value.bits & 0x7f80u) != 0x7f80u; }

template <typename T>
bool are_finite(const T* values, std::int64_t count) {
  bool all = true;
  for (std::int64_t i = 0; i < count; ++i) all &= is_finite(values[i]);
  return all;
}

}  // namespace

Tensor any_non_finite(std::span<const Tensor> tensors, TableCache* table) {
  constexpr std::string_view kOp = "all_finite";
  const std::vector<std::int64_t> sizes = dense_sizes(kOp, tensors);
  if constexpr (kHasCuda)
    if (!tensors.empty())
      if (const CudaOp op{kOp, tensors.front()}) return cuda::any_non_finite(tensors, table);
  std::atomic<bool> all{true};
  for_each_part(sizes, [&](std::size_t item, std::int64_t begin, std::int64_t end) {
    dispatch_floating(tensors[item].dtype(), kOp, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (!are_finite(tensors[item].data<T>() + begin, end - begin)) all = false;
    });
  });
  return Tensor::full({}, all ? 0.0 : 1.0, {.dtype = DType::i32});
}

bool all_finite(std::span<const Tensor> tensors) { return any_non_finite(tensors).item() == 0.0; }

}  // namespace tandem::kernels
