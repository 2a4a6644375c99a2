// What the convolutions of our networks read of their operands, against what the tiles allow that they are given at a
// large batch; and that nothing waits for a bank of shared memory. Batches are small here: what a tile reads is the
// same, and the tiles are those of the large batch.
#include "tandem/core/cuda/device_limits.h"
#include "tandem/kernels/conv/choice_cuda.h"
#include "tandem/kernels/conv/few_channels/few_channels.h"
#include "tandem/kernels/conv/few_channels/plan.h"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/stationary/plan.h"
#include "tandem/kernels/conv/stationary/stationary.h"
#include "tandem/simulator/settings.h"
#include "tests/lint/lint.h"

#include <algorithm>

namespace tandem::test {
namespace {

namespace cuda = kernels::cuda;
namespace gemm = cuda::implicit_gemm;
namespace few = cuda::few_channels;
namespace stationary = cuda::stationary;
using kernels::ConvGeometry;
using kernels::PassKind;

constexpr double kMostReads = 1.25, kMostWavefronts = 1.1;
constexpr std::int64_t kTrainingBatch = 512, kSector = 32;

/// What a kernel may read of one operand. `file` is where the code is that reads it; two operands may share it.
struct Operand {
  std::string name, file;
  std::int64_t elements;  // of two bytes
  bool overlaps = false;  // lanes of a warp may want the same pixel for different taps: that is read once
};

struct Allowance {
  std::string kernel;
  std::vector<Operand> operands;
  std::int64_t rest = 0;  // elements of biases, and masks
};

/// One axis of an image, with unit strides.
struct Axis {
  std::int64_t outputs, inputs, taps, pad;

  /// Pairs of an output and a tap that meet a pixel: the other taps meet padding, which nobody has to read.
  std::int64_t pairs() const {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < outputs; ++i)
      for (std::int64_t t = 0; t < taps; ++t) count += i + t >= pad && i + t - pad < inputs ? 1 : 0;
    return count;
  }

  /// Pixels that the taps of each tile's outputs meet, added up: a pixel counts once for every tile that needs it.
  std::int64_t halos(std::int64_t tile) const {
    std::int64_t count = 0;
    for (std::int64_t first = 0; first < outputs; first += tile) {
      const std::int64_t end = std::min(first + tile, outputs) + taps - 1 - pad;
      count += std::min(end, inputs) - std::max<std::int64_t>(first - pad, 0);
    }
    return count;
  }
};

Axis down(const ConvGeometry& g) { return {g.p, g.h, g.r, g.pad_h}; }
Axis across(const ConvGeometry& g) { return {g.q, g.w, g.s, g.pad_w}; }

/// A product of rows by columns in tiles of M x N: every tile reads its M rows and N columns along all of the depth,
/// so all rows are read once for each tile across, and all columns once for each tile down.
struct Tiles {
  std::int64_t down, across;

