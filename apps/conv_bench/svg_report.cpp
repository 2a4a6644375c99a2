// The picture: bars on the left grow with speed; points on the right lie under the roofline (Williams, Waterman,
// Patterson: "Roofline", CACM 2009).
#include "apps/conv_bench/reports.h"
#include "apps/measure/quantile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace tandem::conv_bench {

namespace {

constexpr double kTop = 50, kHeight = 300, kBar = 12, kGap = 14, kLeft = 70, kRoofline = 420;
constexpr double kLeastBars = 240;  // the width of their title
/// As many as there are implementations to choose from.
constexpr std::array<const char*, 20> kColours{
    "#1b6ca8", "#6fb1e0", "#2e8b57", "#999999", "#d9822b", "#f2b879", "#b03a48", "#de8f99", "#7b4ea3", "#c3a6dd",
    "#8c564b", "#c8a29a", "#17a2b8", "#9edae5", "#8a8f00", "#d6d957", "#222222", "#90c978", "#e754b8", "#5b5bd6"};

double flops_per_second(const Result& result) { return result.work.flops / apps::median(result.seconds()); }
double done_per_second(const Result& result) { return result.work.done_flops / apps::median(result.seconds()); }

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char letter : text)
    safe += letter == '<' ? "&lt;" : letter == '>' ? "&gt;" : letter == '&' ? "&amp;" : std::string(1, letter);
  return safe;
}

/// The least 1, 2 or 5 times a power of ten by which five ticks reach `highest`.
double tick_step(double highest) {
  const double power = std::pow(10.0, std::floor(std::log10(highest / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power * 5 >= highest) return factor * power;
  return 10 * power;
}

/// 1, 2 and 5 times the powers of ten from `least` to `most`: the ticks of a logarithmic axis.
std::vector<double> log_ticks(double least, double most) {
  std::vector<double> ticks;
  const int last = static_cast<int>(std::floor(std::log10(most)));
  for (int exponent = static_cast<int>(std::floor(std::log10(least))); exponent <= last; ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, exponent);
      if (tick >= least && tick <= most) ticks.push_back(tick);
    }
  }
  return ticks;
}

class Drawing {
 public:
  Drawing(const BenchSettings& settings, const std::vector<Result>& results) : settings_(settings), results_(results) {
    for (const Result& result : results) {
      colours_.try_emplace(result.impl, kColours[colours_.size() % kColours.size()]);
      highest_ = std::max(highest_, flops_per_second(result));
    }
  }

  std::string text() {
    const double bars_end = results_.empty() ? kLeft : bars();
    if (!results_.empty()) roofline(bars_end + 90);
    legend();
    const double width = bars_end + 90 + kRoofline + 30;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"white\"/>\n{2}</svg>\n",
        width, kTop + kHeight + 190, body_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    body_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>", x1, y1, x2, y2, style);
  }
  void label(double x, double y, const std::string& what, const char* style) {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>", x, y, style, escaped(what));
  }
  std::string title_of(const Result& result) const {
    return escaped(fmt::format("{}, batch {}, {} {}, {}: {:.1f} us, {:.1f} GFLOP/s, {:.1f} done", result.layer.text(),
                               result.batch, name_of(result.dtype), name_of(result.pass), result.impl,
                               1e6 * apps::median(result.seconds()), 1e-9 * flops_per_second(result),
                               1e-9 * done_per_second(result)));
  }

