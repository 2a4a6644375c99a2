// SerialScope: lets a thread do its loops alone.
#pragma once

namespace tandem {

/// While it lives, each parallel_for of this thread is done on the spot: for background threads, whose helpers would
/// take cores from the work that they are behind.
/// Example:
///     #include "tandem/core/parallel.h"
///     const SerialScope alone;
///     int parts = 0;
///     parallel_for(1 << 20, 1, [&](std::int64_t, std::int64_t) { ++parts; });
///     const int all = parts;  // 1
class SerialScope {
 public:
  SerialScope();
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool before_;
};

}  // namespace tandem
