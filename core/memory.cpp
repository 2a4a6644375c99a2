// Counters behind memory_stats().
#include "core/memory.h"

#include <mutex>

namespace tandem {

namespace {

std::mutex stats_mutex;
MemoryStats stats;
thread_local MemoryTag thread_tag = MemoryTag::activations;
thread_local bool thread_poisons = false;

}  // namespace

MemoryStats memory_stats() {
  const std::lock_guard lock(stats_mutex);
  return stats;
}

void reset_peak_memory() {
  const std::lock_guard lock(stats_mutex);
  stats.peak = stats.current;
  stats.peak_total = stats.current_total;
}

MemoryTag current_memory_tag() { return thread_tag; }

MemoryTagScope::MemoryTagScope(MemoryTag tag) : previous_(thread_tag) { thread_tag = tag; }

MemoryTagScope::~MemoryTagScope() { thread_tag = previous_; }

PoisonScope::PoisonScope() : previous_(thread_poisons) { thread_poisons = true; }

PoisonScope::~PoisonScope() { thread_poisons = previous_; }

namespace detail {

bool poison_new_storages() { return thread_poisons; }

void count_memory(MemoryTag tag, std::int64_t bytes) {
  const std::lock_guard lock(stats_mutex);
  const auto index = static_cast<std::size_t>(tag);
  stats.current[index] += bytes;
  stats.current_total += bytes;
  if (stats.current[index] > stats.peak[index]) stats.peak[index] = stats.current[index];
  if (stats.current_total > stats.peak_total) stats.peak_total = stats.current_total;
}

}  // namespace detail

}  // namespace tandem
