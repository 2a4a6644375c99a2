// Text of the progress line: pure functions, so that every width and state can be tested.
#pragma once

#include "tandem/train/terminal.h"

#include <cstdint>
#include <string>

namespace tandem::train {

/// Where an epoch stands.
struct Progress {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t epochs = 0;
  std::int64_t step = 0;  ///< steps done in this epoch
  std::int64_t steps = 0;
  std::int64_t images = 0;  ///< done in this epoch, on all ranks
  double seconds = 0.0;     ///< since the epoch began
  double loss = 0.0;        ///< mean over the epoch so far; of a GPU without the last step, unless that is the first
  double accuracy = 0.0;    ///< percent, over the same images
  const char* phase = "epoch";  ///< word in front of the number
};

/// "41s", "3:07", "1:02:45"; "?" if negative or not finite.
std::string format_duration(double seconds);

/// "950", "12.3k", "1.2M" with at least three digits where there are that many.
std::string format_count(double count);

/// "0.913" with `decimals` digits after the point, "1.23e+22" from 1,000 on, "nan" whatever its sign.
std::string format_loss(double loss, int decimals = 3);

/// One redrawable line of at most `terminal.width - 3` columns, so that ^C stays in it, too, without line end:
///   epoch 3/24  62% |######    | 121/195 [0:41<0:25, 2.9k images/s, loss 0.812, acc 71.3%]
/// On narrow terminals the bar shrinks first, then timing and figures go.
std::string format_bar(const Progress& progress, const Terminal& terminal);

/// The same facts for a file: no bar, no escape codes.
std::string format_plain(const Progress& progress);

/// Columns that UTF-8 `text` takes on a terminal: 2 of ideographs and emoji (character_width.h), escape codes not
/// counted.
int display_width(const std::string& text);

}  // namespace tandem::train