  /// One group of bars per layer, batch, dtype and pass. Returns where they end.
  double bars() {
    double x = kLeft;
    const double step = tick_step(highest_);
    for (int i = 0; i * step <= highest_; ++i)
      label(kLeft - 6, kTop + kHeight * (1.0 - i * step / highest_) + 4, fmt::format("{:g}", 1e-9 * i * step),
            "text-anchor=\"end\"");
    label(kLeft, kTop - 12, "GFLOP/s by the definition of convolution", "");
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      if (i == 0 || !result.is_rival_of(results_[i - 1])) {
        x += i == 0 ? 6 : kGap;
        label(0, 0,
              fmt::format("{} {} b{} {} {}", result.layer.net, result.layer.name, result.batch, name_of(result.dtype),
                          name_of(result.pass)),
              fmt::format("transform=\"translate({:.1f},{:.1f}) rotate(60)\"", x, kTop + kHeight + 12).c_str());
      }
      const double height = kHeight * flops_per_second(result) / highest_;
      add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}</title></rect>", x,
          kTop + kHeight - height, kBar - 1, height, colours_[result.impl], title_of(result));
      x += kBar;
    }
    const double end = std::max(x + 6, kLeft + kLeastBars);
    line(kLeft, kTop + kHeight, end, kTop + kHeight, "stroke=\"black\"");
    line(kLeft, kTop, kLeft, kTop + kHeight, "stroke=\"black\"");
    return end;
  }

  /// Both axes are logarithmic.
  void roofline(double left) {
    double least_x = 1e30, most_x = 0.0, least_y = 1e30, most_y = 0.0;
    for (const Result& result : results_) {
      least_x = std::min(least_x, result.work.done_flops / result.work.bytes);
      most_x = std::max(most_x, result.work.done_flops / result.work.bytes);
      least_y = std::min(least_y, done_per_second(result));
      most_y = std::max(most_y, done_per_second(result));
    }
    const Ceilings& ceilings = settings_.ceilings;
    const double roof = std::max(ceilings.flops_f32, ceilings.flops_half);
    most_y = std::max(most_y, roof);
    least_x /= 2, most_x *= 2, least_y /= 2, most_y *= 2;
    const auto x = [&](double value) {
      return left + kRoofline * std::log(value / least_x) / std::log(most_x / least_x);
    };
    const auto y = [&](double value) {
      return kTop + kHeight * (1.0 - std::log(value / least_y) / std::log(most_y / least_y));
    };
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"black\"/>", left,
        kTop, kRoofline, kHeight);
    label(left, kTop - 12, "roofline: GFLOP/s really done over FLOP per byte", "");
    for (const double tick : log_ticks(least_x, most_x))
      label(x(tick), kTop + kHeight + 14, fmt::format("{:g}", tick), "text-anchor=\"middle\"");
    for (const double tick : log_ticks(least_y, most_y))
      label(left - 6, y(tick) + 4, fmt::format("{:g}", 1e-9 * tick), "text-anchor=\"end\"");
    for (const double flops : std::set{ceilings.flops_f32, ceilings.flops_half}) {
      if (flops <= 0.0 || ceilings.bandwidth <= 0.0) continue;
      const double ridge = std::clamp(flops / ceilings.bandwidth, least_x, most_x);
      const double foot = std::max(least_x, least_y / ceilings.bandwidth);
      line(x(foot), y(std::min(foot * ceilings.bandwidth, flops)), x(ridge),
           y(std::min(ridge * ceilings.bandwidth, flops)), "stroke=\"black\" stroke-dasharray=\"4 3\"");
      line(x(ridge), y(flops), x(most_x), y(flops), "stroke=\"black\" stroke-dasharray=\"4 3\"");
      label(x(most_x) - 4, y(flops) - 4, fmt::format("{:.4g} GFLOP/s", 1e-9 * flops), "text-anchor=\"end\"");
    }
    for (const Result& result : results_) {
      add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" fill-opacity=\"0.8\"><title>{}</title></circle>",
          x(result.work.done_flops / result.work.bytes), y(done_per_second(result)), colours_[result.impl],
          title_of(result));
    }
  }

  void legend() {
    double x = kLeft;
    for (const auto& [impl, colour] : colours_) {
      add("<rect x=\"{:.1f}\" y=\"8\" width=\"11\" height=\"11\" fill=\"{}\"/>", x, colour);
      label(x + 15, 18, impl, "");
      x += 30 + 7.0 * static_cast<double>(impl.size());
    }
  }

  const BenchSettings& settings_;
  const std::vector<Result>& results_;
  std::map<std::string, std::string> colours_;
  double highest_ = 0.0;
  std::string body_;
};

}  // namespace

std::string svg_report(const BenchSettings& settings, const std::vector<Result>& results) {
  return Drawing(settings, results).text();
}

}  // namespace tandem::conv_bench
