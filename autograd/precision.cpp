// Names of precisions, and the one cast that rules ask for.
#include "tandem/autograd/precision.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/core/suggest.h"
#include "tandem/kernels/float32_products.h"

#include <algorithm>

namespace tandem::autograd {

Precision parse_precision(std::string_view name) {
  const auto found =
      std::find_if(kPrecisions.begin(), kPrecisions.end(), [&](Precision p) { return name_of(p) == name; });
  if (found != kPrecisions.end()) return *found;
  std::array<std::string_view, kPrecisions.size()> names;
  std::transform(kPrecisions.begin(), kPrecisions.end(), names.begin(), [](Precision p) { return name_of(p); });
  fail("{}", unknown_name("precision", name, names));
}

void use_products_of(Precision precision, Device device) {
  using kernels::Float32Products;
  Float32Products products = Float32Products::full;
  if (precision == Precision::tf32x3) products = Float32Products::tf32x3;
  if (precision == Precision::tf32) products = Float32Products::tf32;
  require(products == Float32Products::full || device.type == DeviceType::cuda,
          "option precision {} is for a GPU's tensor cores, not for {}: use fp32 here", name_of(precision),
          name_of(device));
  kernels::set_float32_products(products);
}

Tensor input_for(OpKind kind, const Tensor& x, const Tensor& weight) {
  const bool mixed =
      is_half(x.dtype()) != is_half(weight.dtype()) && wide_dtype(x.dtype()) == wide_dtype(weight.dtype());
  return rule_of(kind) == Rule::half_operands && mixed ? cast(x, weight.dtype()) : x;
}

}  // namespace tandem::autograd
