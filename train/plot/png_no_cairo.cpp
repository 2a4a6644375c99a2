// Without cairo.
#include "tandem/core/error.h"
#include "tandem/train/plot/png.h"

namespace tandem::train::plot {

bool has_png_pictures() { return false; }

std::string png_picture(Size /*size*/, double /*pixels*/, const Drawing& /*draw*/) {
  fail("no picture as PNG: this build of Tandem has no cairo: install libcairo2-dev and build it again");
}

}  // namespace tandem::train::plot
