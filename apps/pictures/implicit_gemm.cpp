// A convolution as a matrix product whose left matrix is never written.
#include "apps/pictures/picture.h"
#include "apps/pictures/shapes.h"
#include "tandem/autograd/functions.h"
#include "tandem/core/error.h"
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tandem::pictures {

namespace {

namespace plot = train::plot;
namespace gemm = kernels::cuda::implicit_gemm;
constexpr double kCell = 24.0, kCellHeight = 20.0, kMargin = 6.0;
constexpr std::int64_t kShown = 5;  // the output that is followed

/// One image of one channel, one 3x3 kernel, one zero around the image.
struct Example {
  Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3}, Layout::channels_last);
  Tensor w = Tensor::from<float>({0, 1, 0, 1, -4, 1, 0, 1, 0}, {1, 1, 3, 3}, Layout::channels_last);
  Tensor bias = Tensor::full({1}, 2.0);
  kernels::Conv2dOptions options{.padding = 1};
  kernels::ConvGeometry geometry = kernels::make_geometry(x.shape(), w.shape(), options);
};

/// What a row and a column of the matrix stand for: an output pixel, and a tap of the kernel.
struct Entry {
  std::int64_t p = 0, q = 0, r = 0, s = 0;
  std::int64_t h = 0, w = 0;  ///< the input pixel
  bool is_inside = false;
  int value = 0;
};

Entry entry_of(const Example& example, std::int64_t row, std::int64_t column) {
  const kernels::ConvGeometry& g = example.geometry;
  Entry entry{row / g.q, row % g.q, column / g.s, column % g.s};
  entry.h = entry.p * g.stride_h - g.pad_h + entry.r * g.dilation_h;
  entry.w = entry.q * g.stride_w - g.pad_w + entry.s * g.dilation_w;
  entry.is_inside = entry.h >= 0 && entry.h < g.h && entry.w >= 0 && entry.w < g.w;
  if (entry.is_inside) entry.value = static_cast<int>(example.x.data<float>()[entry.h * g.w + entry.w]);
  return entry;
}

struct Product {
  std::int64_t rows = 0, depth = 0;
  std::vector<int> weights, sums, outputs;  ///< sums: with the bias, before the ReLU
};

/// Throws Error unless the outputs are those of autograd::conv_bias_relu.
Product product_of(const Example& example) {
  const kernels::ConvGeometry& g = example.geometry;
  Product product{g.p * g.q, g.r * g.s, example.w.to_vector<int>(), {}, {}};
  for (std::int64_t row = 0; row < product.rows; ++row) {
    int sum = static_cast<int>(example.bias.item());
    for (std::int64_t column = 0; column < product.depth; ++column)
      sum += entry_of(example, row, column).value * product.weights[static_cast<std::size_t>(column)];
    product.sums.push_back(sum);
    product.outputs.push_back(std::max(sum, 0));
  }
  const Tensor y = autograd::conv_bias_relu(example.x, example.w, example.bias, example.options);
  require(y.to_vector<int>() == product.outputs, "the picture's convolution gives {}, conv_bias_relu {}",
          fmt::join(product.outputs, " "), fmt::join(y.to_vector<int>(), " "));
  return product;
}

void draw_image(plot::Canvas& canvas, const Example& example, double top) {
  const kernels::ConvGeometry& g = example.geometry;
  for (std::int64_t h = -g.pad_h; h < g.h + g.pad_h; ++h)
    for (std::int64_t w = -g.pad_w; w < g.w + g.pad_w; ++w) {
      const bool is_inside = h >= 0 && h < g.h && w >= 0 && w < g.w;
      const plot::Box box{kMargin + static_cast<double>(w + g.pad_w) * kCell,
                          top + static_cast<double>(h + g.pad_h) * kCellHeight, kCell, kCellHeight};
      const auto value = is_inside ? static_cast<int>(example.x.data<float>()[h * g.w + w]) : 0;
      draw_cell(canvas, box, fmt::format("{}", value), is_inside ? plot::series_colour(0) : plot::kMuted,
                is_inside ? 0.25 : 0.1);
    }
  const Entry first = entry_of(example, kShown, 0);
  draw_outline(canvas,
               {kMargin + static_cast<double>(first.w + g.pad_w) * kCell,
                top + static_cast<double>(first.h + g.pad_h) * kCellHeight, static_cast<double>(g.s) * kCell,
                static_cast<double>(g.r) * kCellHeight},
               {plot::kWrong, 2.0});
}

