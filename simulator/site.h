// Places in the source: from a call's std::source_location, or from an instruction's address.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

namespace tandem::simulator {

/// A line of source; `line` 0 where it is not known (a program without debug information).
struct Site {
  std::string file;
  unsigned line = 0;

  /// "kernels/pool/max_pool2d.cu:41"
  std::string text() const;
};

/// A place as a number that fits into the shadow of memory: 0 is "nowhere known".
using SiteId = std::uint32_t;

SiteId site_id(const std::source_location& where);
/// `file` must live as long as the program.
SiteId site_id(const char* file, unsigned line);
SiteId site_id_of_address(const void* return_address);
Site site_of(SiteId id);

/// Where the function that begins at `address` is written.
Site site_of_function(const void* address);

/// The name of the function at `address`, without its arguments; "kernel at 0x..." where the program has no symbols.
std::string function_name(const void* address);

}  // namespace tandem::simulator
