// Lines, bands and names.
#include "tandem/train/plot/line_chart.h"

#include "tandem/core/error.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/text_width.h"
#include "tandem/train/plot/thin.h"

#include <algorithm>
#include <cmath>

namespace tandem::train::plot {
namespace {

constexpr double kNameSize = 11.5, kNameHeight = 14.0, kWidestName = 120.0;
/// Fonts are of different width, and names at lines are bold.
constexpr double kFontSpread = 1.12;
constexpr std::size_t kMostNamedAtEnd = 8, kMostInLegend = 24;

struct Name {
  std::string text;
  Colour colour;
  double y;
};

/// Pushes names apart that would overlap, and none out of the box.
void spread(std::vector<Name>& names, double top, double bottom) {
  std::ranges::stable_sort(names, {}, &Name::y);
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i].y = std::max(names[i].y, i == 0 ? top : names[i - 1].y + kNameHeight);
  for (std::size_t i = names.size(); i-- > 0;)
    names[i].y = std::min(names[i].y, i + 1 == names.size() ? bottom : names[i + 1].y - kNameHeight);
}

class LineDrawer {
 public:
  LineDrawer(Canvas& canvas, const Frame& frame) : canvas_(canvas), frame_(frame) {}

  void draw(const Series& series) {
    draw_band(series);
    std::vector<Point> run;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (can_show(series.x[i], series.y[i])) {
        run.push_back({frame_.x(series.x[i]), frame_.y(series.y[i])});
      } else {
        draw_run(run, series);
      }
    }
    draw_run(run, series);
  }

  bool can_show(double x, double y) const { return frame_.x_axis().can_show(x) && frame_.y_axis().can_show(y); }

 private:
  void draw_run(std::vector<Point>& run, const Series& series) {
    const double opacity = series.faint ? 0.35 : 1.0;
    if (run.size() == 1) canvas_.circle(run[0], series.faint ? 1.2 : 2.8, {series.colour, opacity}, "");
    if (run.size() > 1) canvas_.line(thinned(run), {series.colour, series.faint ? 1.0 : 2.0, opacity, series.dashed});
    run.clear();
  }

  void draw_band(const Series& series) {
    std::vector<Point> upper, lower;
    const auto close = [&] {
      std::vector<Point> outline = thinned(upper);
      const std::vector<Point> back = thinned(lower);
      outline.insert(outline.end(), back.rbegin(), back.rend());
      canvas_.polygon(outline, {series.colour, 0.15});
      upper.clear();
      lower.clear();
    };
    for (std::size_t i = 0; i < series.low.size(); ++i) {
      if (can_show(series.x[i], series.low[i]) && can_show(series.x[i], series.high[i])) {
        upper.push_back({frame_.x(series.x[i]), frame_.y(series.high[i])});
        lower.push_back({frame_.x(series.x[i]), frame_.y(series.low[i])});
      } else {
        close();
      }
    }
    close();
  }

  Canvas& canvas_;
  const Frame& frame_;
};

void check(const Series& series) {
  require(series.y.size() == series.x.size() && series.low.size() == series.high.size() &&
              (series.low.empty() || series.low.size() == series.x.size()),
          "plot: series '{}': {} x, {} y, {} and {} bounds of the band: they must be as many", series.name,
          series.x.size(), series.y.size(), series.low.size(), series.high.size());
}

/// The names of lines, where these end.
std::vector<Name> names_at_ends(const std::vector<Series>& all, const Frame& frame, const LineDrawer& drawer) {
  std::vector<Name> names;
  for (const Series& series : all) {
    if (series.name.empty()) continue;
    for (std::size_t i = series.x.size(); i-- > 0;) {
      if (!drawer.can_show(series.x[i], series.y[i])) continue;
      names.push_back({cut_to_width(series.name, kNameSize, kWidestName), series.colour, frame.y(series.y[i])});
      break;
    }
  }
  return names;
}

/// Of the colour, 10 points wide, on the line of its name.
void draw_key(Canvas& canvas, Point at, const LegendEntry& entry) {
  if (entry.dashed) {
    canvas.segment({at.x, at.y - 4.0}, {at.x + 11.0, at.y - 4.0}, {entry.colour, 2.0, 1.0, true});
  } else {
    canvas.rectangle({at.x, at.y - 9.0, 10.0, 10.0}, {entry.colour});
  }
}

}  // namespace

