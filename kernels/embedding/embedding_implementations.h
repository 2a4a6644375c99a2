// The implementations of embedding.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/embedding/embedding.h"

namespace tandem::kernels {

namespace reference {
decltype(kernels::embedding_forward) embedding_forward;
decltype(kernels::embedding_backward) embedding_backward;
}  // namespace reference

namespace cpu {
/// Any dtype: rows are copied, shared out over threads.
decltype(kernels::embedding_forward) embedding_forward;
/// f32, f16 and bf16: positions are sorted by their index (counting sort), then rows of the gradient shared out.
decltype(kernels::embedding_backward) embedding_backward;
}  // namespace cpu

/// f32, f16 and bf16.
namespace cuda {
decltype(kernels::embedding_forward) embedding_forward;
decltype(kernels::embedding_backward) embedding_backward;
}  // namespace cuda

}  // namespace tandem::kernels
