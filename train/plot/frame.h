// Axes: from figures to places on the canvas.
#pragma once

#include "tandem/train/plot/canvas.h"
#include "tandem/train/plot/ticks.h"

#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem::train::plot {

/// An axis, of which include() finds the bounds: those of all finite figures that it was given; of positive ones, where
/// it is logarithmic.
struct Axis {
  std::string title;
  Unit unit = Unit::none;
  bool logarithmic = false;
  bool whole = false;  ///< ticks at whole numbers only
  int ticks = 5;       ///< about
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  bool can_show(double value) const;
  void include(double value);
  void include(std::span<const double> values);

  /// Leaves a share of the range free at both ends; gives an axis of no figures, or of one, bounds that can be drawn.
  void pad(double share);
};

/// Its axes are padded first.
class Frame {
 public:
  Frame(const Box& area, Axis x, Axis y) : area_(area), x_(std::move(x)), y_(std::move(y)) {}

  /// Where a figure is; it must be one that its axis can show.
  double x(double value) const { return area_.x + area_.width * share(x_, value); }
  double y(double value) const { return area_.y + area_.height * (1.0 - share(y_, value)); }

  /// Grid, labels of the ticks, and titles of the axes; that of y stands above its labels.
  void draw(Canvas& canvas) const;
  void draw_x(Canvas& canvas) const;
  void draw_y(Canvas& canvas) const;

  const Box& area() const { return area_; }
  const Axis& x_axis() const { return x_; }
  const Axis& y_axis() const { return y_; }

 private:
  static double share(const Axis& axis, double value);

  Box area_;
  Axis x_, y_;
};

/// The widest label of an axis' ticks, in points.
double width_of_ticks(const Axis& axis);

inline constexpr double kTickSize = 11.0;

}  // namespace tandem::train::plot
