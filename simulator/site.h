// Places in the source: from a call's std::source_location, or from an instruction's address.
#pragma once

#include <cstddef>
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

SiteId site_id(std::source_location where);
/// `file` must live as long as the program.
SiteId site_id(const char* file, unsigned line);

// Addresses of code are kept as a distance from this program's start; call sites get numbers from kFirstCallSite on.
inline constexpr SiteId kFirstCallSite = 0x80000000u;
extern "C" const char __executable_start;

inline SiteId site_id_of_address(const void* return_address) {
  const auto distance = static_cast<const char*>(return_address) - &__executable_start;
  return distance > 0 && distance < static_cast<std::ptrdiff_t>(kFirstCallSite) ? static_cast<SiteId>(distance) : 0;
}

Site site_of(SiteId id);

/// Where the function that begins at `address` is written.
Site site_of_function(const void* address);

/// The name of the function at `address`, without its arguments; "kernel at 0x..." where the program has no symbols.
std::string function_name(const void* address);

}  // namespace tandem::simulator
