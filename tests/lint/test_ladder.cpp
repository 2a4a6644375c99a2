// What the steps of the convolution ladder buy, in memory requests: the numbers of docs/kernels/conv.md.
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/ladder/ladder.h"
#include "tandem/kernels/conv/naive/naive.h"
#include "tandem/kernels/conv/stationary/stationary.h"
#include "tandem/kernels/conv/tile/tile.h"
#include "tandem/simulator/settings.h"
#include "tests/lint/lint.h"
#include "tests/support/catch.h"

namespace tandem::test {
namespace {

using kernels::ConvGeometry;

struct Layer {
  ConvGeometry g;
  Tensor x, w, bias, y;

  Layer(const Shape& shape, std::int64_t outputs)
      : g(kernels::make_geometry(shape, {outputs, shape[1], 3, 3}, {.padding = {1, 1}})),
        x(ones(shape, DType::f16)),
        w(ones({outputs, shape[1], 3, 3}, DType::f16)),
        bias(ones({outputs}, DType::f16)),
        y(ones({g.n, g.k, g.p, g.q}, DType::f16)) {}
};

/// Of the kernel named, which must run.
KernelTraffic traffic(const std::string& kernel, const std::function<void()>& work) {
  const TrafficOfKernels all = traffic_of(work);
  INFO(kernel);
  REQUIRE(all.contains(kernel));
  return all.at(kernel);
}

}  // namespace

TEST_CASE("each step of the convolution ladder moves less", "[lint][ladder]") {
  namespace cuda = kernels::cuda;
  simulator::settings().lint = false;
  const Layer layer({2, 64, 16, 16}, 64);
  const auto run = [&](const std::string& kernel, decltype(&cuda::naive::forward) forward) {
    return traffic(kernel,
                   [&] { forward(layer.g, layer.x, layer.w, {.bias = layer.bias, .relu = true}, Out(layer.y)); });
  };
  const KernelTraffic naive = run("forward_naive", cuda::naive::forward);
  const KernelTraffic shared_tile = run("shared_tile_product", cuda::ladder::shared_tile::forward);
  const KernelTraffic register_tile = run("tile_product", cuda::tile::forward);
  const KernelTraffic tensor_cores = run("tensor_cores_product", cuda::ladder::tensor_cores::forward);
  const KernelTraffic pipelined = run("implicit_gemm", cuda::implicit_gemm::forward);
  const KernelTraffic halo = run("stationary_conv", cuda::stationary::forward);

  CHECK(naive.shared.requests == 0);
  CHECK(shared_tile.global.requests * 4 < naive.global.requests);
  CHECK(register_tile.global.moved * 1.5 < shared_tile.global.moved);
  CHECK(register_tile.shared.moved * 2 < shared_tile.shared.moved);
  CHECK(tensor_cores.global.moved < register_tile.global.moved);
  CHECK(tensor_cores.shared.moved * 5 < register_tile.shared.moved);
  // This step moves the same; it waits less, which these counts do not show.
  CHECK(pipelined.shared.moved == tensor_cores.shared.moved);
  CHECK(pipelined.global.moved == tensor_cores.global.moved);
  CHECK(halo.global.moved * 2 < pipelined.global.moved);
  CHECK(halo.shared.moved < pipelined.shared.moved);
}

TEST_CASE("each step of the ladder's gradients moves less", "[lint][ladder-input]") {
  namespace cuda = kernels::cuda;
  simulator::settings().lint = false;
  const Layer layer({2, 64, 16, 16}, 64);
  const auto run = [&](const std::string& kernel, decltype(&cuda::naive::backward_input) backward) {
    return traffic(kernel, [&] { backward(layer.g, layer.y, {}, layer.w, Out(layer.x)); });
  };
  const KernelTraffic naive = run("backward_input_naive", cuda::naive::backward_input);
  const KernelTraffic shared_tile = run("shared_tile_product", cuda::ladder::shared_tile::backward_input);
  const KernelTraffic register_tile = run("tile_product", cuda::tile::backward_input);
  const KernelTraffic tensor_cores = run("tensor_cores_product", cuda::ladder::tensor_cores::backward_input);
  const KernelTraffic pipelined = run("implicit_gemm", cuda::implicit_gemm::backward_input);
  const KernelTraffic halo = run("stationary_conv", cuda::stationary::backward_input);

  CHECK(shared_tile.global.requests * 4 < naive.global.requests);
  CHECK(register_tile.global.moved * 1.5 < shared_tile.global.moved);
  CHECK(register_tile.shared.moved * 2 < shared_tile.shared.moved);
  CHECK(tensor_cores.global.moved < register_tile.global.moved);
  CHECK(tensor_cores.shared.moved * 5 < register_tile.shared.moved);
  CHECK(pipelined.shared.moved == tensor_cores.shared.moved);
  CHECK(halo.global.moved * 2 < pipelined.global.moved);
  CHECK(halo.shared.moved < pipelined.shared.moved);
}

TEST_CASE("each step of the ladder's weight gradients moves less", "[lint][ladder-weight]") {
  namespace cuda = kernels::cuda;
  simulator::settings().lint = false;
  const Layer layer({2, 64, 16, 16}, 64);
  const Tensor grad_w = ones(layer.w.shape(), DType::f16);
  const auto run = [&](const std::string& kernel, decltype(&cuda::naive::backward_weight) backward) {
    return traffic(kernel, [&] { backward(layer.g, layer.x, layer.y, {}, Out(grad_w)); });
  };
  const KernelTraffic naive = run("backward_weight_naive", cuda::naive::backward_weight);
  const KernelTraffic shared_tile = run("shared_tile_product", cuda::ladder::shared_tile::backward_weight);
  const KernelTraffic register_tile = run("tile_product", cuda::tile::backward_weight);
  const KernelTraffic tensor_cores = run("tensor_cores_product", cuda::ladder::tensor_cores::backward_weight);
  const KernelTraffic pipelined = run("weights_in_parts", cuda::implicit_gemm::backward_weight);
  const KernelTraffic halo = run("stationary_conv_weight", cuda::stationary::backward_weight);

  CHECK(shared_tile.global.requests * 4 < naive.global.requests);
  CHECK(register_tile.global.moved < shared_tile.global.moved);
  CHECK(register_tile.shared.moved * 2 < shared_tile.shared.moved);
  CHECK(tensor_cores.global.moved < register_tile.global.moved);
  CHECK(tensor_cores.shared.moved * 5 < register_tile.shared.moved);
  // In parts, whose sums are written in f32 and added up, it keeps more multiprocessors busy, and moves more.
  CHECK(pipelined.shared.moved < tensor_cores.shared.moved);
  CHECK(halo.global.moved < pipelined.global.moved);
  CHECK(halo.shared.moved < pipelined.shared.moved);
}

}  // namespace tandem::test
