// The families of code for the CPU, one row each.
#include "tandem/kernels/conv/families.h"

#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/conv/direct/direct.h"
#include "tandem/kernels/conv/winograd/choice.h"
#include "tandem/kernels/conv/winograd/winograd.h"
#if TANDEM_HAS_ONEDNN
#include "tandem/kernels/conv/onednn/onednn.h"
#endif

namespace tandem::kernels::cpu {
namespace {

bool always(const ConvGeometry& /*every*/) { return true; }

/// Those of the definition of convolution.
std::int64_t products_by_definition(const ConvGeometry& g, PassKind /*all*/) {
  return g.output_numel() * g.group_c() * g.r * g.s;
}

template <typename T>
constexpr ConvFamily<T> kDirect{.name = "direct",
                                .impl = ConvImpl::direct,
                                .is_ours = true,
                                .supports = always,
                                .pays = always,
                                .products = products_by_definition,
                                .forward = direct::forward<T>,
                                .backward_input = direct::backward_input<T>,
                                .backward_weight = direct::backward_weight<T>};
template <typename T>
constexpr ConvFamily<T> kWinograd{.name = "winograd",
                                  .impl = ConvImpl::winograd,
                                  .is_ours = true,
                                  .supports = winograd::supports,
                                  .pays = winograd::pays,
                                  .products = winograd::products,
                                  .forward = winograd::forward<T>,
                                  .backward_input = winograd::backward_input<T>,
                                  .backward_weight = winograd::backward_weight<T>};

}  // namespace

template <typename T>
std::span<const ConvFamily<T>> conv_families() {
#if TANDEM_HAS_ONEDNN
  if constexpr (is_float<T>) {
    static constexpr ConvFamily<float> kOneDnn{.name = "onednn",
                                               .impl = ConvImpl::onednn,
                                               .is_ours = false,
                                               .supports = onednn::supports,
                                               .pays = onednn::pays,
                                               .products = products_by_definition,
                                               .forward = onednn::forward,
                                               .backward_input = onednn::backward_input,
                                               .backward_weight = onednn::backward_weight};
    static constexpr ConvFamily<float> kAll[] = {kDirect<float>, kOneDnn, kWinograd<float>};
    return kAll;
  }
#endif
  static constexpr ConvFamily<T> kOurs[] = {kDirect<T>, kWinograd<T>};
  return kOurs;
}

template std::span<const ConvFamily<float>> conv_families();
template std::span<const ConvFamily<Half>> conv_families();
template std::span<const ConvFamily<BFloat16>> conv_families();

}  // namespace tandem::kernels::cpu
