// Tells AddressSanitizer, where it is in the build, which parts of the arenas may be touched.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tandem::simulator {

inline void mark_usable([[maybe_unused]] const void* start, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(start, bytes);
#endif
}

inline void mark_unusable([[maybe_unused]] const void* start, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(start, bytes);
#endif
}

}  // namespace tandem::simulator
