// Pictures of docs/concepts, and the lines of text that its pages quote.
#pragma once

#include "tandem/train/plot/canvas.h"

#include <string>
#include <vector>

namespace tandem::pictures {

/// All pictures are so wide, in points: a telephone shows them without scaling them down.
inline constexpr double kWidth = 380.0;

struct Picture {
  std::string name;  ///< of its file, without ".svg"
  double height = 0.0;
  std::string description;  ///< what it shows, for those who cannot see it
  train::plot::Drawing draw;
};

/// What a page needs: its pictures, and the same numbers as text.
struct Concept {
  std::string name;
  std::vector<Picture> pictures;
  std::vector<std::string> lines;
};

// One source file each. `folder` is that of the measured figures.
Concept memory_concept();
Concept tape_concept();
Concept implicit_gemm_concept();
Concept ring_concept(const std::string& folder);
Concept buckets_concept(const std::string& folder);
Concept loss_scaling_concept(const std::string& folder);
Concept simulator_concept(const std::string& folder);

}  // namespace tandem::pictures
