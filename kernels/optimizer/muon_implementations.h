// The implementations of muon.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/muon.h"

namespace tandem::kernels {

/// Sums of squares are of so many elements each.
inline constexpr std::int64_t kMuonPart = 4096;

/// How many sums an item has.
inline std::int64_t parts_of(const MuonItem& item) { return (item.parameter.numel() + kMuonPart - 1) / kMuonPart; }

/// Those given by value.
StepFactors factors_of(const MuonOptions& options);

/// The sum of squares that a parameter is divided by the root of: not so small that zeros do not stay zeros. NaN is
/// NaN.
constexpr double nonzero_squares(double sum) {
  constexpr double least = 1e-37;
  return sum < least ? least : sum;
}

namespace cuda {
/// `directions` has room for u of each item, of optimizer_state_dtype, and `squares`, f64[parts, 2], for the sums of
/// squares of u and of the parameter of each part of each item.
void muon_matrices(std::span<const MuonItem> items, const MuonOptions& options, std::span<const Out> directions,
                   const Out& squares);
decltype(kernels::muon_step) muon_step;
}  // namespace cuda

}  // namespace tandem::kernels
