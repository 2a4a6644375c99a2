// What the pictures are drawn of.
#pragma once

#include "tandem/train/plot/canvas.h"

#include <string>

namespace tandem::pictures {

inline constexpr double kTextSize = 12.0, kSmallSize = 11.0;

/// A box on a pale shade of `colour` with a text in its middle.
void draw_cell(train::plot::Canvas& canvas, const train::plot::Box& box, const std::string& text,
               const train::plot::Colour& colour, double opacity = 0.25);
void draw_outline(train::plot::Canvas& canvas, const train::plot::Box& box, const train::plot::Stroke& stroke);
void draw_arrow(train::plot::Canvas& canvas, train::plot::Point from, train::plot::Point to,
                const train::plot::Colour& colour);
void draw_text(train::plot::Canvas& canvas, double x, double y, const std::string& text, double size = kTextSize);
void draw_heading(train::plot::Canvas& canvas, double x, double y, const std::string& text);
/// In the colour of what is less important.
void draw_note(train::plot::Canvas& canvas, double x, double y, const std::string& text);
void draw_centred(train::plot::Canvas& canvas, double x, double y, const std::string& text, double size = kSmallSize);

}  // namespace tandem::pictures
