// Lines of more points than there are pixels.
#pragma once

#include "tandem/train/plot/canvas.h"

#include <span>
#include <vector>

namespace tandem::train::plot {

/// Points of a line, sorted by x, of which each column of one unit keeps the first, the lowest, the highest and the
/// last, in their order: the line looks the same, and no spike is lost. As it is where that would spare nothing.
std::vector<Point> thinned(std::span<const Point> points);

}  // namespace tandem::train::plot