  Tiles(gemm::Tile tile, std::int64_t rows, std::int64_t columns) {
    gemm::with_tile(tile, [&]<typename Shape>(Shape) {
      down = gemm::tiles_along(rows, Shape::kRows);
      across = gemm::tiles_along(columns, Shape::kColumns);
    });
  }
};

/// Rows are output pixels, along their taps and channels; columns are output channels.
Allowance allowed_product(const ConvGeometry& g, gemm::Tile tile, const char* weights_file) {
  const Tiles tiles(tile, g.n * g.p * g.q, g.k);
  return {"implicit_gemm",
          {{"images", "patch_rows.cuh", tiles.across * g.n * down(g).pairs() * across(g).pairs() * g.c},
           {"weights", weights_file, tiles.down * g.weight_numel()}},
          tiles.down * g.k};
}

/// Rows are output channels, along pixels; columns are taps and input channels.
Allowance allowed_weight_product(const ConvGeometry& g, gemm::Tile tile) {
  const Tiles tiles(tile, g.k, g.r * g.s * g.c);
  return {"weights_in_parts",
          {{"gradient", "dense_operand.cuh", tiles.across * g.output_numel()},
           {"images", "patch_columns.cuh", tiles.down * g.n * down(g).pairs() * across(g).pairs() * g.c, true}}};
}

/// A tile reads its halo, whatever the taps, and the bias; a block its weights, once for all of its tiles.
Allowance allowed_stationary(const ConvGeometry& g, const stationary::Task& task) {
  const stationary::Plan plan(task);
  const std::int64_t tiles = stationary::tiles_of(task);
  const tandem::cuda::DeviceLimits limits = tandem::cuda::device_limits(kGpu);
  std::int64_t at_once = 0;
  stationary::with_shape(task.channels, task.columns, [&]<typename Shape>(Shape) {
    at_once = limits.multiprocessors *
              std::min<std::int64_t>(Shape::kBlocksAtOnce, limits.shared_bytes / plan.shared_bytes());
  });
  REQUIRE(plan.tile_columns >= task.columns);  // a block has all of them
  return {
      "stationary_conv",
      {{"images", "halo.cuh", g.n * down(g).halos(plan.tile_lines) * across(g).halos(stationary::kTileColumns) * g.c},
       {"weights", "weights.cuh", std::min(tiles, at_once) * g.weight_numel()}},
      tiles * g.k};
}

/// A tile reads its halo and its part of the gradient, whatever the taps.
Allowance allowed_stationary_weight(const ConvGeometry& g) {
  std::int64_t lines = 0;
  stationary::with_weight_shape(g.c, g.k, [&]<typename Shape>(Shape) { lines = Shape::kLines; });
  const std::int64_t pixels = g.n * down(g).halos(lines) * across(g).halos(stationary::kTileColumns);
  return {"stationary_conv_weight", {{"images and gradient", "halo.cuh", pixels * g.c + g.output_numel()}}};
}

std::int64_t few_channels_halos(const ConvGeometry& g) {
  const few::TileExtent tile = few::extent_of_tile(g);
  return g.n * down(g).halos(tile.lines) * across(g).halos(tile.columns) * g.c;
}

Allowance allowed_few_channels(const ConvGeometry& g) {
  const few::TileExtent tile = few::extent_of_tile(g);
  const auto tiles = static_cast<int>(g.n * gemm::tiles_along(g.p, tile.lines) * gemm::tiles_along(g.q, tile.columns));
  const std::int64_t blocks = gemm::tiles_along(tiles, few::forward_block_tiles(tiles));
  return {"few_channels_forward",
          {{"images", "halo.cuh", few_channels_halos(g)},
           {"weights and bias", "forward.cu", blocks * (g.weight_numel() + g.k)}}};
}

Allowance allowed_few_channels_weight(const ConvGeometry& g) {
  const std::int64_t mask = g.output_numel() / 16;  // a bit for each, read by the same code
  return {"few_channels_backward_weight",
          {{"images", "halo.cuh", few_channels_halos(g)},
           {"gradient and mask", "backward_weight.cu", g.output_numel() + mask}}};
}

/// Runs the kernel under the lint, and compares.
void check(const std::string& name, const Allowance& allowance, const std::function<void()>& work) {
  const TrafficOfKernels all = traffic_of(work);
  INFO(name << ", " << allowance.kernel);
  REQUIRE(all.contains(allowance.kernel));
  const KernelTraffic& traffic = all.at(allowance.kernel);
  double allowed_bytes = static_cast<double>(allowance.rest) * 2.0, bytes = 0.0;
  for (const auto& [file, sectors] : traffic.sectors_read)
    if (file != "add_parts.cuh" && file != "phases.cuh")
      bytes += static_cast<double>(sectors * kSector);  // no operands
  for (const Operand& operand : allowance.operands) {
    const double allowed = static_cast<double>(operand.elements) * 2.0;
    REQUIRE(traffic.sectors_read.contains(operand.file));
    const double read = static_cast<double>(traffic.sectors_read.at(operand.file) * kSector), ratio = read / allowed;
    allowed_bytes += allowed;
    INFO(operand.name << ": " << read << " bytes are read, the tile allows " << allowed);
    if (!operand.overlaps) CHECK(ratio >= 1.0);  // or else the allowance is wrong
    CHECK(ratio <= kMostReads);
  }
  const double ratio_of_all = bytes / allowed_bytes;
  INFO("all together: " << bytes << " bytes are read, the tile allows " << allowed_bytes);
  CHECK(ratio_of_all <= kMostReads);
  CHECK(traffic.shared.ratio() <= kMostWavefronts);
}

/// A layer of 3x3 taps, whose outputs are as large as its inputs.
struct Layer {
  std::string name;
  std::int64_t images;  // that fill a tile, or several blocks
  std::int64_t channels, outputs, side;
  bool pooled = false;
};

/// The tensors of a layer, and its passes by the kernels that a batch of kTrainingBatch gets.
class LayerPasses {
 public:
  explicit LayerPasses(const Layer& layer)
      : layer_(layer),
        g_(kernels::make_geometry({layer.images, layer.channels, layer.side, layer.side},
                                  {layer.outputs, layer.channels, 3, 3}, {.padding = {1, 1}})),
        large_(g_),
        x_(ones({g_.n, g_.c, g_.h, g_.w}, DType::f16)),
        w_(ones({g_.k, g_.c, g_.r, g_.s}, DType::f16)),
        y_(ones({g_.n, g_.k, g_.p, g_.q}, DType::f16)),
        bias_(ones({g_.k}, DType::f16)) {
    large_.n = kTrainingBatch;
  }

