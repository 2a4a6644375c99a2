// Elements as they are drawn.
#include "tandem/train/plot/svg.h"

#include "tandem/train/plot/markup.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

namespace tandem::train::plot {
namespace {

/// Hundredths of a point, without the zeros behind them.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

class SvgCanvas final : public Canvas {
 public:
  explicit SvgCanvas(SvgKind kind) : kind_(kind) {}

  void line(std::span<const Point> points, const Stroke& stroke) override {
    if (points.size() < 2) return;
    add("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"", path(points), paint(stroke.colour),
        number(stroke.width));
    if (stroke.opacity < 1.0) add(" stroke-opacity=\"{}\"", number(stroke.opacity));
    if (stroke.dashed) add(" stroke-dasharray=\"4 3\"");
    body_ += " stroke-linejoin=\"round\"/>\n";
  }

  void polygon(std::span<const Point> points, const Fill& fill) override {
    if (points.size() < 3) return;
    add("<path d=\"{}Z\"{}/>\n", path(points), paint(fill));
  }

  void rectangles(std::span<const Box> boxes, const Fill& fill, const std::string& tip) override {
    if (boxes.empty()) return;
    if (boxes.size() == 1) {
      const Box& box = boxes.front();
      add("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", number(box.x), number(box.y), number(box.width),
          number(box.height), paint(fill));
      end("rect", tip);
      return;
    }
    body_ += "<path shape-rendering=\"crispEdges\" d=\"";
    for (const Box& box : boxes)
      add("M{} {}h{}v{}h{}z", number(box.x), number(box.y), number(box.width), number(box.height), number(-box.width));
    add("\"{}", paint(fill));
    end("path", tip);
  }

  void circle(Point centre, double radius, const Fill& fill, const std::string& tip) override {
    add("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}", number(centre.x), number(centre.y), number(radius), paint(fill));
    end("circle", tip);
  }

  void text(Point at, const std::string& text, const TextStyle& style) override {
    if (style.degrees == 0.0) {
      add("<text x=\"{}\" y=\"{}\"", number(at.x), number(at.y));
    } else {
      add("<text transform=\"translate({},{}) rotate({})\"", number(at.x), number(at.y), number(style.degrees));
    }
    add(" font-size=\"{}\" fill=\"{}\"", number(style.size), paint(style.colour));
    if (style.anchor != Anchor::start) add(" text-anchor=\"{}\"", style.anchor == Anchor::middle ? "middle" : "end");
    if (style.bold) body_ += " font-weight=\"600\"";
    add(">{}</text>\n", escaped(text));
  }

  const std::string& body() const { return body_; }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Args>(args)...);
  }

  void end(const char* element, const std::string& tip) {
    if (tip.empty()) {
      body_ += "/>\n";
    } else {
      add("><title>{}</title></{}>\n", escaped(tip), element);
    }
  }

  std::string paint(const Colour& colour) const {
    if (kind_ == SvgKind::file || colour.name.empty()) return escaped(colour.value);
    return escaped(fmt::format("var(--{}, {})", colour.name, colour.value));
  }
  std::string paint(const Fill& fill) const {
    return fmt::format(" fill=\"{}\"{}", paint(fill.colour),
                       fill.opacity < 1.0 ? fmt::format(" fill-opacity=\"{:.3g}\"", fill.opacity) : "");
  }

  static std::string path(std::span<const Point> points) {
    std::string text;
    for (const Point& point : points)
      fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? 'M' : 'L', number(point.x), number(point.y));
    return text;
  }

  SvgKind kind_;
  std::string body_;
};

}  // namespace

std::string svg_picture(Size size, const std::string& description, SvgKind kind, const Drawing& draw) {
  SvgCanvas canvas(kind);
  draw(canvas);
  const std::string width = number(size.width), height = number(size.height);
  const std::string label = escaped(description);
  if (kind == SvgKind::inline_) {
    return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n", width, height, label,
                       canvas.body());
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "aria-label=\"{2}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
      width, height, label, canvas.body());
}

}  // namespace tandem::train::plot
