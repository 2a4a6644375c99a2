// Steps of 1, 2 and 5.
#include "tandem/train/plot/ticks.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem::train::plot {
namespace {

constexpr const char* kNoNumber = "\xE2\x80\x93";
/// Numbers from this size on, and with more decimals than this step takes, are written as 1e+15.
constexpr double kMostPlain = 1e15, kLeastPlainStep = 1e-12;

void require_bounds(double least, double most) {
  require(std::isfinite(least) && std::isfinite(most) && least < most && std::isfinite(most - least),
          "plot: an axis from {} to {} has no ticks", least, most);
}

int decimals_of(double step) {
  // 1e-9: a step of 0.1 has a logarithm a bit below -1
  return step > 0.0 && std::isfinite(step) ? std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12)
                                           : 0;
}

/// So many significant ones that numbers of this size differ at a distance of `step`.
int significant_digits(double size, double step) {
  constexpr int kFewest = 3, kMost = 17;
  if (!(step > 0.0 && step < size)) return kFewest;
  return std::clamp(static_cast<int>(std::floor(std::log10(size)) - std::floor(std::log10(step) + 1e-9)) + 1, kFewest,
                    kMost);
}

std::string trimmed(std::string digits) {
  if (digits.find('.') == std::string::npos) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

struct Scaled {
  double factor;
  const char* suffix;
};

Scaled scale_of(double value, Unit unit) {
  static constexpr std::array<Scaled, 4> kBytes{
      {{0x1p40, " TiB"}, {0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}}};
  static constexpr std::array<Scaled, 4> kDecimal{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  const double size = std::abs(value);
  if (unit == Unit::percent) return {1.0, " %"};
  if (unit == Unit::seconds) return {1.0, " s"};
  for (const Scaled& scale : unit == Unit::bytes ? kBytes : kDecimal) {
    if (size >= scale.factor && (unit == Unit::bytes || size >= 1e4)) return scale;
  }
  return {1.0, unit == Unit::bytes ? " B" : ""};
}

std::string with_commas(const std::string& digits) {
  std::string out;
  const std::size_t begin = digits.starts_with('-') ? 1 : 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > begin && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string duration_text(double seconds) {
  if (seconds >= kMostPlain) return fmt::format("{:.3g} s", seconds);
  if (seconds == 0.0) return "0 s";
  constexpr double kRoundsUp = 0.9995;  // to 1000 of a unit, which is 1 of the next
  if (seconds < kRoundsUp * 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < kRoundsUp) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 99.95) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

double tick_step(double least, double most, int about) {
  require_bounds(least, most);
  const double rough = (most - least) / std::max(about, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1.0 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

std::vector<double> linear_ticks(double least, double most, int about) {
  const double step = tick_step(least, most, about);
  std::vector<double> ticks;
  const double first = std::ceil(least / step - 1e-9), last = std::floor(most / step + 1e-9);
  // Bounds so close that their difference is rounding: the steps cannot be counted.
  constexpr double kMostSteps = 0x1p50;
  if (std::abs(first) > kMostSteps || std::abs(last) > kMostSteps) return {};
  const auto count = static_cast<int>(last - first);
  for (int i = 0; i <= count; ++i) ticks.push_back((first + i) * step + 0.0);
  return ticks;
}

std::vector<double> log_ticks(double least, double most, int about) {
  require_bounds(least, most);
  require(least > 0.0, "plot: a logarithmic axis cannot begin at {}", least);
  std::vector<double> ticks, powers;
  const int last = static_cast<int>(std::floor(std::log10(most)));
  for (int exponent = static_cast<int>(std::floor(std::log10(least))); exponent <= last; ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, exponent);
      if (tick < least * (1.0 - 1e-12) || tick > most * (1.0 + 1e-12)) continue;
      ticks.push_back(tick);
      if (factor == 1.0) powers.push_back(tick);
    }
  }
  if (ticks.size() < 2) return linear_ticks(least, most, 4);
  if (ticks.size() <= static_cast<std::size_t>(about)) return ticks;
  const std::size_t every = (powers.size() + static_cast<std::size_t>(about) - 1) / static_cast<std::size_t>(about);
  std::vector<double> some;
  for (std::size_t i = 0; i < powers.size(); i += every) some.push_back(powers[i]);
  return some;
}

std::vector<double> log_ticks_of_bytes(double least, double most, int about) {
  require_bounds(least, most);
  require(least > 0.0, "plot: a logarithmic axis cannot begin at {}", least);
  const int first = static_cast<int>(std::ceil(std::log2(least) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(most) + 1e-9));
  if (last <= first) return linear_ticks(least, most, 4);
  int every = 1;  // 1, 2, 4, 10, 20, ...: from 10 on all are of one KiB, MiB or GiB
  while ((last - first) / every >= std::max(about, 1)) every = every == 4 ? 10 : 2 * every;
  std::vector<double> ticks;
  for (int power = first; power <= last; ++power)
    if (power % every == 0) ticks.push_back(std::exp2(power));
  return ticks;
}

std::string tick_text(double value, double step, Unit unit) {
  if (!std::isfinite(value)) return kNoNumber;
  const double size = std::abs(value);
  if (size > 0.0 && unit == Unit::none && (size < 1e-4 || size >= kMostPlain))
    return fmt::format("{:.{}g}", value, significant_digits(size, step));
  const Scaled scale = scale_of(value, unit);
  // In bytes, a round number of GiB has no round step.
  const double digits = unit == Unit::bytes ? std::min(0.1, step / scale.factor) : step / scale.factor;
  const double scaled = value / scale.factor;
  if (std::abs(scaled) >= kMostPlain || (digits > 0.0 && digits < kLeastPlainStep))
    return fmt::format("{:.{}g}", scaled, significant_digits(std::abs(scaled), step / scale.factor)) + scale.suffix;
  const std::string text = fmt::format("{:.{}f}", scaled, decimals_of(digits));
  return (scale.factor > 1.0 || unit == Unit::bytes ? trimmed(text) : text) + scale.suffix;
}

std::string number_text(double value, Unit unit) {
  if (!std::isfinite(value)) return kNoNumber;
  if (unit == Unit::seconds) return fmt::format("{}{}", value < 0.0 ? "-" : "", duration_text(std::abs(value)));
  const double size = std::abs(value);
  if (unit == Unit::percent && size < kMostPlain)
    return fmt::format("{:.{}f} %", size < 0.005 ? 0.0 : value, value == 100.0 || value == 0.0 ? 0 : 2);
  if (unit == Unit::bytes) {
    constexpr double kRoundsUp = 1.0 + 0.05 / 1023.95;  // 1023.95 KiB to 1 MiB
    const Scaled scale = scale_of(value * kRoundsUp, unit);
    const double scaled = value / scale.factor;
    if (std::abs(scaled) >= kMostPlain) return fmt::format("{:.4g}{}", scaled, scale.suffix);
    return trimmed(fmt::format("{:.{}f}", scaled, scale.factor > 1.0 ? 1 : 0)) + scale.suffix;
  }
  if (size >= 999.95 && size < kMostPlain) return with_commas(fmt::format("{:.0f}", value));
  return fmt::format("{:.4g}{}", value, unit == Unit::percent ? " %" : "");
}

}  // namespace tandem::train::plot