void draw_kernel(plot::Canvas& canvas, const Example& example, double left, double top) {
  const std::vector<int> weights = example.w.to_vector<int>();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t row = i / 3, column = i % 3;
    draw_cell(
        canvas,
        {left + static_cast<double>(column) * kCell, top + static_cast<double>(row) * kCellHeight, kCell, kCellHeight},
        fmt::format("{}", weights[i]), plot::series_colour(1));
  }
}

void draw_product(plot::Canvas& canvas, const Example& example, double top) {
  const Product product = product_of(example);
  const double depth = static_cast<double>(product.depth), weights_left = kMargin + depth * kCell + 18.0,
               sums_left = weights_left + kCell + 18.0, outputs_left = sums_left + 30.0 + 12.0;
  const auto height = [&](std::int64_t row) { return top + static_cast<double>(row) * kCellHeight; };
  for (std::int64_t row = 0; row < product.rows; ++row) {
    for (std::int64_t column = 0; column < product.depth; ++column) {
      const Entry entry = entry_of(example, row, column);
      draw_cell(canvas, {kMargin + static_cast<double>(column) * kCell, height(row), kCell, kCellHeight},
                fmt::format("{}", entry.value), entry.is_inside ? plot::series_colour(0) : plot::kMuted,
                entry.is_inside ? 0.25 : 0.1);
    }
    const auto index = static_cast<std::size_t>(row);
    draw_cell(canvas, {weights_left, height(row), kCell, kCellHeight}, fmt::format("{}", product.weights[index]),
              plot::series_colour(1));
    draw_cell(canvas, {sums_left, height(row), 30.0, kCellHeight}, fmt::format("{}", product.sums[index]),
              plot::series_colour(2));
    draw_cell(canvas, {outputs_left, height(row), 30.0, kCellHeight}, fmt::format("{}", product.outputs[index]),
              plot::series_colour(2), 0.5);
  }
  const double middle = height(product.rows / 2) + 14.0;
  draw_centred(canvas, weights_left - 9.0, middle, "×", 14.0);
  draw_centred(canvas, sums_left - 9.0, middle, "=", 14.0);
  draw_outline(canvas, {kMargin, height(kShown), depth * kCell, kCellHeight}, {plot::kWrong, 2.0});
  draw_outline(canvas, {outputs_left, height(kShown), 30.0, kCellHeight}, {plot::kWrong, 2.0});
  draw_note(canvas, sums_left - 8.0, top - 6.0, "+ bias");
  draw_note(canvas, outputs_left, top - 6.0, "ReLU");
  draw_note(canvas, weights_left - 18.0, height(product.rows) + 14.0, "weights");
  draw_note(canvas, kMargin, height(product.rows) + 14.0, "one row for each output pixel");
}

Picture matrix_picture() {
  return {"implicit-gemm-matrix", 344.0,
          "A 3x3 image with a border of zeros; each 3x3 patch is a row of a 9x9 matrix; times the column of weights it "
          "gives an output pixel",
          [](plot::Canvas& canvas) {
            const Example example;
            draw_heading(canvas, kMargin, 14.0, "image, zeros around it");
            draw_image(canvas, example, 20.0);
            draw_heading(canvas, 180.0, 14.0, "weights");
            draw_kernel(canvas, example, 180.0, 20.0);
            draw_note(canvas, 180.0, 100.0, fmt::format("bias {}", example.bias.item()));
            draw_product(canvas, example, 144.0);
          }};
}

/// The layer of which the tiles are shown: 3x3, 128 to 128 channels, 64 images of 16x16 pixels.
struct Tiling {
  kernels::ConvGeometry geometry = kernels::make_geometry({64, 128, 16, 16}, {128, 128, 3, 3}, {.padding = 1});
  std::int64_t rows = geometry.n * geometry.p * geometry.q, columns = geometry.k,
               depth = geometry.c * geometry.r * geometry.s;
  std::int64_t tile_rows = 0, tile_columns = 0, step = gemm::kStepDepth<std::uint16_t>;
  std::int64_t threads = 0, stages = 0, shared_bytes = 0;

  Tiling() {
    gemm::with_tile(gemm::choose_tile(rows, columns), [&](auto shape) {
      tile_rows = shape.kRows;
      tile_columns = shape.kColumns;
      threads = shape.kThreads;
      stages = shape.kStages;
      shared_bytes = shape.kSharedBytes;
    });
  }
  std::int64_t blocks() const { return gemm::tiles_along(rows, tile_rows) * gemm::tiles_along(columns, tile_columns); }
  std::int64_t steps() const { return gemm::tiles_along(depth, step); }
};

