// Counters behind memory_stats().
#include "tandem/core/memory.h"

#include "tandem/core/error.h"
#include "tandem/core/fork.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace tandem {

namespace {

std::mutex stats_mutex;
[[maybe_unused]] const bool stats_held = (hold_during_fork(stats_mutex), true);

/// The CPU first, then the GPUs by index. Never destroyed: storages in static objects may outlive every other static.
std::vector<MemoryStats>& all_stats() {
  static auto& all = *new std::vector<MemoryStats>(1);
  return all;
}

std::size_t place_of(Device device) {
  return device.type == DeviceType::cpu ? 0 : 1 + static_cast<std::size_t>(device.index);
}

MemoryStats& stats_of(Device device) {
  const std::size_t place = place_of(device);
  if (place >= all_stats().size()) all_stats().resize(place + 1);
  return all_stats()[place];
}

thread_local MemoryTag thread_tag = MemoryTag::activations;
thread_local bool thread_poisons = false;

}  // namespace

MemoryStats memory_stats(Device device) {
  require(device.type == DeviceType::cpu || device.index >= 0, "memory_stats: there is no {}", name_of(device));
  const std::lock_guard lock(stats_mutex);
  return place_of(device) < all_stats().size() ? stats_of(device) : MemoryStats{};
}

void reset_peak_memory() {
  const std::lock_guard lock(stats_mutex);
  for (MemoryStats& stats : all_stats()) {
    stats.peak = stats.current;
    stats.peak_total = stats.current_total;
  }
}

std::string format_memory(std::int64_t bytes) {
  constexpr std::string_view kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024.0 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024.0;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string largest_memory_tags(Device device) {
  constexpr std::size_t kShown = 10;
  const MemoryStats stats = memory_stats(device);
  std::vector<MemoryTag> tags;
  for (int i = 0; i < kMemoryTagCount; ++i) {
    if (stats.current[static_cast<std::size_t>(i)] > 0) tags.push_back(static_cast<MemoryTag>(i));
  }
  std::stable_sort(tags.begin(), tags.end(),
                   [&](MemoryTag a, MemoryTag b) { return stats.current_of(a) > stats.current_of(b); });
  if (tags.size() > kShown) tags.resize(kShown);
  std::string text;
  for (const MemoryTag tag : tags)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(tag), format_memory(stats.current_of(tag)));
  return text.empty() ? "nothing" : text;
}

MemoryTag current_memory_tag() { return thread_tag; }

MemoryTagScope::MemoryTagScope(MemoryTag tag) : previous_(thread_tag) { thread_tag = tag; }

MemoryTagScope::~MemoryTagScope() { thread_tag = previous_; }

PoisonScope::PoisonScope() : previous_(thread_poisons) { thread_poisons = true; }

PoisonScope::~PoisonScope() { thread_poisons = previous_; }

namespace detail {

bool poison_new_storages() { return thread_poisons; }

void count_memory(Device device, MemoryTag tag, std::int64_t bytes) {
  const std::lock_guard lock(stats_mutex);
  MemoryStats& stats = stats_of(device);
  const auto index = static_cast<std::size_t>(tag);
  stats.current[index] += bytes;
  stats.current_total += bytes;
  if (stats.current[index] > stats.peak[index]) stats.peak[index] = stats.current[index];
  if (stats.current_total > stats.peak_total) stats.peak_total = stats.current_total;
}

}  // namespace detail

}  // namespace tandem
