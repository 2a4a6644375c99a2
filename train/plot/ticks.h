// Where an axis has its ticks, and what stands at them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::train::plot {

/// 1, 2 or 5 times a power of ten, the least by which at most `about` steps fit between the bounds. Throws Error unless
/// both are finite and least < most.
double tick_step(double least, double most, int about);

/// The multiples of tick_step() inside the bounds, both included.
std::vector<double> linear_ticks(double least, double most, int about = 5);

/// Of a logarithmic axis: 1, 2 and 5 times the powers of ten inside the bounds, or every n-th power where these are
/// more than `about`; where the bounds are so close that there are less than two, linear_ticks(). Throws Error unless
/// 0 < least < most, and both are finite.
std::vector<double> log_ticks(double least, double most, int about = 10);

/// The same of bytes: every n-th power of two.
std::vector<double> log_ticks_of_bytes(double least, double most, int about = 10);

/// What the numbers of an axis are of.
enum class Unit : std::uint8_t { none, percent, bytes, seconds };

/// A tick in as many digits as its neighbours at a distance of `step` take: "0.25", "40 %", "1.5k", "3 GiB". Not a
/// finite number: "–".
std::string tick_text(double value, double step, Unit unit = Unit::none);

/// A number for people, in about three digits: "0.0312", "92.4 %", "6,430", "1.5 GiB", "2 min 5 s".
std::string number_text(double value, Unit unit = Unit::none);

}  // namespace tandem::train::plot
