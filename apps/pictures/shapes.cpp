#include "apps/pictures/shapes.h"

#include "tandem/train/plot/palette.h"

#include <cmath>

namespace tandem::pictures {

namespace plot = train::plot;

void draw_cell(plot::Canvas& canvas, const plot::Box& box, const std::string& text, const plot::Colour& colour,
               double opacity) {
  canvas.rectangle({box.x + 0.5, box.y + 0.5, box.width - 1.0, box.height - 1.0}, {colour, opacity});
  draw_centred(canvas, box.x + box.width / 2.0, box.y + box.height / 2.0 + 4.0, text);
}

void draw_outline(plot::Canvas& canvas, const plot::Box& box, const plot::Stroke& stroke) {
  const double right = box.x + box.width, bottom = box.y + box.height;
  const plot::Point corners[] = {{box.x, box.y}, {right, box.y}, {right, bottom}, {box.x, bottom}, {box.x, box.y}};
  canvas.line(corners, stroke);
}

void draw_arrow(plot::Canvas& canvas, plot::Point from, plot::Point to, const plot::Colour& colour) {
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  const plot::Point way{(to.x - from.x) / length, (to.y - from.y) / length};
  const plot::Point neck{to.x - 7.0 * way.x, to.y - 7.0 * way.y};
  canvas.segment(from, neck, {colour, 1.5});
  const plot::Point head[] = {
      to, {neck.x - 4.0 * way.y, neck.y + 4.0 * way.x}, {neck.x + 4.0 * way.y, neck.y - 4.0 * way.x}};
  canvas.polygon(head, {colour});
}

void draw_text(plot::Canvas& canvas, double x, double y, const std::string& text, double size) {
  canvas.text({x, y}, text, {.colour = plot::kInk, .size = size});
}

void draw_heading(plot::Canvas& canvas, double x, double y, const std::string& text) {
  canvas.text({x, y}, text, {.colour = plot::kInk, .size = kTextSize, .bold = true});
}

void draw_note(plot::Canvas& canvas, double x, double y, const std::string& text) {
  canvas.text({x, y}, text, {.colour = plot::kMuted, .size = kSmallSize});
}

void draw_centred(plot::Canvas& canvas, double x, double y, const std::string& text, double size) {
  canvas.text({x, y}, text, {.colour = plot::kInk, .size = size, .anchor = plot::Anchor::middle});
}

}  // namespace tandem::pictures
