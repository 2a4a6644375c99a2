// By cairo.
#include "tandem/core/error.h"
#include "tandem/train/plot/markup.h"
#include "tandem/train/plot/png.h"

#include <cairo/cairo.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numbers>

namespace tandem::train::plot {
namespace {

void check(cairo_status_t status) {
  require(status == CAIRO_STATUS_SUCCESS, "no picture as PNG: cairo: {}", cairo_status_to_string(status));
}

/// cairo stops drawing for good at the first text that is no UTF-8.
std::string valid_utf8(const std::string& text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      valid += "\xEF\xBF\xBD";
    } else {
      valid += text.substr(at, length);
    }
    at += std::max<std::size_t>(1, length);
  }
  return valid;
}

class CairoCanvas final : public Canvas {
 public:
  explicit CairoCanvas(cairo_t* context) : context_(context) {}

  void line(std::span<const Point> points, const Stroke& stroke) override {
    if (points.size() < 2) return;
    trace(points);
    paint(stroke.colour, stroke.opacity);
    cairo_set_line_width(context_, stroke.width);
    cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
    constexpr double kDashes[] = {4.0, 3.0};
    cairo_set_dash(context_, kDashes, stroke.dashed ? 2 : 0, 0.0);
    cairo_stroke(context_);
  }

  void polygon(std::span<const Point> points, const Fill& fill) override {
    if (points.size() < 3) return;
    trace(points);
    paint(fill.colour, fill.opacity);
    cairo_fill(context_);
  }

  void rectangles(std::span<const Box> boxes, const Fill& fill, const std::string& /*tip*/) override {
    for (const Box& box : boxes) cairo_rectangle(context_, box.x, box.y, box.width, box.height);
    paint(fill.colour, fill.opacity);
    cairo_set_antialias(context_, boxes.size() > 1 ? CAIRO_ANTIALIAS_NONE : CAIRO_ANTIALIAS_DEFAULT);
    cairo_fill(context_);
    cairo_set_antialias(context_, CAIRO_ANTIALIAS_DEFAULT);
  }

  void circle(Point centre, double radius, const Fill& fill, const std::string& /*tip*/) override {
    cairo_new_path(context_);
    cairo_arc(context_, centre.x, centre.y, radius, 0.0, 2.0 * std::numbers::pi);
    paint(fill.colour, fill.opacity);
    cairo_fill(context_);
  }

  void text(Point at, const std::string& text, const TextStyle& style) override {
    const std::string valid = valid_utf8(text);
    cairo_save(context_);
    cairo_select_font_face(context_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           style.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(context_, style.size);
    cairo_text_extents_t extents;
    cairo_text_extents(context_, valid.c_str(), &extents);
    const double share = style.anchor == Anchor::start ? 0.0 : style.anchor == Anchor::middle ? 0.5 : 1.0;
    paint(style.colour, 1.0);
    cairo_translate(context_, at.x, at.y);
    cairo_rotate(context_, style.degrees * std::numbers::pi / 180.0);
    cairo_move_to(context_, -share * extents.x_advance, 0.0);
    cairo_show_text(context_, valid.c_str());
    cairo_restore(context_);
  }

 private:
  void trace(std::span<const Point> points) {
    cairo_new_path(context_);
    for (const Point& point : points) cairo_line_to(context_, point.x, point.y);
  }

  void paint(const Colour& colour, double opacity) {
    unsigned value = 0;
    const std::string& text = colour.value;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), value, 16);
    require(text.size() == 7 && text[0] == '#' && error == std::errc{} && end == text.data() + text.size(),
            "plot: a colour is #rrggbb, not '{}'", text);
    cairo_set_source_rgba(context_, (value >> 16U & 255U) / 255.0, (value >> 8U & 255U) / 255.0, (value & 255U) / 255.0,
                          opacity);
  }

  cairo_t* context_;
};

cairo_status_t append(void* to, const unsigned char* bytes, unsigned count) {
  static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

bool has_png_pictures() { return true; }

std::string png_picture(Size size, double pixels, const Drawing& draw) {
  const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(std::lround(size.width * pixels)),
                                 static_cast<int>(std::lround(size.height * pixels))),
      cairo_surface_destroy);
  check(cairo_surface_status(surface.get()));
  const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> context(cairo_create(surface.get()), cairo_destroy);
  cairo_scale(context.get(), pixels, pixels);
  cairo_set_source_rgb(context.get(), 1.0, 1.0, 1.0);
  cairo_paint(context.get());
  CairoCanvas canvas(context.get());
  draw(canvas);
  check(cairo_status(context.get()));
  std::string bytes;
  check(cairo_surface_write_to_png_stream(surface.get(), append, &bytes));
  return bytes;
}

}  // namespace tandem::train::plot
