// How a pass of a convolution is dealt out to our threads: by images, or by rows where there are fewer images.
#pragma once

#include "tandem/core/parallel.h"
#include "tandem/kernels/conv/geometry.h"

#include <cstdint>
#include <vector>

namespace tandem::kernels::onednn {

/// A part of a pass: some images, or some rows of one.
struct Part {
  std::int64_t number;                     // counted from 0
  std::int64_t first_input, first_output;  // offsets in elements: where x and y of the part begin
  ConvGeometry g;                          // a convolution of its own
};

/// Whose rows the parts of one image do not share: those of the output (y, and sums over it) or of the input (grad_x).
enum class Rows { of_output, of_input };

/// The parts of a pass, at most one for each thread and at most `most_parts` of them; whole images where an image
/// cannot be cut. `g` has one image or more.
std::vector<Part> parts_of(const ConvGeometry& g, Rows cut, std::int64_t most_parts = kMostThreads);

}  // namespace tandem::kernels::onednn
