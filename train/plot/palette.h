// The colours of charts, by their parts; report pages have a dark value for each name.
#pragma once

#include "tandem/train/plot/canvas.h"

#include <array>
#include <cstddef>

namespace tandem::train::plot {

inline const Colour kInk{"ink", "#1d2127"};      // text
inline const Colour kMuted{"muted", "#69707b"};  // labels of axes
inline const Colour kRule{"rule", "#e3e6ea"};    // grid
inline const Colour kPaper{"card", "#ffffff"};
inline const Colour kTraining{"train", "#2f6fbb"};
inline const Colour kValidation{"validation", "#b7710a"};
inline const Colour kTest{"test", "#12805f"};
inline const Colour kWrong{"wrong", "#c23b3b"};
inline const Colour kOnPale{"on-pale", "#000000"};  // text on the pale shades of a colour
inline const Colour kOnFull{"", "#000000"};         // on its full ones, which are lighter on dark pages

/// Eight that can be told apart, also by most who are colour-blind; series of more begin again, dashed.
inline const std::array<Colour, 8> kSeries{{{"s1", "#2f6fbb"},
                                            {"s2", "#b7710a"},
                                            {"s3", "#12805f"},
                                            {"s4", "#b0478a"},
                                            {"s5", "#7257c9"},
                                            {"s6", "#c2503b"},
                                            {"s7", "#17869b"},
                                            {"s8", "#7a7d1c"}}};

inline const Colour& series_colour(std::size_t index) { return kSeries[index % kSeries.size()]; }
/// Whether the series is dashed, which tells it from the one eight before.
inline bool is_series_dashed(std::size_t index) { return index / kSeries.size() % 2 == 1; }

}  // namespace tandem::train::plot
