// Loss scaling: measured gradients beside the range of f16, the scale of a training by step, and master weights.
#include "apps/pictures/measured.h"
#include "apps/pictures/picture.h"
#include "apps/pictures/shapes.h"
#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/train/plot/frame.h"
#include "tandem/train/plot/line_chart.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::pictures {

namespace {

namespace plot = train::plot;
constexpr std::string_view kGradients = "gradients.csv", kScale = "loss-scale.csv";
constexpr int kSmallest = -24, kLargest = 15;  // powers of two that f16 has, subnormal numbers included
constexpr int kScaled = 16;                    // the scale that training starts at, 2^16

struct Bin {
  int power = 0;
  double activations = 0.0, weights = 0.0;
};

std::vector<Bin> read_bins(const std::string& folder) {
  std::vector<Bin> bins;
  for (const std::vector<std::string>& row : read_measured(folder, kGradients).rows) {
    require(row.size() == 3, "{}: a row has {} words, not 3", kGradients, row.size());
    bins.push_back({static_cast<int>(number_of(row[0])), number_of(row[1]), number_of(row[2])});
  }
  return bins;
}

/// What share of the gradients of this kind is rounded to 0 in f16: those below 2^-25, half of the smallest number.
double vanishing_share(const std::vector<Bin>& bins, double Bin::* kind, int scale_power) {
  double all = 0.0, vanishing = 0.0;
  for (const Bin& bin : bins) {
    all += bin.*kind;
    if (bin.power + scale_power < kSmallest - 1) vanishing += bin.*kind;
  }
  return vanishing / all;
}

double overflowing_count(const std::vector<Bin>& bins, int scale_power) {
  double count = 0.0;
  for (const Bin& bin : bins)
    if (bin.power + scale_power > kLargest) count += bin.activations + bin.weights;
  return count;
}

void draw_histogram(plot::Canvas& canvas, const std::vector<Bin>& bins, int scale_power, double top) {
  constexpr int kLeast = -56, kMost = 20;
  constexpr double kLeft = 10.0, kHeight = 96.0, kUnit = (kWidth - 20.0) / (kMost - kLeast);
  const auto x = [&](double power) { return kLeft + (power - kLeast) * kUnit; };
  double all = 0.0, most = 0.0;
  for (const Bin& bin : bins) all += bin.activations;
  for (const Bin& bin : bins) most = std::max(most, bin.activations);
  draw_heading(canvas, kLeft, top + 14.0, scale_power == 0 ? "as they are" : fmt::format("times 2^{}", scale_power));
  draw_note(canvas, kLeft + 90.0, top + 14.0,
            fmt::format("{:.2f} % become 0 in f16", 100.0 * vanishing_share(bins, &Bin::activations, scale_power)));
  const double base = top + 24.0 + kHeight;
  canvas.rectangle({x(kSmallest), top + 24.0, (kLargest + 1 - kSmallest) * kUnit, kHeight},
                   {plot::series_colour(2), 0.12});
  canvas.text({x(-4.0), top + 36.0}, "f16 has these",
              {.colour = plot::kMuted, .size = kSmallSize, .anchor = plot::Anchor::middle});
  for (const Bin& bin : bins) {
    const int power = bin.power + scale_power;
    if (power < kLeast || power >= kMost || bin.activations == 0.0) continue;
    const double height = 78.0 * bin.activations / most;
    const bool vanishes = power < kSmallest - 1;
    canvas.rectangle({x(power), base - height, kUnit - 0.6, height},
                     {vanishes ? plot::kWrong : plot::series_colour(0), 0.8},
                     fmt::format("2^{}: {:.2f} %", power, 100.0 * bin.activations / all));
  }
  canvas.segment({kLeft, base}, {kWidth - 10.0, base}, {plot::kMuted});
  for (int power = -48; power <= 16; power += 8)
    canvas.text({x(power), base + 13.0}, fmt::format("{}", power),
                {.colour = plot::kMuted, .size = kSmallSize, .anchor = plot::Anchor::middle});
}

Picture histogram_picture(const std::string& folder) {
  return {
      "loss-scaling-gradients", 308.0,
      "Gradients of activations by power of two, without a scale and with one: without it some lie below what f16 has",
      [folder](plot::Canvas& canvas) {
        const std::vector<Bin> bins = read_bins(folder);
        draw_histogram(canvas, bins, 0, 0.0);
        draw_histogram(canvas, bins, kScaled, 144.0);
        draw_note(canvas, 10.0, 296.0, "power of two of a gradient; heights are shares of all that are not 0");
      }};
}

struct ScaledStep {
  double step = 0.0, scale = 0.0;
  bool taken = false;
};

std::vector<ScaledStep> read_scales(const std::string& folder) {
  std::vector<ScaledStep> steps;
  for (const std::vector<std::string>& row : read_measured(folder, kScale).rows) {
    require(row.size() == 4, "{}: a row has {} words, not 4", kScale, row.size());
    steps.push_back({number_of(row[0]), std::log2(number_of(row[1])), row[2] == "1"});
  }
  return steps;
}

Picture scale_picture(const std::string& folder) {
  return {"loss-scaling-scale", 232.0,
          "The loss scale by step: it is halved at each skipped step and doubled after 20 good ones",
          [folder](plot::Canvas& canvas) {
            constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
            plot::LineChart chart{.title = "power of two of the loss scale",
                                  .x = {.title = "step", .whole = true},
                                  .y = {.title = "", .whole = true},
                                  .series = {}};
            plot::Series scale{.name = "scale", .colour = plot::series_colour(0), .x = {}, .y = {}};
            plot::Series skipped{.name = "skipped", .colour = plot::kWrong, .x = {}, .y = {}};
            for (const ScaledStep& step : read_scales(folder)) {
              if (!scale.y.empty() && scale.y.back() != step.scale) {
                scale.x.push_back(step.step);
                scale.y.push_back(scale.y.back());
              }
              scale.x.push_back(step.step);
              scale.y.push_back(step.scale);
              if (step.taken) continue;
              skipped.x.insert(skipped.x.end(), {kGap, step.step, kGap});
              skipped.y.insert(skipped.y.end(), {kGap, step.scale, kGap});
            }
            chart.series = {scale, skipped};
            draw_line_chart(canvas, {4.0, 8.0, kWidth - 8.0, 216.0}, chart);
          }};
}

/// A weight of 1 from which 1,000 updates of 2^-14 are taken.
struct Descent {
  std::vector<double> steps, half, with_master;
};

Descent descend() {
  Descent descent;
  constexpr float kUpdate = 0x1p-14f;
  Half weight(1.0f);
  float master = 1.0f;
  for (int step = 0; step <= 1000; ++step) {
    descent.steps.push_back(step);
    descent.half.push_back(weight);
    descent.with_master.push_back(Half(master));
    weight = Half(weight - kUpdate);
    master -= kUpdate;
  }
  return descent;
}

Picture master_picture() {
  return {"loss-scaling-master", 216.0,
          "A weight of 1 from which small updates are taken: in f16 alone it never moves, with a master in f32 it does",
          [](plot::Canvas& canvas) {
            const Descent descent = descend();
            plot::LineChart chart{.title = "a weight in f16",
                                  .x = {.title = "updates of 2^-14 each", .whole = true},
                                  .y = {.title = ""},
                                  .series = {}};
            chart.series = {
                {.name = "no master", .colour = plot::kWrong, .x = descent.steps, .y = descent.half},
                {.name = "f32 master", .colour = plot::series_colour(0), .x = descent.steps, .y = descent.with_master}};
            chart.y.include(0.92);
            draw_line_chart(canvas, {4.0, 8.0, kWidth - 8.0, 200.0}, chart);
          }};
}

}  // namespace

Concept loss_scaling_concept(const std::string& folder) {
  Concept page{"loss-scaling", {histogram_picture(folder), scale_picture(folder), master_picture()}, {}};
  const std::vector<Bin> bins = read_bins(folder);
  for (const int power : {0, kScaled})
    page.lines.push_back(fmt::format(
        "scale 2^{:<2}  become 0: {:.2f} % of activations' gradients, {:.2f} % of weights'; overflow: {:.0f}", power,
        100.0 * vanishing_share(bins, &Bin::activations, power), 100.0 * vanishing_share(bins, &Bin::weights, power),
        overflowing_count(bins, power)));
  const std::vector<ScaledStep> steps = read_scales(folder);
  const auto skipped = std::ranges::count(steps, false, &ScaledStep::taken);
  page.lines.push_back(fmt::format("steps {}, skipped {}, scale of the first step 2^{:.0f}, of the last 2^{:.0f}",
                                   steps.size(), skipped, steps.front().scale, steps.back().scale));
  const Descent descent = descend();
  page.lines.push_back(fmt::format("after 1000 updates: {} without a master, {} with one", descent.half.back(),
                                   descent.with_master.back()));
  return page;
}

}  // namespace tandem::pictures
