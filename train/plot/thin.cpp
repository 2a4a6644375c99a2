// Column by column.
#include "tandem/train/plot/thin.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem::train::plot {

std::vector<Point> thinned(std::span<const Point> points) {
  std::vector<Point> kept;
  for (std::size_t begin = 0; begin < points.size();) {
    const double column = std::floor(points[begin].x);
    std::size_t end = begin + 1, lowest = begin, highest = begin;
    for (; end < points.size() && std::floor(points[end].x) == column; ++end) {
      if (points[end].y < points[lowest].y) lowest = end;
      if (points[end].y > points[highest].y) highest = end;
    }
    std::array<std::size_t, 4> picked{begin, lowest, highest, end - 1};
    std::ranges::sort(picked);
    const auto* const rest = std::unique(picked.begin(), picked.end());  // that of std::ranges fails in clang 14
    for (const auto* index = picked.cbegin(); index != rest; ++index) kept.push_back(points[*index]);
    begin = end;
  }
  return kept;
}

}  // namespace tandem::train::plot