  void check_all() {
    layer_.pooled ? check_forward_pool() : check_forward();
    if (family().backward_input != nullptr) check_backward_input();
    check_backward_weight();
  }

  void check_forward_only() { layer_.pooled ? check_forward_pool() : check_forward(); }

 private:
  cuda::Operands operands() const { return cuda::operands_of(DType::f16, x_, w_, y_); }

  const cuda::ConvFamily& family() const {
    return *cuda::choose_family(large_, kernels::ConvImpl::fused, operands()).family;
  }

  bool is_stationary(PassKind pass) const {
    return cuda::family_for(pass, family(), large_, operands()).name == "stationary";
  }

  void check_forward() {
    const Tensor mask = ones(kernels::conv_mask_shape(y_.shape()), DType::u8);
    const cuda::Epilogue epilogue{bias_, true, Out(mask)};
    const std::string name = layer_.name + " forward";
    if (family().name == "few_channels")
      return check(name, allowed_few_channels(g_), [&] { few::forward(g_, x_, w_, epilogue, Out(y_)); });
    if (is_stationary(PassKind::forward))
      return check(name, allowed_stationary(g_, {g_, PassKind::forward}),
                   [&] { stationary::forward(g_, x_, w_, epilogue, Out(y_)); });
    const gemm::Tile tile = gemm::choose_tile(kTrainingBatch * g_.p * g_.q, g_.k);
    check(name, allowed_product(g_, tile, "dense_operand.cuh"),
          [&] { gemm::forward_by(tile, g_, x_, w_, epilogue, Out(y_)); });
  }

  void check_forward_pool() {
    const Tensor pooled = ones({g_.n, g_.k, g_.p / 2, g_.q / 2}, DType::f16), places = ones(pooled.shape(), DType::u8);
    const cuda::PooledOutput to{Out(pooled), Out(places),
                                Out(ones(kernels::conv_mask_shape(pooled.shape()), DType::u8))};
    const std::string name = layer_.name + " forward, pooled";
    if (is_stationary(PassKind::forward_pool))
      return check(name, allowed_stationary(g_, {g_, PassKind::forward_pool}),
                   [&] { stationary::forward_pool(g_, x_, w_, bias_, to); });
    const gemm::Tile tile = gemm::choose_tile(kTrainingBatch * g_.p * g_.q, g_.k);
    check(name, allowed_product(g_, tile, "dense_operand.cuh"),
          [&] { gemm::forward_pool_by(tile, g_, x_, w_, bias_, to); });
  }

