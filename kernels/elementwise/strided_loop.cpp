// What loops over strided operands share.
#include "tandem/kernels/elementwise/strided_loop.h"

namespace tandem::kernels {

void sort_by_strides(std::span<int> dimensions, const Strides& strides) {
  std::stable_sort(dimensions.begin(), dimensions.end(), [&](int a, int b) { return strides[a] > strides[b]; });
}

}  // namespace tandem::kernels
