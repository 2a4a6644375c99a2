// The steps of the convolution ladder as contestants.
#include "kernels/conv/ladder/ladder.h"
#include "core/device_query.h"

#include "apps/conv_bench/contestants.h"

namespace tandem::conv_bench {

namespace {

namespace cuda = kernels::cuda;

struct Passes {
  decltype(&cuda::naive::forward) forward;
  decltype(&cuda::naive::backward_input) backward_input;
  decltype(&cuda::naive::backward_weight) backward_weight;
  bool take_mask;  // else the gradient is masked in a pass of its own, once for both
};

/// Unused in builds without CUDA.
[[maybe_unused]] Contestant step(std::string name, std::string description, const Passes& passes) {
  return {.name = "ladder-" + std::move(name),
          .description = std::move(description),
          .obstacle = [](Device device) -> std::string {
            return device.type == DeviceType::cuda ? "" : "needs a GPU: give --device cuda";
          },
          .forward =
              [passes](Workload& o) {
                passes.forward(o.geometry(), o.x, o.w, {.bias = o.bias, .relu = true, .mask = o.mask}, o.y);
              },
          .backward =
              [passes](Workload& o) {
                if (!passes.take_mask) cuda::apply_mask(o.grad_y, o.mask, o.grad_z);
                const Tensor& gradient = passes.take_mask ? o.grad_y : o.grad_z;
                const Tensor mask = passes.take_mask ? o.mask : Tensor();
                if (o.grad_x.defined()) passes.backward_input(o.geometry(), gradient, mask, o.w, o.grad_x);
                if (o.grad_w.defined()) passes.backward_weight(o.geometry(), o.x, gradient, mask, o.grad_w);
                if (o.grad_bias.defined()) cuda::conv_backward_bias(gradient, mask, o.grad_bias);
              }};
}

}  // namespace

std::vector<Contestant> ladder_contestants() {
  if constexpr (!kHasCuda) {
    return {};
  } else {
    using namespace cuda;
    return {
        step("naive", "a thread per result", {naive::forward, naive::backward_input, naive::backward_weight, true}),
        step("shared-tile", "blocks share what they load",
             {ladder::shared_tile::forward, ladder::shared_tile::backward_input, ladder::shared_tile::backward_weight,
              true}),
        step("register-tile", "threads keep 4x4 sums",
             {tile::forward, tile::backward_input, tile::backward_weight, true}),
        step("tensor-cores", "warps multiply 16x8x16, then wait",
             {ladder::tensor_cores::forward, ladder::tensor_cores::backward_input,
              ladder::tensor_cores::backward_weight, false}),
        step("pipelined", "later copies are under way",
             {implicit_gemm::forward, implicit_gemm::backward_input, implicit_gemm::backward_weight, false}),
        step("halo", "images and weights are fetched once",
             {stationary::forward, stationary::backward_input, stationary::backward_weight, false}),
    };
  }
}

}  // namespace tandem::conv_bench
