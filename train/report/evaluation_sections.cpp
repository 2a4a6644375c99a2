// What the network got right and wrong.
#include "tandem/train/plot/bars.h"
#include "tandem/train/plot/heat_map.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::train::report {
namespace {

using plot::number_text;
using plot::Unit;

constexpr std::size_t kMostInMatrix = 200, kMostBars = 24, kMostPairs = 8;
constexpr std::size_t kMostImageBytes = 1200 << 10;  // of all: a page has at most 2 MB

std::string percent(double value) { return std::isfinite(value) ? fmt::format("{:.1f} %", value) : "\xE2\x80\x93"; }

void add_confusion(HtmlWriter& html, const Evaluation& evaluation) {
  const plot::HeatMap map{evaluation.classes, evaluation.confusion, "label", "prediction"};
  constexpr double kWidth = 440.0;
  const double height = height_of(map, kWidth);
  begin_card(html, "card narrow");
  html.element("h3", "Confusion matrix");
  html.markup(plot::svg_picture({kWidth, height}, "Confusion matrix", plot::SvgKind::inline_,
                                [&](plot::Canvas& canvas) { draw_heat_map(canvas, {0.0, 0.0, kWidth, height}, map); }));
  html.close();
}

struct Confusion {
  std::int64_t count;
  std::size_t label, prediction;
};

void add_confused_pairs(HtmlWriter& html, const Evaluation& evaluation) {
  std::vector<Confusion> pairs;
  for (std::size_t row = 0; row < evaluation.confusion.size(); ++row) {
    for (std::size_t column = 0; column < evaluation.confusion.size(); ++column) {
      const std::int64_t count = evaluation.confusion[row][column];
      if (row != column && count > 0) pairs.push_back({count, row, column});
    }
  }
  if (pairs.empty()) return;
  std::ranges::stable_sort(pairs, std::greater<>{}, &Confusion::count);
  pairs.resize(std::min(pairs.size(), kMostPairs));
  begin_card(html);
  html.element("h3", "Most frequent mistakes");
  html.open("table");
  html.open("tr");
  for (const char* const name : {"is", "was called"}) html.element("th", name);
  html.element("th", "images", {{"class", "n"}});
  html.close();
  for (const Confusion& pair : pairs) {
    html.open("tr");
    html.element("td", evaluation.classes[pair.label]);
    html.element("td", evaluation.classes[pair.prediction]);
    html.element("td", number_text(static_cast<double>(pair.count)), {{"class", "n"}});
    html.close();
  }
  html.close();
  html.close();
}

void add_per_class(HtmlWriter& html, const Evaluation& evaluation) {
  if (evaluation.per_class.empty()) return;
  NumberTable sorted = evaluation.per_class;
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool all = sorted.size() <= kMostBars;
  if (!all) sorted.resize(kMostBars);
  plot::BarChart chart{{}, plot::kTraining, 100.0};
  for (const auto& [name, accuracy] : sorted) chart.bars.push_back({name, accuracy, percent(accuracy)});
  const plot::Size size{kChartWidth, height_of(chart)};
  begin_card(html, "card narrow");
  html.element("h3", all ? std::string("Accuracy by class, worst first")
                         : fmt::format("The {} classes with the lowest accuracy", kMostBars));
  html.markup(plot::svg_picture(size, "Accuracy by class", plot::SvgKind::inline_, [&](plot::Canvas& canvas) {
    draw_bar_chart(canvas, {0.0, 0.0, size.width, size.height}, chart);
  }));
  html.close();
}

void add_calibration(HtmlWriter& html, const Calibration& calibration) {
  double images = 0.0;
  for (const Calibration::Bin& bin : calibration.bins) images += std::isfinite(bin.images) ? bin.images : 0.0;
  if (images <= 0.0) return;
  constexpr plot::Size kSize{kChartWidth, 280.0};
  begin_card(html, "card narrow");
  html.element("h3", std::isfinite(calibration.ece)
                         ? fmt::format("Calibration: expected error {:.2f} points", 100.0 * calibration.ece)
                         : std::string("Calibration"));
  html.markup(plot::svg_picture(kSize, "Accuracy by confidence", plot::SvgKind::inline_, [&](plot::Canvas& canvas) {
    const plot::Axis x{.title = "confidence", .unit = Unit::percent, .least = 0.0, .most = 100.0};
    const plot::Axis y{.title = "", .unit = Unit::percent, .least = 0.0, .most = 100.0};
    canvas.text({0.0, 10.0}, "accuracy; the paler a bar, the fewer the images", {plot::kMuted, plot::kTickSize});
    const plot::Frame frame({44.0, 22.0, kSize.width - 56.0, kSize.height - 60.0}, x, y);
    frame.draw_y(canvas);
    for (const Calibration::Bin& bin : calibration.bins) {
      if (!(bin.images > 0.0) || !(bin.to > bin.from) || !std::isfinite(bin.accuracy)) continue;
      const double left = frame.x(100.0 * std::clamp(bin.from, 0.0, 1.0));
      const double right = frame.x(100.0 * std::clamp(bin.to, 0.0, 1.0));
      const double top = frame.y(100.0 * std::clamp(bin.accuracy, 0.0, 1.0));
      canvas.rectangle({left + 1.0, top, std::max(1.0, right - left - 2.0), frame.y(0.0) - top},
                       {plot::kTraining, 0.25 + 0.7 * std::sqrt(bin.images / images)},
                       fmt::format("{:.0f} images: confidence {:.1f} %, accuracy {:.1f} %", bin.images,
                                   100.0 * bin.confidence, 100.0 * bin.accuracy));
    }
    canvas.segment({frame.x(0.0), frame.y(0.0)}, {frame.x(100.0), frame.y(100.0)}, {plot::kMuted, 1.0, 1.0, true});
    frame.draw_x(canvas);
  }));
  html.close();
}

}  // namespace

