// Pictures as PNG files, drawn by cairo; in builds without it, what is called tells what to install.
#pragma once

#include "tandem/train/plot/canvas.h"

#include <string>

namespace tandem::train::plot {

/// Whether this build has cairo.
bool has_png_pictures();

/// The bytes of the file, on white, `pixels` to a point. Throws Error without cairo and where memory is short.
std::string png_picture(Size size, double pixels, const Drawing& draw);

}  // namespace tandem::train::plot