/// Not to scale in the rows.
void draw_tiles(plot::Canvas& canvas, const Tiling& tiling) {
  const double left = 30.0, top = 130.0, height = 150.0, tile_height = 50.0;
  const double depth = 216.0, step = depth / static_cast<double>(tiling.steps()), columns = 46.0;
  const plot::Box patches{left, top, depth, height}, outputs{left + depth + 26.0, top, columns, height},
      weights{left + depth + 26.0, 36.0, columns, 84.0};
  const double weight_step = weights.height / static_cast<double>(tiling.steps());
  for (std::int64_t i = 0; i < tiling.steps(); ++i) {
    const bool is_now = i == 2;
    canvas.rectangle(
        {patches.x + static_cast<double>(i) * step + 0.5, top + tile_height + 0.5, step - 1.0, tile_height - 1.0},
        {plot::series_colour(0), is_now ? 0.7 : 0.2});
    canvas.rectangle({weights.x, weights.y + static_cast<double>(i) * weight_step + 0.5, columns, weight_step - 1.0},
                     {plot::series_colour(1), is_now ? 0.8 : 0.2});
  }
  canvas.rectangle({outputs.x, top + tile_height, columns, tile_height}, {plot::series_colour(2), 0.6});
  for (const plot::Box& box : {patches, outputs, weights}) draw_outline(canvas, box, {plot::kMuted});
  draw_heading(canvas, left, 14.0,
               fmt::format("{} blocks, each with a tile of {} x {} outputs", tiling.blocks(), tiling.tile_rows,
                           tiling.tile_columns));
  draw_note(canvas, weights.x, 31.0, "weights");
  draw_note(canvas, left, 54.0, "dark: what the block multiplies");
  draw_note(canvas, left, 70.0, "in its third step");
  draw_note(canvas, left, 122.0, "patches, never written as a matrix");
  draw_note(canvas, outputs.x + columns + 4.0, top + 80.0, "outputs");
  draw_note(canvas, left, top + height + 16.0,
            fmt::format("depth {} = {} taps x {} channels, {} steps of {}", tiling.depth,
                        tiling.geometry.r * tiling.geometry.s, tiling.geometry.c, tiling.steps(), tiling.step));
  canvas.text({20.0, top + height / 2.0}, fmt::format("{} output pixels", tiling.rows),
              {.colour = plot::kMuted, .size = kSmallSize, .anchor = plot::Anchor::middle, .degrees = -90.0});
  draw_note(canvas, outputs.x, top + height + 32.0, fmt::format("{} channels", tiling.columns));
}

Picture tiles_picture() {
  return {"implicit-gemm-tiles", 320.0,
          "The three matrices of a layer cut into tiles: a block walks along the depth of one row of tiles in steps",
          [](plot::Canvas& canvas) { draw_tiles(canvas, Tiling()); }};
}

}  // namespace

Concept implicit_gemm_concept() {
  Concept page{"implicit-gemm", {matrix_picture(), tiles_picture()}, {}};
  const Example example;
  const Product product = product_of(example);
  for (std::int64_t column = 0; column < product.depth; ++column) {
    const Entry entry = entry_of(example, kShown, column);
    page.lines.push_back(fmt::format("row {} = output ({}, {}), column {} = tap ({}, {}): pixel ({}, {}){}, {} x {}",
                                     kShown, entry.p, entry.q, column, entry.r, entry.s, entry.h, entry.w,
                                     entry.is_inside ? "" : " outside", entry.value,
                                     product.weights[static_cast<std::size_t>(column)]));
  }
  page.lines.push_back(fmt::format("sum and bias {}, output {}", product.sums[kShown], product.outputs[kShown]));
  const Tiling tiling;
  page.lines.push_back(fmt::format("matrix {} x {}, {} numbers; image {} numbers", tiling.rows, tiling.depth,
                                   tiling.rows * tiling.depth, tiling.geometry.input_numel()));
  page.lines.push_back(fmt::format("tile {} x {}, {} blocks of {} threads", tiling.tile_rows, tiling.tile_columns,
                                   tiling.blocks(), tiling.threads));
  page.lines.push_back(fmt::format("{} steps of {}, {} KiB of shared memory for {} steps", tiling.steps(), tiling.step,
                                   tiling.shared_bytes / 1024, tiling.stages));
  return page;
}

}  // namespace tandem::pictures
