// Dropout: checks, and the choice of implementation.
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/dropout/dropout_implementations.h"
#include "tandem/kernels/traffic.h"

#include <cmath>

namespace tandem::kernels {

std::uint32_t detail::dropout_threshold(double p) { return static_cast<std::uint32_t>(std::ceil(p * 0x1p24)); }

void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Out& y) {
  require(p >= 0.0 && p <= 1.0, "dropout: the probability must lie in [0, 1], got {}", p);
  require(is_floating(x.dtype()) && x.dtype() == y.dtype() && x.shape() == y.shape(),
          "dropout: input and output must be of one shape and one floating dtype, got {} and {}", describe(x),
          describe(y));
  require_one_device("dropout", x, y);
  if (x.numel() == 0) return;
  note_traffic(x, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{"dropout_forward", y}) return cuda::dropout_forward(x, p, key, y);
  if (cpu::supports_dropout(x, y)) return cpu::dropout_forward(x, p, key, y);
  reference::dropout_forward(x, p, key, y);
}

void dropout_backward(const Tensor& grad_y, double p, const RandomKey& key, const Out& grad_x) {
  dropout_forward(grad_y, p, key, grad_x);
}

}  // namespace tandem::kernels