void add_evaluation(HtmlWriter& html, const RunData& run) {
  if (!run.evaluation) return;
  const Evaluation& evaluation = *run.evaluation;
  const bool has_matrix = !evaluation.confusion.empty();
  if (!has_matrix && evaluation.per_class.empty() && evaluation.calibration.bins.empty()) return;
  html.element("h2", evaluation.split == "validation" ? "On the validation images" : "On the test images");
  html.open("div", {{"class", "flow"}});
  if (has_matrix && evaluation.classes.size() <= kMostInMatrix) add_confusion(html, evaluation);
  add_per_class(html, evaluation);
  add_calibration(html, evaluation.calibration);
  if (has_matrix) add_confused_pairs(html, evaluation);
  html.close();
  if (std::isfinite(evaluation.epoch))
    html.element("p", fmt::format("Of epoch {:.0f}, {} images.", evaluation.epoch, number_text(evaluation.images)),
                 {{"class", "note"}});
}

void add_worst_images(HtmlWriter& html, const RunData& run) {
  if (!run.evaluation || run.evaluation->worst.empty()) return;
  html.element("h2", "Worst mistakes");
  begin_card(html);
  html.open("div", {{"class", "worst"}});
  std::size_t bytes = 0, left_out = 0;
  for (const WorstImage& image : run.evaluation->worst) {
    bytes += image.png.size();
    if (bytes > kMostImageBytes) {
      ++left_out;
      continue;
    }
    html.open("figure");
    const std::string what =
        fmt::format("image {}, {} called {}, loss {:.3g}", image.index, image.label, image.predicted, image.loss);
    if (!image.png.empty())
      html.empty_element("img", {{"src", "data:image/png;base64," + image.png}, {"alt", what}, {"title", what}});
    html.open("figcaption");
    html.element("span", image.predicted, {{"class", "said"}});
    html.element("span", "is " + image.label, {{"class", "is"}});
    html.element("span", percent(100.0 * image.confidence) + " sure", {{"class", "sure"}});
    html.element("span", fmt::format("image {}", image.index), {{"class", "sure"}});
    html.close();
    html.close();
  }
  html.close();
  html.element(
      "p",
      "The misclassified images with the largest loss: what the network said, the label, and how sure it was." +
          (left_out > 0 ? fmt::format(" {} more are too large for this page.", left_out) : ""),
      {{"class", "note"}});
  html.close();
}

void add_filters(HtmlWriter& html, const RunData& run) {
  if (!run.filters || run.filters->pictures.empty()) return;
  const plot::PixelGrid& grid = *run.filters;
  constexpr double kWidth = 640.0;
  const double height = height_of(grid, kWidth);
  html.element("h2", "First-layer filters");
  begin_card(html);
  html.markup(
      plot::svg_picture({kWidth, height}, "First-layer filters", plot::SvgKind::inline_,
                        [&](plot::Canvas& canvas) { draw_pixel_grid(canvas, {0.0, 0.0, kWidth, height}, grid); }));
  html.element("p",
               fmt::format("{}: {} filters of {}x{}, each from its smallest weight (dark) to its largest (bright).",
                           run.filters_name, grid.pictures.size(), grid.height, grid.width),
               {{"class", "note"}});
  html.close();
}

}  // namespace tandem::train::report
