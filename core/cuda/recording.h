// What may not happen while work is recorded, and whose memory it is that recorded work takes.
#pragma once

#include "tandem/core/stream.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::cuda {

/// While one lives, this thread records work for a WorkGraph. It should outlive the capture: what it must not free
/// during it, it frees at the end.
class RecordingScope {
 public:
  RecordingScope();
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  /// Throws Error if the work has freed device memory that it had not taken: the graph may still use it. And if it has
  /// kept some that it has taken: that is the graph's, and another launch takes it again.
  void require_own_memory() const;
  /// What note_action() was given.
  std::vector<std::function<void()>> take_actions() { return std::exchange(actions_, {}); }
  /// Frees what counters_in_recording() was given; behind the work, on the stream that is recorded.
  void free_counters(void* stream);
  /// True if the work has kept memory of the graph.
  bool has_kept_memory() const;

 private:
  friend void note_taken(void* block, std::int64_t bytes, bool is_of_graph);
  friend bool may_free_now(void* block);
  friend void note_action(std::function<void()> action);
  friend void free_later(void* block, std::int64_t bytes, std::function<void()> free);
  friend void** counters_in_recording(void* stream);

  struct Block {
    std::int64_t bytes;
    bool is_of_graph;
  };

  RecordingScope* outer_;
  std::map<void*, Block> taken_;     // and not freed
  std::map<void*, void*> counters_;  // by stream
  std::vector<std::function<void()>> frees_, actions_;
  std::int64_t foreign_bytes_ = 0;
};

/// True while this thread records work.
bool is_recording();

/// Keeps what the host is to do behind each launch of what this thread records.
void note_action(std::function<void()> action);

/// Throws Error if this thread records work: `what` cannot be part of it, because it waits for streams, which ends a
/// recording, or asks for events that it would have recorded.
void require_no_recording(std::string_view what);

/// True while this stream is recorded for a graph: events in it would belong to the graph, and can be neither asked nor
/// waited for.
bool is_recorded(const Stream& stream);

/// Tells the recording of this thread, if there is one, that device memory was taken; `is_of_graph`: in a stream that
/// is recorded.
void note_taken(void* block, std::int64_t bytes, bool is_of_graph);

/// False if device memory is for free_later(): what this thread has not taken since it records, and what a recording
/// has left behind, which is its graph's.
bool may_free_now(void* block);

/// Where the recording of this thread keeps the counters of a stream (phase_counters.h), null at first: memory that is
/// taken in that stream. Null if the stream is not recorded by this thread.
void** counters_in_recording(void* stream);

/// Frees the memory by `free` once the recording of this thread has ended; never, if it is a graph's.
void free_later(void* block, std::int64_t bytes, std::function<void()> free);

}  // namespace tandem::cuda
