// What charts are drawn on: a page of points (1/72 inch on paper), its origin at the top left, y downwards.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tandem::train::plot {

struct Point {
  double x = 0.0;
  double y = 0.0;
};

struct Box {
  double x = 0.0;
  double y = 0.0;
  double width = 0.0;
  double height = 0.0;
};

/// A colour by its part in the picture. In a page that has CSS variables, --NAME decides, so that light and dark pages
/// differ; everywhere else, and where the name is empty, `value` does: "#rrggbb".
struct Colour {
  std::string name;
  std::string value;
};

struct Stroke {
  Colour colour;
  double width = 1.0;
  double opacity = 1.0;
  bool dashed = false;
};

struct Fill {
  Colour colour;
  double opacity = 1.0;
};

enum class Anchor : std::uint8_t { start, middle, end };

struct TextStyle {
  Colour colour;
  double size = 12.0;
  Anchor anchor = Anchor::start;
  double degrees = 0.0;  ///< clockwise, about the text's own point
  bool bold = false;
};

/// Texts are UTF-8 and stand on their point's line. `tip`, where not empty, is shown where a backend can show it, when
/// the shape is pointed at. All coordinates must be finite.
class Canvas {
 public:
  Canvas() = default;
  virtual ~Canvas() = default;
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  virtual void line(std::span<const Point> points, const Stroke& stroke) = 0;
  virtual void polygon(std::span<const Point> points, const Fill& fill) = 0;
  /// Rectangles of one fill, without seams between neighbours.
  virtual void rectangles(std::span<const Box> boxes, const Fill& fill, const std::string& tip) = 0;
  virtual void circle(Point centre, double radius, const Fill& fill, const std::string& tip) = 0;
  virtual void text(Point at, const std::string& text, const TextStyle& style) = 0;

  void rectangle(const Box& box, const Fill& fill, const std::string& tip = "") { rectangles({&box, 1}, fill, tip); }
  void segment(Point from, Point to, const Stroke& stroke) {
    const Point ends[] = {from, to};
    line(ends, stroke);
  }
};

struct Size {
  double width = 0.0;
  double height = 0.0;
};

/// What draws a picture on whatever it is given.
using Drawing = std::function<void(Canvas&)>;

}  // namespace tandem::train::plot
