// Cells of equal shade are one shape, so that large tables stay small files.
#include "tandem/train/plot/heat_map.h"

#include "tandem/core/error.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/text_width.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem::train::plot {
namespace {

constexpr std::size_t kShades = 20;
constexpr double kLeastForNames = 9.0, kLeastForCounts = 17.0;
/// From here on a shade is full to its text: both kinds of text then have a contrast of 4.5:1 on all shades.
constexpr double kFullOpacity = 0.63;

/// Of a count among those of its row: from 1 to kShades.
std::size_t shade_of(std::int64_t count, double sum) {
  return std::min(static_cast<std::size_t>(std::ceil(static_cast<double>(count) / sum * kShades)), kShades);
}

/// Errors are few: their shades begin darker.
double opacity_of(std::size_t shade, bool is_right) {
  const double share = static_cast<double>(shade) / kShades;
  return is_right ? 0.06 + 0.84 * share : std::min(0.90, 0.10 + 1.4 * share);
}

double sum_of(const std::vector<std::int64_t>& counts) {
  double sum = 0.0;
  for (const std::int64_t count : counts) sum += static_cast<double>(count);
  return sum;
}

/// Where the cells are.
struct Layout {
  double left, top, cell, text;
};

Layout layout_of(const HeatMap& map, double width) {
  const auto n = static_cast<double>(std::max<std::size_t>(1, map.names.size()));
  double names = 0.0;
  for (const std::string& name : map.names) names = std::max(names, text_width(name, 11.0));
  names = std::min(names, 0.22 * width) + 8.0;
  double cell = (width - names - 22.0) / n;
  if (cell < kLeastForNames) {
    names = 4.0;
    cell = (width - names - 22.0) / n;
  }
  cell = std::min(cell, 46.0);
  return {18.0 + names, 18.0 + (cell < kLeastForNames ? 4.0 : names), cell, std::min(11.0, cell * 0.8)};
}

}  // namespace

double height_of(const HeatMap& map, double width) {
  const Layout layout = layout_of(map, width);
  return layout.top + layout.cell * static_cast<double>(map.names.size()) + 4.0;
}

void draw_heat_map(Canvas& canvas, const Box& box, const HeatMap& map) {
  const std::size_t n = map.names.size();
  const Layout layout = layout_of(map, box.width);
  const double left = box.x + layout.left, top = box.y + layout.top, side = layout.cell * static_cast<double>(n);
  require(map.counts.size() == n, "plot: {} rows of counts for {} names", map.counts.size(), n);
  std::array<std::array<std::vector<Box>, kShades + 1>, 2> shades;
  const double gap = layout.cell >= kLeastForCounts ? 1.0 : 0.0;
  const auto at = [&](std::size_t index) { return layout.cell * static_cast<double>(index); };
  for (std::size_t row = 0; row < n; ++row) {
    require(map.counts[row].size() == n, "plot: {} counts in row {} for {} names", map.counts[row].size(), row, n);
    const double sum = sum_of(map.counts[row]);
    for (std::size_t column = 0; column < n; ++column) {
      if (map.counts[row][column] <= 0) continue;
      shades.at(row == column ? 0 : 1)
          .at(shade_of(map.counts[row][column], sum))
          .push_back({left + at(column), top + at(row), layout.cell - gap, layout.cell - gap});
    }
  }
  canvas.rectangle({left, top, side - gap, side - gap}, {kRule, 0.45});
  for (std::size_t kind = 0; kind < 2; ++kind) {
    for (std::size_t shade = 1; shade <= kShades; ++shade)
      canvas.rectangles(shades.at(kind).at(shade), {kind == 0 ? kTraining : kWrong, opacity_of(shade, kind == 0)}, "");
  }
  canvas.text({left + side / 2, box.y + 11.0}, map.columns, {kMuted, 11.0, Anchor::middle});
  canvas.text({box.x + 11.0, top + side / 2}, map.rows, {kMuted, 11.0, Anchor::middle, -90.0});
  if (layout.cell < kLeastForNames) return;
  const double names = layout.left - 24.0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string name = cut_to_width(map.names[i], layout.text, names);
    const double middle = at(i) + layout.cell / 2 + layout.text * 0.35;
    canvas.text({left - 6.0, top + middle}, name, {kInk, layout.text, Anchor::end});
    canvas.text({left + middle, top - 6.0}, name, {kInk, layout.text, Anchor::start, -90.0});
  }
  if (layout.cell < kLeastForCounts) return;
  for (std::size_t row = 0; row < n; ++row) {
    const double sum = sum_of(map.counts[row]);
    for (std::size_t column = 0; column < n; ++column) {
      const std::int64_t count = map.counts[row][column];
      if (count <= 0) continue;
      const std::string text = fmt::format("{}", count);
      const double size = std::min(11.0, 0.92 * 11.0 * (layout.cell - 3.0) / text_width(text, 11.0));
      if (size < 6.0) continue;
      const bool is_full = opacity_of(shade_of(count, sum), row == column) >= kFullOpacity;
      canvas.text({left + at(column) + layout.cell / 2, top + at(row) + layout.cell / 2 + size * 0.35}, text,
                  {is_full ? kOnFull : kOnPale, size, Anchor::middle});
    }
  }
}

double height_of(const PixelGrid& grid, double width) {
  const auto per_row = static_cast<std::size_t>(grid.per_row);
  const std::size_t rows = (grid.pictures.size() + per_row - 1) / per_row;
  const double cell = width / grid.per_row;
  return static_cast<double>(rows) *
         ((cell - 4.0) * static_cast<double>(grid.height) / static_cast<double>(grid.width) + 4.0);
}

void draw_pixel_grid(Canvas& canvas, const Box& box, const PixelGrid& grid) {
  const double cell = box.width / grid.per_row, pixel = (cell - 4.0) / static_cast<double>(grid.width);
  const double row_height = pixel * static_cast<double>(grid.height) + 4.0;
  const auto plane = static_cast<std::size_t>(grid.height * grid.width);
  const auto per_row = static_cast<std::size_t>(grid.per_row), columns = static_cast<std::size_t>(grid.width);
  for (std::size_t i = 0; i < grid.pictures.size(); ++i) {
    const std::vector<double>& picture = grid.pictures[i];
    require(
        (grid.channels == 1 || grid.channels == 3) && picture.size() == plane * static_cast<std::size_t>(grid.channels),
        "plot: a picture of {} values is not of {}x{}x{}", picture.size(), grid.channels, grid.height, grid.width);
    const std::size_t place = i % per_row, line = i / per_row;
    const double left = box.x + cell * static_cast<double>(place), top = box.y + row_height * static_cast<double>(line);
    for (std::size_t k = 0; k < plane; ++k) {
      const auto level = [&](std::size_t channel) {
        const double value = picture[grid.channels == 3 ? channel * plane + k : k];
        return static_cast<int>(std::lround(255.0 * (std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : 0.5)));
      };
      const Colour colour{"", fmt::format("#{:02x}{:02x}{:02x}", level(0), level(1), level(2))};
      const std::size_t column = k % columns, row = k / columns;
      // A bit larger than it is, so that no seams show.
      canvas.rectangle({left + pixel * static_cast<double>(column), top + pixel * static_cast<double>(row), pixel + 0.3,
                        pixel + 0.3},
                       {colour});
    }
  }
}

}  // namespace tandem::train::plot
