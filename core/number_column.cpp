// Numbers of a tensor as texts of one width.
#include "tandem/core/number_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

namespace tandem {

namespace {

using std::chars_format;

std::string chars_of(auto value, auto... format) {
  std::array<char, 512> buffer;  // the longest double has 309 digits before the point
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format...);
  require(error == std::errc{}, "number_column: a number has more than {} digits", buffer.size());
  return {buffer.data(), end};
}

/// Whether `text` is rounded to `value`, a finite number of the half type T.
template <typename T>
bool reads_back(double text, double value) {
  const auto at = [](int bits) {
    T half;
    half.bits = static_cast<std::uint16_t>(bits);
    return static_cast<double>(static_cast<float>(half));
  };
  const int bits = T(static_cast<float>(std::abs(value))).bits;
  const double here = at(bits), below = bits == 0 ? 0.0 : at(bits - 1);
  const double above = std::isfinite(at(bits + 1)) ? at(bits + 1) : 2.0 * here - below;
  const double low = (below + here) / 2.0, high = (here + above) / 2.0;  // where rounding changes, exact
  const double size = std::abs(text);
  return bits % 2 == 0 ? size >= low && size <= high : size > low && size < high;
}

double number_of(const std::string& text) {
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The fewest digits that are rounded to a number of the half type T; of these the nearest.
template <typename T>
std::string shortest_half(double value, chars_format format) {
  for (int decimals = 0;; ++decimals) {
    const std::string nearest = chars_of(value, chars_format::scientific, decimals);
    const int exponent = std::stoi(nearest.substr(nearest.find('e') + 1));
    // Next to a power of two the gap above is wider, and the second nearest number may fit where the nearest does not.
    for (const double step : {0.0, 1.0, -1.0}) {
      double digits = number_of(nearest);
      if (step != 0.0) digits += step * std::pow(10.0, exponent - decimals);
      const std::string text = chars_of(digits, chars_format::scientific, decimals);
      if (!reads_back<T>(number_of(text), value) && decimals < std::numeric_limits<float>::max_digits10) continue;
      return format == chars_format::scientific ? text
                                                : chars_of(number_of(text), format, std::max(decimals - exponent, 0));
    }
  }
}

std::string shortest(double value, DType dtype, chars_format format) {
  switch (dtype) {
    case DType::f32:
      return chars_of(static_cast<float>(value), format);
    case DType::f16:
      return shortest_half<Half>(value, format);
    case DType::bf16:
      return shortest_half<BFloat16>(value, format);
    default:
      return chars_of(value, format);
  }
}

/// "-1.25e-07" in parts.
struct Parts {
  std::string whole, fraction, exponent;  // "-1", "25", "-07"
};

Parts split(const std::string& text) {
  const std::string mantissa = text.substr(0, text.find('e'));
  const std::size_t point = mantissa.find('.');
  Parts parts{mantissa.substr(0, point), "", ""};
  if (point != std::string::npos) parts.fraction = mantissa.substr(point + 1);
  if (mantissa.size() < text.size()) parts.exponent = text.substr(mantissa.size() + 1);
  return parts;
}

/// The shortest digits; where those are too many, the nearest number of `precision` digits behind the point, without
/// zeros at its end.
Parts rounded(double value, DType dtype, chars_format format, int precision) {
  Parts parts = split(shortest(value, dtype, format));
  if (static_cast<int>(parts.fraction.size()) > precision) parts = split(chars_of(value, format, precision));
  parts.fraction.erase(parts.fraction.find_last_not_of('0') + 1);
  return parts;
}

/// Decimal digits that every number of the dtype holds.
int digits_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return std::numeric_limits<float>::digits10;
    case DType::f16:
      return 3;
    case DType::bf16:
      return 2;
    default:
      return std::numeric_limits<double>::digits10;
  }
}

double round_to(double value, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::f16:
      return Half(static_cast<float>(value));
    case DType::bf16:
      return BFloat16(static_cast<float>(value));
    default:
      return value;
  }
}

bool is_scientific(const std::vector<double>& finite, DType dtype) {
  double largest = 0.0, smallest = std::numeric_limits<double>::infinity();
  for (const double value : finite) {
    if (value == 0.0) continue;
    largest = std::max(largest, std::abs(value));
    smallest = std::min(smallest, std::abs(value));
  }
  if (largest == 0.0) return false;
  return largest >= std::pow(10.0, std::min(8, digits_of(dtype))) || smallest < round_to(0.0001, dtype) ||
         round_to(largest / smallest, dtype) > 1000.0;
}

/// How wide the parts of a column are.
struct Widths {
  std::size_t whole = 0, fraction = 0, exponent = 0;  // the exponent's digits
};

/// With fewer digits than the column has, a number shows further digits of its exact value.
std::string scientific_text(double value, DType dtype, const Widths& widths) {
  Parts parts = split(shortest(value, dtype, chars_format::scientific));
  if (parts.fraction.size() != widths.fraction)
    parts = split(chars_of(value, chars_format::scientific, static_cast<int>(widths.fraction)));
  return fmt::format("{:>{}}.{}e{}{:0>{}}", parts.whole, widths.whole, parts.fraction, parts.exponent[0],
                     std::string_view(parts.exponent).substr(1), widths.exponent);
}

std::vector<std::string> column_of(const std::vector<double>& values, DType dtype, int precision) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  const bool scientific = is_scientific(finite, dtype);
  const chars_format format = scientific ? chars_format::scientific : chars_format::fixed;
  Widths widths;
  for (const double value : finite) {
    const Parts parts = rounded(value, dtype, format, precision);
    widths.whole = std::max(widths.whole, parts.whole.size());
    widths.fraction = std::max(widths.fraction, parts.fraction.size());
    if (scientific) widths.exponent = std::max(widths.exponent, parts.exponent.size() - 1);
  }
  const std::size_t behind_point = widths.fraction + (scientific ? widths.exponent + 2 : 0);
  if (finite.size() < values.size()) {
    const bool negative = std::find(values.begin(), values.end(), -HUGE_VAL) != values.end();
    const std::size_t special = negative ? 4 : 3;  // "-inf"
    widths.whole = std::max(widths.whole, special - std::min(special, behind_point + 1));
  }
  std::vector<std::string> texts;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      texts.push_back(fmt::format("{:>{}}",
                                  std::isnan(value) ? "nan"
                                  : value < 0.0     ? "-inf"
                                                    : "inf",
                                  widths.whole + 1 + behind_point));
    } else if (scientific) {
      texts.push_back(scientific_text(value, dtype, widths));
    } else {
      const Parts parts = rounded(value, dtype, format, precision);
      texts.push_back(fmt::format("{:>{}}.{:<{}}", parts.whole, widths.whole, parts.fraction, widths.fraction));
    }
  }
  return texts;
}

std::vector<std::string> column_of(const std::vector<std::int64_t>& values) {
  std::vector<std::string> texts;
  for (const std::int64_t value : values) texts.push_back(std::to_string(value));
  std::size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  return texts;
}

}  // namespace

std::vector<std::string> number_column(const Tensor& tensor, int precision) {
  return is_floating(tensor.dtype()) ? column_of(tensor.to_vector<double>(), tensor.dtype(), precision)
                                     : column_of(tensor.to_vector<std::int64_t>());
}

}  // namespace tandem
