// Names of precisions, and the one cast that rules ask for.
#include "autograd/precision.h"

#include "autograd/functions/cast.h"

#include <algorithm>

namespace tandem::autograd {

Precision parse_precision(std::string_view name) {
  const auto found =
      std::find_if(kPrecisions.begin(), kPrecisions.end(), [&](Precision p) { return name_of(p) == name; });
  if (found != kPrecisions.end()) return *found;
  require(name != "tf32", "there are no kernels for tf32 yet; available: fp32, fp16, bf16");
  fail("unknown precision '{}'; available: fp32, fp16, bf16", name);
}

Tensor input_for(OpKind kind, const Tensor& x, const Tensor& weight) {
  const bool mixed =
      is_half(x.dtype()) != is_half(weight.dtype()) && wide_dtype(x.dtype()) == wide_dtype(weight.dtype());
  return rule_of(kind) == Rule::half_operands && mixed ? cast(x, weight.dtype()) : x;
}

}  // namespace tandem::autograd
