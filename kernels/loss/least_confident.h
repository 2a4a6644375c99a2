// The rows of logits that a network is least sure of.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// The M = chosen.size(0) rows of logits [N, C] whose largest probability by a softmax is smallest, the smallest first
/// and of equal ones the one that stands first: their numbers to `chosen` (i64[M]). Rows with NaN or an infinite
/// largest element come before all others, as they stand. And to `places` (i64[N]) where to find the newest of each row
/// among the N rows with the M chosen ones behind them: N + m for row chosen[m], its own number for the others.
/// Probabilities are f64, by operations that are the same on all devices, so that these choose the same rows. logits
/// floating, any strides (f64 on the CPU only); C >= 1, M <= N; the results dense; all on one device; nobody waits.
/// Throws Error where that does not hold.
/// Example:
///     const Tensor logits = Tensor::from<float>({0, 9, 1, 1, 5, 4}, {3, 2});
///     const Tensor chosen = Tensor::empty({2}, {.dtype = DType::i64}), places = Tensor::empty({3}, chosen.options());
///     least_confident(logits, Out(chosen), Out(places));
///     const std::vector<int> least = chosen.to_vector<int>();  // {1, 2}
///     const std::vector<int> found = places.to_vector<int>();  // {0, 3, 4}
void least_confident(const Tensor& logits, const Out& chosen, const Out& places);

}  // namespace tandem::kernels
