// Pictures as SVG: text stays text.
#pragma once

#include "tandem/train/plot/canvas.h"

#include <string>

namespace tandem::train::plot {

enum class SvgKind : std::uint8_t {
  file,    ///< on white, colours by their values
  inline_  ///< a part of an HTML page, as wide as the page lets it: colours by CSS variables, ground and font the
           ///< page's
};

/// `description` is what the picture shows, for those who cannot see it.
std::string svg_picture(Size size, const std::string& description, SvgKind kind, const Drawing& draw);

}  // namespace tandem::train::plot
