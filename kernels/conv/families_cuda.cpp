// The families of kernels for a GPU, one row each.
#include "tandem/kernels/conv/families.h"

#include "tandem/kernels/conv/few_channels/few_channels.h"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/naive/naive.h"
#include "tandem/kernels/conv/stationary/stationary.h"
#include "tandem/kernels/conv/tile/tile.h"
#include "tandem/kernels/conv/warpgroup/warpgroup.h"

namespace tandem::kernels::cuda {

std::span<const ConvFamily> conv_families() {
  static constexpr ConvFamily kFamilies[] = {
      {.name = "naive",
       .obstacle = naive::obstacle,
       .forward = naive::forward,
       .backward_input = naive::backward_input,
       .backward_weight = naive::backward_weight,
       .takes_mask = true},
      {.name = "tile",
       .obstacle = tile::obstacle,
       .forward = tile::forward,
       .backward_input = tile::backward_input,
       .backward_weight = tile::backward_weight,
       .takes_mask = true,
       .is_slower_candidate = true},
      {.name = "few_channels",
       .obstacle = few_channels::obstacle,
       .forward = few_channels::forward,
       .backward_input = nullptr,  // images with few channels are the data
       .backward_weight = few_channels::backward_weight,
       .backward_weight_and_bias = few_channels::backward_weight_and_bias,
       .takes_mask = true,
       .has_tensor_cores = true,
       .for_first_layers = true},
      {.name = "implicit_gemm",
       .obstacle = implicit_gemm::obstacle,
       .forward = implicit_gemm::forward,
       .backward_input = implicit_gemm::backward_input,
       .backward_weight = implicit_gemm::backward_weight,
       .forward_pool = implicit_gemm::forward_pool,
       .forward_moments = implicit_gemm::forward_moments,
       .moment_parts = implicit_gemm::moment_parts,
       .forward_pool_moments = implicit_gemm::forward_pool_moments,
       .pool_moment_parts = implicit_gemm::pool_moment_parts,
       .backward_input_below = implicit_gemm::backward_input_below,
       .has_tensor_cores = true,
       .is_slower_candidate = true},
      {.name = "stationary",
       .obstacle = stationary::obstacle,
       .forward = stationary::forward,
       .backward_input = stationary::backward_input,
       .backward_weight = stationary::backward_weight,
       .forward_pool = stationary::forward_pool,
       .forward_moments = stationary::forward_moments,
       .moment_parts = stationary::moment_parts,
       .forward_pool_moments = stationary::forward_pool_moments,
       .pool_moment_parts = stationary::pool_moment_parts,
       .backward_input_below = stationary::backward_input_below,
       .pays = stationary::pays,
       .beats_library = stationary::pays,  // in four such layers it was as fast as cuDNN or faster
       .has_tensor_cores = true,
       .fuses_beside_library = true},  // both wait for what they fetch where weights are few enough to stay
      {.name = "warpgroup",
       .obstacle = warpgroup::obstacle,
       .forward = warpgroup::forward,
       .backward_input = warpgroup::backward_input,
       .backward_weight = warpgroup::backward_weight,
       .backward_input_below = warpgroup::backward_input_below,
       .stands_for = ConvImpl::warpgroup,
       .pays = warpgroup::pays,
       .beats_library = warpgroup::beats_library,
       .has_tensor_cores = true,
       .has_library_rate = true},
  };
  return kFamilies;
}

const ConvFamily& conv_family(std::string_view name) {
  for (const ConvFamily& family : conv_families())
    if (family.name == name) return family;
  fail("there is no family of convolution kernels named '{}'", name);
}

}  // namespace tandem::kernels::cuda
