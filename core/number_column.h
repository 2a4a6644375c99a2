// Numbers of a tensor as texts of one width, in NumPy's form.
#pragma once

#include "tandem/core/tensor.h"

#include <string>
#include <vector>

namespace tandem {

/// The elements in row-major order, as numpy.array2string writes them (NumPy 2.3 or newer; FloatingFormat with
/// floatmode "maxprec", and IntegerFormat): of each the shortest digits that tell it from its neighbours of this dtype,
/// and at most `precision` behind the point; padded to one width. Scientific where the largest is 10^8 or more (10^6
/// for f32, 10^3 for f16, 10^2 for bf16: what these hold exactly), the smallest below 0.0001, or their ratio above
/// 1000. `tensor` lies on the CPU.
std::vector<std::string> number_column(const Tensor& tensor, int precision);

}  // namespace tandem
