// How values are distributed.
#pragma once

#include "tandem/core/tensor.h"

#include <vector>

namespace tandem::train::detail {

/// Of the finite values of a tensor. Bin i counts those from limits[i - 1] (the first one: from min) up to limits[i];
/// all bins are of one width. Without values all is 0, and there is no bin. A sum that no double holds is infinite.
struct Histogram {
  double min = 0.0, max = 0.0, count = 0.0, sum = 0.0, sum_of_squares = 0.0;
  std::vector<double> limits, counts;
};

/// Of a tensor of any dtype, shape and device. One bin where all values are alike, and fewer than `bins` where there
/// are not so many doubles in their range.
Histogram histogram_of(const Tensor& values, int bins = 64);

}  // namespace tandem::train::detail