bool fits_beside_lines(std::string_view name, std::size_t series, double width) {
  return text_width(name, kNameSize) <= (series <= kMostNamedAtEnd ? kWidestName : std::max(40.0, width - 20.0));
}

namespace {

/// Rows of keys and names from the top of the box on; `draw(point, entry, text)` is called for each, with a null entry
/// for the count of the rest. Returns the height that they take.
template <typename Draw>
double lay_out_legend(const Box& box, const std::vector<LegendEntry>& entries, const Draw& draw) {
  double x = box.x, y = box.y + 10.0;
  const std::size_t shown = entries.size() > kMostInLegend ? kMostInLegend - 1 : entries.size();
  for (std::size_t i = 0; i < entries.size() && i <= shown; ++i) {
    const bool is_rest = i == shown;
    const std::string whole = is_rest ? fmt::format("and {} more", entries.size() - shown) : entries[i].name;
    const std::string text = cut_to_width(whole, kNameSize, std::max(40.0, box.width - 20.0));
    const double width = 16.0 + kFontSpread * text_width(text, kNameSize);
    if (x > box.x && x + width > box.x + box.width) {
      x = box.x;
      y += kNameHeight + 2.0;
    }
    draw(Point{x, y}, is_rest ? nullptr : &entries[i], text);
    x += width + 12.0;
  }
  return entries.empty() ? 0.0 : y - box.y + 8.0;
}

std::vector<LegendEntry> legend_of(const LineChart& chart) {
  std::vector<LegendEntry> legend;
  for (const Series& series : chart.series)
    if (!series.name.empty()) legend.push_back({series.name, series.colour, series.dashed});
  return legend;
}

}  // namespace

double height_of_names(const LineChart& chart, double width) {
  const std::vector<LegendEntry> legend = legend_of(chart);
  if (legend.size() <= kMostNamedAtEnd) return 0.0;
  return lay_out_legend({0.0, 0.0, width, 0.0}, legend, [](Point, const LegendEntry*, const std::string&) {});
}

double draw_legend(Canvas& canvas, const Box& box, const std::vector<LegendEntry>& entries) {
  return lay_out_legend(box, entries, [&](Point at, const LegendEntry* entry, const std::string& text) {
    if (entry != nullptr) draw_key(canvas, at, *entry);
    canvas.text({at.x + 14.0, at.y}, text, {kInk, kNameSize});
  });
}

void draw_line_chart(Canvas& canvas, const Box& box, const LineChart& chart) {
  Axis x = chart.x, y = chart.y;
  double name_width = 0.0;
  const std::vector<LegendEntry> legend = legend_of(chart);
  for (const Series& series : chart.series) {
    check(series);
    x.include(series.x);
    for (const auto* const values : {&series.y, &series.low, &series.high}) y.include(*values);
    if (series.name.empty()) continue;
    name_width = std::max(name_width, std::min(kWidestName, kFontSpread * text_width(series.name, kNameSize)));
  }
  x.pad(0.0);
  y.pad(0.06);
  double top = box.y;
  if (!chart.title.empty()) {
    canvas.text({box.x, top + 13}, cut_to_width(chart.title, 13.5, box.width), {kInk, 13.5, Anchor::start, 0.0, true});
    top += 24.0;
  }
  const bool at_ends = legend.size() <= kMostNamedAtEnd;
  if (!at_ends) {
    top += draw_legend(canvas, {box.x, top, box.width, 0.0}, legend);
    name_width = 0.0;
  }
  if (!y.title.empty()) {
    canvas.text({box.x, top + 10}, y.title, {kMuted, kTickSize});
    top += 18.0;
  }
  const double left = box.x + width_of_ticks(y) + 8.0, bottom = box.y + box.height - (x.title.empty() ? 22.0 : 36.0);
  const double right = box.x + box.width - (at_ends && name_width > 0.0 ? name_width + 14.0 : 12.0);
  const Frame frame({left, top + 4.0, std::max(right - left, 20.0), std::max(bottom - top - 4.0, 20.0)}, x, y);
  frame.draw(canvas);
  LineDrawer drawer(canvas, frame);
  for (const Series& series : chart.series) drawer.draw(series);
  if (!at_ends) return;
  std::vector<Name> names = names_at_ends(chart.series, frame, drawer);
  spread(names, frame.area().y + 4.0, frame.area().y + frame.area().height - 2.0);
  for (const Name& name : names)
    canvas.text({right + 7.0, name.y + 4.0}, name.text, {name.colour, kNameSize, Anchor::start, 0.0, true});
}

}  // namespace tandem::train::plot
