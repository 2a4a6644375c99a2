// Element-wise kernels on halves move 16 bytes at once: a warp's request is for 256 elements of a tensor.
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/conv/implementations.h"
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/scale.h"
#include "tandem/kernels/optimizer/all_finite.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/reduce/add_rows.h"
#include "tandem/simulator/settings.h"
#include "tests/lint/lint.h"

namespace tandem::test {
namespace {

constexpr std::int64_t kElementsOfRequest = 32 * 16 / 2;

struct Pass {
  std::string kernel;
  std::int64_t requests;     // for elements: one for every 256 of each tensor, of masks and positions too
  std::int64_t bookkeeping;  // for where tensors are, and for results that are single numbers
  std::function<void()> work;
};

}  // namespace

TEST_CASE("element-wise kernels ask for 16 bytes of halves at once", "[lint]") {
  simulator::settings().lint = false;  // while inputs are made
  const Tensor a = ones({4, 64, 16, 16}, DType::f16), b = ones(a.shape(), DType::f16),
               out = ones(a.shape(), DType::f16);
  const Tensor mask = ones(kernels::conv_mask_shape(a.shape()), DType::u8);
  const Tensor pooled = ones({4, 64, 8, 8}, DType::f16), positions = ones(pooled.shape(), DType::u8);
  const Tensor rows = ones({4, a.numel() / 4}, DType::f16), row = ones({a.numel() / 4}, DType::f16);
  const std::vector<Tensor> list{a};
  const std::int64_t n = a.numel() / kElementsOfRequest, chunks = a.numel() / 4096;
  constexpr std::int64_t kOfChunk = 44;  // eight warps look for their chunk in the table, and sum up
  const kernels::Pool2dOptions windows{.kernel = {2, 2}, .stride = {2, 2}};
  const std::vector<Pass> passes{
      {"write_bits", 2 * n, 0, [&] { kernels::cuda::sign_mask(a, Out(mask)); }},
      {"keep_where_set", 3 * n, 0, [&] { kernels::cuda::apply_mask(a, mask, Out(out)); }},
      {"map_dense", 2 * n, 0, [&] { kernels::relu_forward(a, Out(out)); }},
      {"map_dense", 3 * n, 0, [&] { kernels::gelu_backward(a, b, Out(out)); }},
      {"map_dense", 3 * n, 0, [&] { kernels::add(a, b, Out(out)); }},
      {"map_dense", 3 * n, 0, [&] { kernels::mul(a, b, Out(out)); }},
      {"map_dense", 2 * n, 0, [&] { kernels::scale(a, 2.0, Out(out)); }},
      {"drop_dense", 2 * n, 0, [&] { kernels::dropout_forward(a, 0.5, {.seed = 1}, Out(out)); }},
      {"max_pool", n + 2 * n / 4, 0, [&] { kernels::max_pool2d_forward(a, windows, Out(pooled), Out(positions)); }},
      {"max_pool_tile_gradient", n + 2 * n / 4, 0,
       [&] { kernels::max_pool2d_backward(pooled, positions, windows, Out(out), {}); }},
      {"add_row_vectors", n + n / 4, 0, [&] { kernels::add_rows(rows, 2.0, Out(row)); }},
      {"scale_chunks", 2 * n, chunks * kOfChunk, [&] { kernels::scale_all(outs_of(list), 1.0); }},
      {"find_non_finite", n, chunks * kOfChunk, [&] { kernels::all_finite(list); }},
      {"chunk_squares", n, chunks * kOfChunk, [&] { kernels::squared_norm(list); }},
  };
  for (const Pass& pass : passes) {
    const TrafficOfKernels traffic = traffic_of(pass.work);
    REQUIRE(traffic.contains(pass.kernel));
    const Traffic& moved = traffic.at(pass.kernel).global;
    INFO(pass.kernel << ", " << moved.requests << " requests, " << moved.moved << " sectors");
    CHECK(moved.requests <= static_cast<std::uint64_t>(pass.requests + pass.bookkeeping));
  }
}

}  // namespace tandem::test
