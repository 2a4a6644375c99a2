// Dropout: checks, and the choice of implementation.
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/dropout/dropout_implementations.h"
#include "tandem/kernels/traffic.h"

#include <cmath>

namespace tandem::kernels {

std::uint32_t detail::dropout_threshold(double p) { return static_cast<std::uint32_t>(std::ceil(p * 0x1p24)); }

void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Out& y, const Tensor& step) {
  require(p >= 0.0 && p <= 1.0, "dropout: the probability must lie in [0, 1], got {}", p);
  require(is_floating(x.dtype()) && x.dtype() == y.dtype() && x.shape() == y.shape(),
          "dropout: input and output must be of one shape and one floating dtype, got {} and {}", describe(x),
          describe(y));
  require_one_device("dropout", x, y);
  require(!step.defined() || (step.dtype() == DType::i64 && step.numel() == 1 && step.device() == y.device()),
          "dropout: the step must be one i64 on {}, got {}", name_of(y.device()), describe(step));
  if (x.numel() == 0) return;
  note_traffic(x, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{"dropout_forward", y}) return cuda::dropout_forward(x, p, key, y, step);
  RandomKey whole = key;
  if (step.defined()) whole.step += static_cast<std::uint32_t>(*step.data<std::int64_t>());
  if (cpu::supports_dropout(x, y)) return cpu::dropout_forward(x, p, whole, y);
  reference::dropout_forward(x, p, whole, y);
}

void dropout_backward(const Tensor& grad_y, double p, const RandomKey& key, const Out& grad_x, const Tensor& step) {
  dropout_forward(grad_y, p, key, grad_x, step);
}

}  // namespace tandem::kernels
