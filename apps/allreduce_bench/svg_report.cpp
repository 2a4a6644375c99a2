// The picture: both axes of each chart are logarithmic, each contender has a line of one colour in both charts.
#include "apps/allreduce_bench/reports.h"
#include "tandem/train/plot/bars.h"
#include "tandem/train/plot/line_chart.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tandem::allreduce_bench {

namespace {

using namespace train::plot;

constexpr double kWidth = 620, kMargin = 16, kTimes = 290, kBandwidths = 250, kBetween = 18;

/// Of contenders beyond the eight that have the colours of all charts.
constexpr std::array<const char*, 8> kMoreColours{"#6fb1e0", "#e0a84e", "#6cc3a6", "#d98cbf",
                                                  "#ab9be6", "#e59585", "#6fbecb", "#b9bc5c"};

/// A contender's, in all charts.
class Colours {
 public:
  explicit Colours(std::span<const BenchRow> rows) {
    for (const BenchRow& row : rows) {
      const std::string name = label_of(row);
      if (row.backend != kRoofline && std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
    }
  }
  Colour of(const std::string& name) const {
    if (name == kRoofline) return kInk;
    const auto place = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    return place < kSeries.size() ? kSeries[place] : Colour{"", kMoreColours[place % kMoreColours.size()]};
  }

 private:
  std::vector<std::string> names_;
};

/// The rows of one collective, by contender, in the order of their first rows.
struct Section {
  struct Line {
    std::string name;
    std::vector<const BenchRow*> rows;
  };

  const BenchCollective* collective;
  std::vector<Line> lines;

  void add(const BenchRow& row) {
    const std::string name = label_of(row);
    auto line = std::ranges::find(lines, name, &Line::name);
    if (line == lines.end()) line = lines.insert(line, {name, {}});
    line->rows.push_back(&row);
  }
};

std::vector<Section> sections_of(std::span<const BenchRow> rows) {
  std::vector<Section> sections;
  for (const BenchRow& row : rows) {
    if (sections.empty() || sections.back().collective != row.collective) sections.push_back({row.collective, {}});
    sections.back().add(row);
  }
  return sections;
}

class SectionDrawing {
 public:
  SectionDrawing(const Section& section, const Colours& colours, const BenchOptions& options, int ranks)
      : section_(section), colours_(colours), title_(title_of(*section.collective, options, ranks)), ranks_(ranks) {
    const bool has_bytes = section.collective->has_bytes();
    if (has_bytes) title_ += section.collective->in_place ? ", in place" : ", out of place";
    bars_.colour = kSeries[0];
    for (const Section::Line& line : section.lines) {
      const double seconds = line.rows.front()->usual_time().median;
      bars_.bars.push_back({line.name, seconds, number_text(seconds, Unit::seconds)});
    }
    has_bandwidths_ = has_bytes && section.collective->bus_factor(ranks) > 0.0;
  }

  double height() const {
    if (!section_.collective->has_bytes()) return 28.0 + height_of(bars_);
    return kTimes + (has_bandwidths_ ? kBetween + kBandwidths : 0.0);
  }

  void draw(Canvas& canvas, double top) const {
    const double width = kWidth - 2 * kMargin;
    if (!section_.collective->has_bytes()) {
      canvas.text({kMargin, top + 13}, title_ + ": time of the slowest rank", {kInk, 13.5, Anchor::start, 0.0, true});
      return draw_bar_chart(canvas, {kMargin, top + 24, width, height_of(bars_)}, bars_);
    }
    draw_line_chart(canvas, {kMargin, top, width, kTimes}, times());
    if (has_bandwidths_) draw_line_chart(canvas, {kMargin, top + kTimes + kBetween, width, kBandwidths}, bandwidths());
  }

 private:
  /// A line per contender; the roofline's is dashed.
  template <typename Value>
  LineChart chart_of(const Value& value) const {
    LineChart chart;
    chart.x = {.title = fmt::format("bytes {}", section_.collective->bytes), .unit = Unit::bytes, .logarithmic = true};
    chart.y = {.title = "", .logarithmic = true};
    for (const Section::Line& line : section_.lines) {
      Series series{.name = line.name, .colour = colours_.of(line.name), .x = {}, .y = {}};
      series.dashed = line.name == kRoofline;
      for (const BenchRow* const row : line.rows) {
        series.x.push_back(static_cast<double>(row->bytes));
        series.y.push_back(value(*row));
      }
      chart.series.push_back(std::move(series));
    }
    return chart;
  }

  LineChart times() const {
    LineChart chart = chart_of([](const BenchRow& row) { return row.usual_time().median; });
    chart.title = title_;
    chart.y.title = "time of the slowest rank";
    chart.y.unit = Unit::seconds;
    add_predictions(chart);
    return chart;
  }

  void add_predictions(LineChart& chart) const {
    bool any = false;
    for (std::size_t i = 0; i < section_.lines.size(); ++i) {
      Series series{.name = "", .colour = chart.series[i].colour, .x = chart.series[i].x, .y = {}};
      series.faint = series.dashed = true;
      for (const BenchRow* const row : section_.lines[i].rows)
        series.y.push_back(row->predicted > 0.0 ? row->predicted : std::numeric_limits<double>::quiet_NaN());
      if (std::ranges::none_of(series.y, [](double y) { return std::isfinite(y); })) continue;
      chart.series.push_back(std::move(series));
      any = true;
    }
    if (any) chart.y.title += " (pale and dashed: predicted)";
  }

  LineChart bandwidths() const {
    LineChart chart = chart_of([&](const BenchRow& row) { return 1e-9 * row.bus_bandwidth(row.usual_time(), ranks_); });
    chart.y.title = fmt::format("bandwidth of the bus, GB/s: bytes / time x {}", section_.collective->factor);
    return chart;
  }

  const Section& section_;
  const Colours& colours_;
  std::string title_;
  int ranks_;
  BarChart bars_;
  bool has_bandwidths_ = false;
};

}  // namespace

std::string svg_report(std::span<const BenchRow> rows, const BenchOptions& options, int ranks) {
  const std::vector<Section> sections = sections_of(rows);
  const Colours colours(rows);
  std::vector<SectionDrawing> drawings;
  double height = kMargin;
  for (const Section& section : sections) {
    drawings.emplace_back(section, colours, options, ranks);
    height += drawings.back().height() + kMargin;
  }
  return svg_picture({kWidth, height}, "Times and bandwidths of collectives", SvgKind::file, [&](Canvas& canvas) {
    double top = kMargin;
    for (const SectionDrawing& drawing : drawings) {
      drawing.draw(canvas, top);
      top += drawing.height() + kMargin;
    }
  });
}

}  // namespace tandem::allreduce_bench
