// The picture: bars on the left grow with speed; points on the right lie under the roofline (Williams, Waterman,
// Patterson: "Roofline", CACM 2009).
#include "apps/conv_bench/reports.h"
#include "apps/measure/quantile.h"
#include "tandem/train/plot/frame.h"
#include "tandem/train/plot/line_chart.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/plot/text_width.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace tandem::conv_bench {

namespace {

using namespace train::plot;

constexpr double kTop = 84, kHeight = 300, kBar = 12, kGap = 14, kLeft = 70, kRoofline = 420, kBetween = 90;
constexpr double kLeastBars = 260;  // the width of their title
/// As many as there are implementations to choose from.
constexpr std::array<const char*, 20> kColours{
    "#1b6ca8", "#6fb1e0", "#2e8b57", "#999999", "#d9822b", "#f2b879", "#b03a48", "#de8f99", "#7b4ea3", "#c3a6dd",
    "#8c564b", "#c8a29a", "#17a2b8", "#9edae5", "#8a8f00", "#d6d957", "#222222", "#90c978", "#e754b8", "#5b5bd6"};

double flops_per_second(const Result& result) { return result.work.flops / apps::median(result.seconds()); }
double done_per_second(const Result& result) { return result.work.done_flops / apps::median(result.seconds()); }

std::string tip_of(const Result& result) {
  return fmt::format("{}, batch {}, {} {}, {}: {:.1f} us, {:.1f} GFLOP/s, {:.1f} done", result.layer.text(),
                     result.batch, name_of(result.dtype), name_of(result.pass), result.impl,
                     1e6 * apps::median(result.seconds()), 1e-9 * flops_per_second(result),
                     1e-9 * done_per_second(result));
}

std::string group_name(const Result& result) {
  return fmt::format("{} {} b{} {} {}", result.layer.net, result.layer.name, result.batch, name_of(result.dtype),
                     name_of(result.pass));
}

class Drawing {
 public:
  Drawing(const BenchSettings& settings, const std::vector<Result>& results) : settings_(settings), results_(results) {
    double x = kLeft;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      colours_.try_emplace(result.impl, Colour{"", kColours[colours_.size() % kColours.size()]});
      begins_group_.push_back(i == 0 || !result.is_rival_of(results_[i - 1]));
      if (begins_group_.back()) {
        x += i == 0 ? 6 : kGap;
        names_ = std::max(names_, text_width(group_name(result), kTickSize));
      }
      places_.push_back(x);
      x += kBar;
    }
    bars_end_ = std::max(x + 6, kLeft + kLeastBars);
  }

  Size size() const { return {bars_end_ + kBetween + kRoofline + 30, kTop + kHeight + std::max(60.0, names_ + 30)}; }

  void draw(Canvas& canvas) const {
    std::vector<LegendEntry> legend;
    for (const auto& [name, colour] : colours_) legend.push_back({name, colour});
    draw_legend(canvas, {kLeft, 10, size().width - kLeft - 20, 0}, legend);
    if (results_.empty()) return;
    bars(canvas);
    roofline(canvas, {bars_end_ + kBetween, kTop, kRoofline, kHeight});
  }

 private:
  /// One group of bars per layer, batch, dtype and pass.
  void bars(Canvas& canvas) const {
    Axis x, y;
    x.include(0.0);
    y.include(0.0);
    for (const Result& result : results_) y.include(1e-9 * flops_per_second(result));
    x.pad(0.0);
    y.pad(0.0);
    const Frame frame({kLeft, kTop, bars_end_ - kLeft, kHeight}, x, y);
    canvas.text({kLeft, kTop - 12}, "GFLOP/s by the definition of convolution", {kInk, kTickSize});
    frame.draw_y(canvas);
    const double bottom = kTop + kHeight;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      if (begins_group_[i])
        canvas.text({places_[i], bottom + 14}, group_name(result), {kInk, kTickSize, Anchor::start, 60.0});
      const double top = frame.y(1e-9 * flops_per_second(result));
      canvas.rectangle({places_[i], top, kBar - 1, bottom - top}, {colours_.at(result.impl)}, tip_of(result));
    }
    canvas.segment({kLeft, bottom}, {bars_end_, bottom}, {kMuted});
  }

  /// Both axes are logarithmic.
  void roofline(Canvas& canvas, const Box& box) const {
    const Ceilings& ceilings = settings_.ceilings;
    Axis x{.title = "FLOP per byte", .logarithmic = true}, y{.title = "", .logarithmic = true};
    for (const Result& result : results_) {
      x.include(result.work.done_flops / result.work.bytes);
      y.include(1e-9 * done_per_second(result));
    }
    y.include(1e-9 * std::max(ceilings.flops_f32, ceilings.flops_half));
    x.least /= 2, x.most *= 2, y.least /= 2, y.most *= 2;
    const Frame frame(box, x, y);
    canvas.text({box.x, box.y - 12}, "roofline: GFLOP/s really done", {kInk, kTickSize});
    frame.draw(canvas);
    for (const double flops : std::set{1e-9 * ceilings.flops_f32, 1e-9 * ceilings.flops_half})
      roof(canvas, frame, flops, 1e-9 * ceilings.bandwidth);
    for (const Result& result : results_) {
      canvas.circle({frame.x(result.work.done_flops / result.work.bytes), frame.y(1e-9 * done_per_second(result))}, 4,
                    {colours_.at(result.impl), 0.8}, tip_of(result));
    }
  }

  static void roof(Canvas& canvas, const Frame& frame, double flops, double bandwidth) {
    if (flops <= 0.0 || bandwidth <= 0.0) return;
    const Axis &x = frame.x_axis(), &y = frame.y_axis();
    const Stroke stroke{kInk, 1.0, 1.0, true};
    const double ridge = std::clamp(flops / bandwidth, x.least, x.most);
    const double foot = std::max(x.least, y.least / bandwidth);
    const Point corner{frame.x(ridge), frame.y(flops)};
    canvas.segment({frame.x(foot), frame.y(std::min(foot * bandwidth, flops))},
                   {corner.x, frame.y(std::min(ridge * bandwidth, flops))}, stroke);
    canvas.segment(corner, {frame.x(x.most), corner.y}, stroke);
    canvas.text({frame.x(x.most) - 4, corner.y - 4}, fmt::format("{:.4g} GFLOP/s", flops),
                {kInk, kTickSize, Anchor::end});
  }

  const BenchSettings& settings_;
  const std::vector<Result>& results_;
  std::map<std::string, Colour> colours_;
  std::vector<bool> begins_group_;
  std::vector<double> places_;  // left edges of the bars
  double bars_end_ = 0.0, names_ = 0.0;
};

}  // namespace

std::string svg_report(const BenchSettings& settings, const std::vector<Result>& results) {
  const Drawing drawing(settings, results);
  return svg_picture(drawing.size(), "Speed of convolutions", SvgKind::file,
                     [&](Canvas& canvas) { drawing.draw(canvas); });
}

}  // namespace tandem::conv_bench
