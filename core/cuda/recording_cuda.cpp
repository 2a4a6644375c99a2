// Recording: what it refuses, and its memory.
#include "tandem/core/cuda/recording.h"

#include "tandem/core/cuda/check.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace tandem::cuda {

namespace {

thread_local RecordingScope* innermost = nullptr;  // of this thread

/// Memory of graphs that recorded work has kept: no longer that of the tensors in it. Never destroyed, as storages in
/// static objects may outlive every other static.
struct KeptMemory {
  std::mutex mutex;
  std::set<void*> blocks;
  std::atomic<bool> is_empty = true;  // so that hardly anybody has to lock
};
KeptMemory& kept_memory() {
  static KeptMemory& kept = *new KeptMemory;
  return kept;
}

bool is_kept(void* block) {
  KeptMemory& kept = kept_memory();
  if (kept.is_empty) return false;
  const std::lock_guard lock(kept.mutex);
  return kept.blocks.count(block) != 0;
}

}  // namespace

RecordingScope::RecordingScope() : outer_(innermost) { innermost = this; }

RecordingScope::~RecordingScope() {
  innermost = outer_;
  if (has_kept_memory()) {
    KeptMemory& kept = kept_memory();
    const std::lock_guard lock(kept.mutex);
    for (const auto& [block, what] : taken_)
      if (what.is_of_graph) kept.blocks.insert(block);
    kept.is_empty = false;
  }
  for (const auto& free : frees_) free();
}

bool RecordingScope::has_kept_memory() const {
  return std::any_of(taken_.begin(), taken_.end(), [](const auto& block) { return block.second.is_of_graph; });
}

void RecordingScope::require_own_memory() const {
  require(frees_.empty(),
          "work graph: the work frees {} of device memory that was there before it, and that the graph may still use; "
          "keep such tensors as long as the graph",
          format_memory(foreign_bytes_));
  std::int64_t kept = 0;
  for (const auto& [start, block] : taken_) kept += block.is_of_graph ? block.bytes : 0;
  require(
      kept == 0,
      "work graph: the work keeps {} of device memory that it has taken, and that belongs to the graph; make what is "
      "to stay before the WorkGraph",
      format_memory(kept));
}

void RecordingScope::free_counters(void* stream) {
  for (const auto& [of, memory] : std::exchange(counters_, {}))
    TANDEM_CHECK_CUDA(cudaFreeAsync(memory, static_cast<cudaStream_t>(stream)));
}

bool is_recording() { return innermost != nullptr; }

void note_action(std::function<void()> action) { innermost->actions_.push_back(std::move(action)); }

void require_no_recording(std::string_view what) {
  require(!is_recording(), "work graph: {} cannot be recorded; do it before the WorkGraph is made, or after its launch",
          what);
}

namespace {

bool is_captured(void* stream) {
  cudaStreamCaptureStatus status{};
  TANDEM_CHECK_CUDA(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

bool is_recorded(const Stream& stream) { return is_captured(stream.native()); }

void** counters_in_recording(void* stream) {
  return innermost != nullptr && is_captured(stream) ? &innermost->counters_[stream] : nullptr;
}

void note_taken(void* block, std::int64_t bytes, bool is_of_graph) {
  if (innermost != nullptr) innermost->taken_[block] = {bytes, is_of_graph};
}

bool may_free_now(void* block) {
  return !is_kept(block) && (innermost == nullptr || innermost->taken_.erase(block) != 0);
}

void free_later(void* block, std::int64_t bytes, std::function<void()> free) {
  if (is_kept(block)) return;
  innermost->frees_.push_back(std::move(free));
  innermost->foreign_bytes_ += bytes;
}

}  // namespace tandem::cuda
