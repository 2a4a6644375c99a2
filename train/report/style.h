// What report pages look like.
#pragma once

#include <string_view>

namespace tandem::train::report {

/// The style sheet: light and dark, wide and narrow, and on paper. It names no file and no font of the network's.
std::string_view style_sheet();

}  // namespace tandem::train::report
