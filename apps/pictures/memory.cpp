// How a tensor lies in memory: views of one storage, and two layouts of one image.
#include "apps/pictures/picture.h"
#include "apps/pictures/shapes.h"
#include "tandem/core/tensor.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tandem::pictures {

namespace {

namespace plot = train::plot;
constexpr double kCell = 28.0, kCellHeight = 22.0, kMargin = 8.0;

struct View {
  std::string code;
  Tensor tensor;
};

/// Of the matrix [[1, 2, 3], [4, 5, 6]].
std::vector<View> views_of(const Tensor& m) {
  return {{"m", m},
          {"m.transpose(0, 1)", m.transpose(0, 1)},
          {"m.narrow(1, 1, 2)", m.narrow(1, 1, 2)},
          {"m.select(1, 2)", m.select(1, 2)},
          {"m.view({6})", m.view({6})},
          {"m.narrow(0, 1, 1).expand({2, 3})", m.narrow(0, 1, 1).expand({2, 3})}};
}

std::string layout_of(const Tensor& tensor) {
  return fmt::format("shape {}  strides {}  offset {}", to_string(tensor.shape()), to_string(tensor.strides()),
                     tensor.offset());
}

/// Where in the storage the element of a tensor of one or two dimensions is.
std::int64_t place_of(const Tensor& tensor, std::int64_t row, std::int64_t column) {
  if (tensor.rank() == 1) return tensor.offset() + column * tensor.stride(0);
  return tensor.offset() + row * tensor.stride(0) + column * tensor.stride(1);
}

double height_of(const View& view) {
  const double rows = view.tensor.rank() == 1 ? 1.0 : static_cast<double>(view.tensor.size(0));
  return 38.0 + rows * kCellHeight + 14.0;
}

void draw_view(plot::Canvas& canvas, const View& view, double left, double top) {
  const Tensor& tensor = view.tensor;
  draw_heading(canvas, left, top + 14.0, view.code);
  draw_note(canvas, left, top + 30.0, layout_of(tensor));
  const std::int64_t rows = tensor.rank() == 1 ? 1 : tensor.size(0), columns = tensor.size(-1);
  const auto* const storage = static_cast<const float*>(tensor.storage()->data());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t place = place_of(tensor, row, column);
      const plot::Box box{left + static_cast<double>(column) * kCell,
                          top + 38.0 + static_cast<double>(row) * kCellHeight, kCell, kCellHeight};
      draw_cell(canvas, box, fmt::format("{}", storage[place]), plot::series_colour(static_cast<std::size_t>(place)));
    }
}

void draw_storage(plot::Canvas& canvas, const Tensor& m, double top) {
  draw_heading(canvas, kMargin, top + 14.0, fmt::format("the storage: {} bytes", m.storage()->bytes()));
  const auto* const storage = static_cast<const float*>(m.storage()->data());
  for (std::int64_t i = 0; i < m.numel(); ++i) {
    const plot::Box box{kMargin + static_cast<double>(i) * 46.0, top + 22.0, 46.0, kCellHeight};
    draw_cell(canvas, box, fmt::format("{}", storage[i]), plot::series_colour(static_cast<std::size_t>(i)), 0.45);
    canvas.text({box.x + 23.0, top + 58.0}, fmt::format("{}", i),
                {.colour = plot::kMuted, .size = kSmallSize, .anchor = plot::Anchor::middle});
  }
  draw_note(canvas, kMargin + 6.0 * 46.0 + 6.0, top + 58.0, "place");
}

Picture views_picture() {
  const Tensor m = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const std::vector<View> views = views_of(m);
  std::vector<double> tops{74.0};  // of each row of two views
  for (std::size_t i = 0; i < views.size(); i += 2)
    tops.push_back(tops.back() + std::max(height_of(views[i]), height_of(views[i + 1])));
  return {"memory-views", tops.back(),
          "Six tensors that share one storage of six numbers, with their shapes, strides and offsets",
          [=](plot::Canvas& canvas) {
            draw_storage(canvas, m, 0.0);
            for (std::size_t i = 0; i < views.size(); ++i)
              draw_view(canvas, views[i], i % 2 == 0 ? kMargin : kWidth / 2.0, tops[i / 2]);
          }};
}

/// Pixel i of channel c is 10 c + i.
Tensor small_image(Layout layout) {
  return Tensor::from<float>({0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, {1, 3, 2, 2}, layout);
}

constexpr std::array kLayouts{std::pair{Layout::row_major, "row_major"},
                              std::pair{Layout::channels_last, "channels_last"}};

std::vector<int> numbers_in_memory(const Tensor& tensor) {
  const float* const data = tensor.data<float>();
  return {data, data + tensor.numel()};
}

void draw_planes(plot::Canvas& canvas, double top) {
  const std::vector<int> numbers = small_image(Layout::row_major).to_vector<int>();
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const double x = kMargin + static_cast<double>(channel) * 92.0;
    draw_note(canvas, x, top + 12.0, fmt::format("channel {}", channel));
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t row = i / 2, column = i % 2;
      draw_cell(canvas,
                {x + static_cast<double>(column) * kCell, top + 18.0 + static_cast<double>(row) * kCellHeight, kCell,
                 kCellHeight},
                fmt::format("{}", numbers[4 * channel + i]), plot::series_colour(channel));
    }
  }
}

Picture layouts_picture() {
  return {"memory-layouts", 226.0,
          "An image of three channels and two by two pixels, and its twelve numbers in memory: row-major, channel by "
          "channel; "
          "channels-last, pixel by pixel",
          [](plot::Canvas& canvas) {
            draw_heading(canvas, kMargin, 14.0, "an image, shape [1, 3, 2, 2]");
            draw_planes(canvas, 18.0);
            double top = 92.0;
            for (const auto& [layout, name] : kLayouts) {
              const Tensor image = small_image(layout);
              draw_heading(canvas, kMargin, top + 14.0, name);
              draw_note(canvas, kMargin, top + 30.0, fmt::format("strides {}", to_string(image.strides())));
              const std::vector<int> numbers = numbers_in_memory(image);
              for (std::size_t i = 0; i < numbers.size(); ++i)
                draw_cell(canvas, {kMargin + static_cast<double>(i) * 30.0, top + 36.0, 30.0, kCellHeight},
                          fmt::format("{}", numbers[i]),
                          plot::series_colour(static_cast<std::size_t>(numbers[i] / 10)));
              top += 66.0;
            }
          }};
}

}  // namespace

Concept memory_concept() {
  Concept page{"memory", {views_picture(), layouts_picture()}, {}};
  const Tensor m = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  for (const View& view : views_of(m))
    page.lines.push_back(fmt::format("{:<33} {}", view.code, layout_of(view.tensor)));
  for (const auto& [layout, name] : kLayouts) {
    const Tensor image = small_image(layout);
    page.lines.push_back(fmt::format("{:<13} strides {:<13} in memory {}", name, to_string(image.strides()),
                                     fmt::join(numbers_in_memory(image), " ")));
  }
  return page;
}

}  // namespace tandem::pictures
