// Pictures of a step: what each rank computed and exchanged when, and one all-reduce enlarged.
#pragma once

#include "tandem/train/plot/canvas.h"
#include "tandem/train/report/read_step.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem::train::report {

/// Ranks that are drawn.
inline constexpr std::size_t kMostRanksDrawn = 8;

/// Of phases, of layers, of buckets ("bucket 0") and of what steps of algorithms are busy with ("wait", "copy",
/// "combine", "send").
plot::Colour colour_of(std::string_view name);

/// With rows of each rank: phases, layers, streams of a GPU, and buckets of gradients, or collectives where there are
/// no buckets.
double height_of_step(const StepTrace& step);
void draw_step(plot::Canvas& canvas, const StepTrace& step, double width);

/// An operation between ranks whose steps are known.
struct Exchange {
  std::string name, algorithm;
  std::int64_t number = -1;
  double bytes = 0.0;
  double begin = 0.0,
         end = 0.0;  ///< what is drawn: from shortly before the last rank joined until behind the last copy
};

/// The one with the most bytes; number -1: there is none.
Exchange largest_exchange(const StepTrace& step);
double height_of_exchange(const StepTrace& step, const Exchange& exchange);
void draw_exchange(plot::Canvas& canvas, const StepTrace& step, const Exchange& exchange, double width);

}  // namespace tandem::train::report
