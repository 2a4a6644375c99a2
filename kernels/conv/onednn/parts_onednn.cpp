#include "tandem/kernels/conv/onednn/parts.h"

#include "tandem/core/parallel.h"

#include <algorithm>
#include <optional>

namespace tandem::kernels::onednn {
namespace {

/// Rows of the output of a geometry with one image, and the rows of the input that they are made of; nothing where
/// there are none of these.
std::optional<Part> output_rows(ConvGeometry g, std::int64_t begin, std::int64_t end) {
  const std::int64_t reached = begin * g.stride_h - g.pad_h;
  const std::int64_t reached_end = (end - 1) * g.stride_h - g.pad_h + g.dilation_h * (g.r - 1) + 1;
  const std::int64_t first = std::max<std::int64_t>(reached, 0), last = std::min(reached_end, g.h);
  if (first >= last) return std::nullopt;
  g.p = end - begin;
  g.h = last - first;
  g.pad_h = first - reached;
  return Part{0, first * g.w * g.c, begin * g.q * g.k, g};
}

/// Rows of the input of a geometry with one image, and the rows of the output that they have a share in; nothing where
/// there are none of these.
std::optional<Part> input_rows(ConvGeometry g, std::int64_t begin, std::int64_t end) {
  const std::int64_t unreached = begin + g.pad_h - g.dilation_h * (g.r - 1);
  const std::int64_t first = unreached > 0 ? (unreached + g.stride_h - 1) / g.stride_h : 0;
  const std::int64_t last = std::min((end - 1 + g.pad_h) / g.stride_h + 1, g.p);
  const std::int64_t reached = first * g.stride_h - g.pad_h;
  if (first >= last || reached > begin) return std::nullopt;
  g.p = last - first;
  g.h = end - begin;
  g.pad_h = begin - reached;
  return Part{0, begin * g.w * g.c, first * g.q * g.k, g};
}

std::vector<Part> image_parts(const ConvGeometry& g, std::int64_t count) {
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = g.n * i / count;
    parts.push_back({i, first * (g.input_numel() / g.n), first * (g.output_numel() / g.n), g});
    parts.back().g.n = g.n * (i + 1) / count - first;
  }
  return parts;
}

}  // namespace

std::vector<Part> parts_of(const ConvGeometry& g, Rows cut, std::int64_t most_parts) {
  const std::int64_t most = std::min<std::int64_t>(detail::in_parallel() ? 1 : num_threads(), most_parts);
  const std::int64_t rows = cut == Rows::of_input ? g.h : g.p, bands = std::min(most / g.n, rows);
  const std::vector<Part> images = image_parts(g, std::min(g.n, most));
  if (bands < 2) return images;
  std::vector<Part> parts;
  for (const Part& image : images) {
    for (std::int64_t band = 0; band < bands; ++band) {
      const std::int64_t begin = rows * band / bands, end = rows * (band + 1) / bands;
      const auto part = cut == Rows::of_input ? input_rows(image.g, begin, end) : output_rows(image.g, begin, end);
      if (!part) return images;
      parts.push_back(
          {std::ssize(parts), image.first_input + part->first_input, image.first_output + part->first_output, part->g});
    }
  }
  return parts;
}

}  // namespace tandem::kernels::onednn
