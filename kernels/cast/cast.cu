// Copies between dtypes on CUDA.
#include "tandem/kernels/cast/cast_implementations.h"
#include "tandem/kernels/cast/convert.h"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

namespace {

/// convert<To>(From), bit for bit. Between f32 and a half type the hardware has one instruction, right for all numbers;
/// it makes all NaN alike, while convert keeps what fits of their bits.
template <typename To, typename From>
struct Convert {
  __device__ To operator()(From value) const {
    if constexpr (std::is_same_v<From, float> && is_half_type<To>) {
      return value == value ? device::from_float<To>(value) : convert<To>(value);
    } else if constexpr (std::is_same_v<To, float> && is_half_type<From>) {
      const float number = device::to_float(value);
      return number == number ? number : convert<float>(value);
    } else {
      return convert<To>(value);
    }
  }
};

}  // namespace

void cast(const Tensor& source, const Out& destination) {
  if (source.numel() == 0) return;
  if (source.dtype() == destination.dtype()) return destination.copy_from(source);
  const cudaStream_t stream = tandem::cuda::current_stream(destination);
  dispatch_all(source.dtype(), "cast", [&](auto from_tag) {
    dispatch_all(destination.dtype(), "cast", [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      if constexpr (!std::is_same_v<From, To>) {
        map_elements(source.shape(), stream, Convert<To, From>{}, Operand<To>(destination),
                     Operand<const From>(ordered_input(source, destination)));
      }
    });
  });
}

}  // namespace tandem::kernels::cuda