  void check_backward_input() {
    const kernels::LayerBelow below{ones(kernels::conv_mask_shape(x_.shape()), DType::u8),
                                    Out(ones({g_.c}, DType::f16))};
    const ConvGeometry as_forward = kernels::backward_input_as_forward(g_);
    const std::string name = layer_.name + " gradient of x";
    const auto with_mask = [&](Allowance allowance) {
      allowance.rest = g_.input_numel() / 16;  // the mask of the layer below instead of a bias
      return allowance;
    };
    if (is_stationary(PassKind::backward_input))
      return check(name, with_mask(allowed_stationary(as_forward, {g_, PassKind::backward_input})),
                   [&] { stationary::backward_input_below(g_, y_, {}, w_, below, Out(x_)); });
    const gemm::Tile tile = gemm::choose_tile(kTrainingBatch * g_.h * g_.w, g_.c);
    check(name, with_mask(allowed_product(as_forward, tile, "transposed_weights.cuh")),
          [&] { gemm::backward_input_by(tile, g_, y_, {}, w_, below, Out(x_)); });
  }

  void check_backward_weight() {
    const std::string name = layer_.name + " gradient of w";
    const Tensor grad_w = ones(w_.shape(), DType::f16);
    if (family().name == "few_channels") {
      const Tensor mask = ones(kernels::conv_mask_shape(y_.shape()), DType::u8);
      return check(name, allowed_few_channels_weight(g_),
                   [&] { few::backward_weight_and_bias(g_, x_, y_, mask, Out(grad_w), Out(bias_)); });
    }
    if (is_stationary(PassKind::backward_weight))
      return check(name, allowed_stationary_weight(g_),
                   [&] { stationary::backward_weight(g_, x_, y_, {}, Out(grad_w)); });
    constexpr std::int64_t kStep = gemm::kStepDepth<Half>;
    const std::int64_t columns = g_.r * g_.s * g_.c, pixels = g_.n * g_.p * g_.q;
    gemm::WeightPlan plan = gemm::plan_weights(g_.k, columns, kTrainingBatch * g_.p * g_.q, kStep);
    plan.parts = 2;
    plan.part_steps = gemm::tiles_along(pixels, 2 * kStep);
    check(name, allowed_weight_product(g_, plan.tile),
          [&] { gemm::backward_weight_by(plan, g_, x_, y_, {}, Out(grad_w)); });
  }

  Layer layer_;
  ConvGeometry g_, large_;
  Tensor x_, w_, y_, bias_;
};

}  // namespace

TEST_CASE("convolutions read of each operand what their tiles allow", "[operands]") {
  simulator::settings().lint = false;
  LayerPasses({"vgg_lite 1", 2, 3, 32, 32}).check_all();
  LayerPasses({"vgg_lite 2", 2, 32, 64, 32, true}).check_all();
  LayerPasses({"vgg_lite 3", 1, 64, 128, 16}).check_all();
  LayerPasses({"vgg_lite 4", 1, 128, 256, 16, true}).check_all();
  LayerPasses({"vgg_lite 5", 2, 256, 256, 8}).check_all();
  LayerPasses({"vgg_lite 6", 2, 256, 256, 8, true}).check_forward_only();  // its gradients are those of layer 5
  LayerPasses({"mnist_cnn 1", 2, 1, 32, 28}).check_all();
  LayerPasses({"mnist_cnn 2", 2, 32, 32, 28}).check_all();
}

}  // namespace tandem::test
