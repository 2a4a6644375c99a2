// Lying and standing bars.
#include "tandem/train/plot/bars.h"

#include "tandem/core/error.h"
#include "tandem/train/plot/line_chart.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/text_width.h"

#include <algorithm>
#include <cmath>

namespace tandem::train::plot {
namespace {

constexpr double kRow = 22.0, kText = 12.0, kNarrowestColumn = 3.0;

double size_of(double value) { return std::isfinite(value) && value > 0.0 ? value : 0.0; }

double mean_of(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  double sum = 0.0;
  for (std::size_t i = begin; i < end; ++i) sum += size_of(values[i]);
  return sum / static_cast<double>(end - begin);
}

}  // namespace

double height_of(const BarChart& chart) { return kRow * static_cast<double>(chart.bars.size()); }

void draw_bar_chart(Canvas& canvas, const Box& box, const BarChart& chart) {
  double most = chart.most, names = 0.0, texts = 0.0;
  for (const Bar& bar : chart.bars) {
    if (chart.most <= 0.0) most = std::max(most, size_of(bar.value) + size_of(bar.deviation));
    names = std::max(names, text_width(bar.name, kText));
    texts = std::max(texts, text_width(bar.text, kText));
  }
  names = std::min(1.06 * names, 0.35 * box.width);  // fonts are of different width
  const double left = box.x + names + 10.0, room = std::max(20.0, box.width - names - texts - 24.0);
  double y = box.y;
  for (const Bar& bar : chart.bars) {
    const double length = most > 0.0 ? room * std::min(1.0, size_of(bar.value) / most) : 0.0;
    canvas.text({left - 10.0, y + 15.0}, cut_to_width(bar.name, kText, names + 1.0), {kInk, kText, Anchor::end});
    if (length > 0.0)
      canvas.rectangle({left, y + 4.0, std::max(length, 1.0), kRow - 8.0}, {chart.colour, 0.85},
                       bar.name + ": " + bar.text);
    double end = left + length;
    if (const double spread = size_of(bar.deviation); spread > 0.0 && most > 0.0) {
      const double middle = y + 0.5 * kRow, reach = room * spread / most;
      end = std::min(left + room, end + reach);
      canvas.segment({std::max(left, left + length - reach), middle}, {end, middle}, {kInk, 1.2});
    }
    canvas.text({end + 7.0, y + 15.0}, bar.text, {kMuted, kText});
    y += kRow;
  }
}

void draw_stacked_chart(Canvas& canvas, const Box& box, const StackedChart& chart) {
  const std::size_t columns = chart.layers.empty() ? 0 : chart.layers.front().values.size();
  std::vector<LegendEntry> legend;
  for (const StackedChart::Layer& layer : chart.layers) {
    require(layer.values.size() == columns, "plot: layer '{}' has {} columns, the first one {}", layer.name,
            layer.values.size(), columns);
    legend.push_back({layer.name, layer.colour});
  }
  const double top = box.y + draw_legend(canvas, box, legend);
  const auto room = static_cast<std::size_t>(std::max(1.0, (box.width - 60.0) / kNarrowestColumn));
  const std::size_t together = std::max<std::size_t>(1, (columns + room - 1) / room);
  Axis x = chart.x, y = chart.y;
  x.include(chart.first - 0.5);
  x.include(chart.first + static_cast<double>(columns) - 0.5);
  y.include(0.0);
  for (std::size_t begin = 0; begin < columns; begin += together) {
    double sum = 0.0;
    for (const auto& layer : chart.layers) sum += mean_of(layer.values, begin, std::min(columns, begin + together));
    y.include(sum);
  }
  x.pad(0.0);
  if (y.most <= 0.0) y.most = 1.0;
  const double title = y.title.empty() ? 0.0 : 18.0;
  if (title > 0.0) canvas.text({box.x, top + 12.0}, y.title, {kMuted, kTickSize});
  const double left = box.x + width_of_ticks(y) + 8.0;
  const double below = x.title.empty() ? 22.0 : 36.0, above = top + 6.0 + title;
  const Frame frame({left, above, box.x + box.width - left - 8.0, std::max(20.0, box.y + box.height - below - above)},
                    x, y);
  frame.draw_y(canvas);
  const double gap = columns > 60 || together > 1 ? 0.0 : 0.12;
  for (std::size_t begin = 0; begin < columns; begin += together) {
    const std::size_t end = std::min(columns, begin + together);
    const double from = frame.x(chart.first + static_cast<double>(begin) - 0.5 + gap);
    const double to = frame.x(chart.first + static_cast<double>(end) - 0.5 - gap);
    double sum = 0.0;
    for (const StackedChart::Layer& layer : chart.layers) {
      const double value = mean_of(layer.values, begin, end);
      if (value <= 0.0) continue;
      const double bottom = frame.y(sum), height = bottom - frame.y(sum + value);
      sum += value;
      canvas.rectangle({from, bottom - height, to - from, height}, {layer.colour, 0.9},
                       layer.name + ": " + number_text(value, y.unit));
    }
  }
  frame.draw_x(canvas);
}

}  // namespace tandem::train::plot
