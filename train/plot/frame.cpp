// Linear and logarithmic axes.
#include "tandem/train/plot/frame.h"

#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/text_width.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train::plot {
namespace {

struct Tick {
  double value;
  std::string text;
  bool goes_first = false;  // where there is not room for all
};

/// What ticks are round in: 1, or for bytes the power of 1024 below the largest of them.
double base_of(const Axis& axis) {
  double base = 1.0;
  if (axis.unit == Unit::bytes && !axis.logarithmic)
    while (axis.most >= 1024.0 * base) base *= 1024.0;
  return base;
}

/// Of a logarithmic axis: what is between ticks, where its bounds are so close that they are even; else 0.
double even_step(const std::vector<double>& ticks) {
  for (std::size_t i = 1; i < ticks.size(); ++i)
    if (ticks[i] < 1.9 * ticks[i - 1]) return ticks[1] - ticks[0];  // 1, 2, 5, 10, ... are farther
  return 0.0;
}

std::vector<Tick> ticks_of(const Axis& axis) {
  const double base = base_of(axis), least = axis.least / base, most = axis.most / base;
  std::vector<double> values = !axis.logarithmic          ? linear_ticks(least, most, axis.ticks)
                               : axis.unit == Unit::bytes ? log_ticks_of_bytes(axis.least, axis.most, 2 * axis.ticks)
                                                          : log_ticks(axis.least, axis.most, 2 * axis.ticks);
  if (axis.whole) std::erase_if(values, [](double value) { return value != std::round(value); });
  const double even = axis.logarithmic ? even_step(values) : base * tick_step(least, most, axis.ticks);
  std::vector<Tick> ticks;
  for (const double value : values) {
    double step = even > 0.0 ? even : value;
    if (axis.whole) step = std::max(step, 1.0);
    const bool is_duration = axis.logarithmic && even == 0.0 && axis.unit == Unit::seconds;
    const double power = axis.logarithmic ? std::log10(value) : 0.5;
    ticks.push_back({base * value,
                     is_duration ? number_text(value, Unit::seconds)  // "10 us", "1 ms"
                                 : tick_text(base * value, step, axis.unit),
                     std::abs(power - std::round(power)) < 1e-9});
  }
  return ticks;
}

}  // namespace

bool Axis::can_show(double value) const {
  // Beyond this, differences and quotients overflow.
  constexpr double kMost = 1e300;
  return std::isfinite(value) && std::abs(value) < kMost && (!logarithmic || value > 1e-300);
}

void Axis::include(double value) {
  if (!can_show(value)) return;
  least = std::min(least, value);
  most = std::max(most, value);
}

void Axis::include(std::span<const double> values) {
  for (const double value : values) include(value);
}

void Axis::pad(double share) {
  if (!(least <= most)) {
    least = logarithmic ? 1.0 : 0.0;
    most = logarithmic ? 10.0 : 1.0;
    return;
  }
  // Bounds that differ by rounding only are one figure.
  const double size = std::max(std::abs(least), std::abs(most));
  const bool is_one_figure = most - least <= 1e-9 * size;
  if (logarithmic) {
    // most / least may be more than a double holds.
    const double factor = is_one_figure ? 2.0 : std::exp(share * (std::log(most) - std::log(least)));
    constexpr double kLeast = 1e-305, kMost = 1e305;
    least = std::max(least / factor, kLeast);
    most = std::min(most * factor, kMost);
  } else if (is_one_figure) {
    const double margin = size == 0.0 ? 1.0 : 0.5 * size;
    least -= margin;
    most += margin;
  } else {
    const double margin = share * (most - least);
    least = least >= 0.0 ? std::max(0.0, least - margin) : least - margin;
    most += margin;
  }
}

double Frame::share(const Axis& axis, double value) {
  if (axis.logarithmic) return (std::log(value) - std::log(axis.least)) / (std::log(axis.most) - std::log(axis.least));
  return (value - axis.least) / (axis.most - axis.least);
}

void Frame::draw_x(Canvas& canvas) const {
  const double bottom = area_.y + area_.height;
  std::vector<Tick> ticks = ticks_of(x_);
  std::ranges::stable_partition(ticks, &Tick::goes_first);
  std::vector<std::pair<double, double>> taken;  // from, to
  for (const auto& [value, text, goes_first] : ticks) {
    constexpr double kGap = 6.0;
    const double half = (text_width(text, kTickSize) + kGap) / 2, from = x(value) - half, to = x(value) + half;
    if (std::ranges::any_of(taken, [&](const auto& other) { return from < other.second && other.first < to; }))
      continue;
    taken.emplace_back(from, to);
    canvas.segment({x(value), bottom}, {x(value), bottom + 4}, {kMuted});
    canvas.text({x(value), bottom + 16}, text, {kMuted, kTickSize, Anchor::middle});
  }
  canvas.segment({area_.x, bottom}, {area_.x + area_.width, bottom}, {kMuted});
  if (!x_.title.empty())
    canvas.text({area_.x + area_.width / 2, bottom + 31}, x_.title, {kMuted, kTickSize, Anchor::middle});
}

void Frame::draw_y(Canvas& canvas) const {
  for (const auto& [value, text, goes_first] : ticks_of(y_)) {
    canvas.segment({area_.x, y(value)}, {area_.x + area_.width, y(value)}, {kRule});
    canvas.text({area_.x - 6, y(value) + 4}, text, {kMuted, kTickSize, Anchor::end});
  }
}

void Frame::draw(Canvas& canvas) const {
  draw_y(canvas);
  draw_x(canvas);
}

double width_of_ticks(const Axis& axis) {
  double width = 0.0;
  for (const Tick& tick : ticks_of(axis)) width = std::max(width, text_width(tick.text, kTickSize));
  return width;
}

}  // namespace tandem::train::plot
