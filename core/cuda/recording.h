// What may not happen while work is recorded.
#pragma once

#include <string_view>

namespace tandem::cuda {

/// While one lives, this thread records work for a WorkGraph.
class RecordingScope {
 public:
  RecordingScope();
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
};

/// True while this thread records work.
bool is_recording();

/// Throws Error if this thread records work: `what` cannot be part of it, because it waits for streams, which ends a
/// recording, or asks for events that it would have recorded.
void require_no_recording(std::string_view what);

}  // namespace tandem::cuda
