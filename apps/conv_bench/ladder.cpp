// The steps of the convolution ladder as contestants.
#include "tandem/kernels/conv/ladder/ladder.h"
#include "tandem/core/device_query.h"
#include "tandem/core/has_cuda.h"
#include "tandem/kernels/conv/families.h"

#include "apps/conv_bench/contestants.h"

namespace tandem::conv_bench {

namespace {

namespace cuda = kernels::cuda;

struct Passes {
  cuda::ForwardPass* forward;
  cuda::BackwardInputPass* backward_input;
  cuda::BackwardWeightPass* backward_weight;
  bool takes_mask;  // else the gradient is masked in a pass of its own, once for both
};

// Templates, as builds without CUDA have not got what they call: there nothing is made of them.

template <typename = void>
Passes passes_of(std::string_view name) {
  const cuda::ConvFamily& family = cuda::conv_family(name);
  return {family.forward, family.backward_input, family.backward_weight, family.takes_mask};
}

template <typename = void>
Contestant step(std::string_view name, std::string_view description, const Passes& passes) {
  return {.name = fmt::format("ladder-{}", name),
          .description = std::string(description),
          .obstacle = [](Device device) -> std::string {
            return device.type == DeviceType::cuda ? "" : "needs a GPU: give --device cuda";
          },
          .forward =
              [passes](Workload& o) {
                passes.forward(o.geometry(), o.x, o.w, {.bias = o.bias, .relu = true, .mask = Out(o.mask)}, Out(o.y));
              },
          .backward =
              [passes](Workload& o) {
                if (!passes.takes_mask) cuda::apply_mask(o.grad_y, o.mask, Out(o.grad_z));
                const Tensor& gradient = passes.takes_mask ? o.grad_y : o.grad_z;
                const Tensor mask = passes.takes_mask ? o.mask : Tensor();
                if (o.grad_x.defined()) passes.backward_input(o.geometry(), gradient, mask, o.w, Out(o.grad_x));
                if (o.grad_w.defined()) passes.backward_weight(o.geometry(), o.x, gradient, mask, Out(o.grad_w));
                if (o.grad_bias.defined()) cuda::conv_backward_bias(gradient, mask, Out(o.grad_bias));
              }};
}

}  // namespace

std::vector<Contestant> ladder_contestants() {
  if constexpr (!kHasCuda) {
    return {};
  } else {
    using namespace cuda;
    return {
        step("naive", "a thread per result", passes_of("naive")),
        step("shared-tile", "blocks share what they load",
             {ladder::shared_tile::forward, ladder::shared_tile::backward_input, ladder::shared_tile::backward_weight,
              true}),
        step("register-tile", "threads keep 4x4 sums", passes_of("tile")),
        step("tensor-cores", "warps multiply 16x8x16, then wait",
             {ladder::tensor_cores::forward, ladder::tensor_cores::backward_input,
              ladder::tensor_cores::backward_weight, false}),
        step("pipelined", "later copies are under way", passes_of("implicit_gemm")),
        step("halo", "images and weights are fetched once", passes_of("stationary")),
    };
  }
}

}  // namespace tandem::conv_bench
