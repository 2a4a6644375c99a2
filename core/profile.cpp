// The books of the profiler: one table for all threads, and each thread's stack of open ranges.
#include "core/profile.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace tandem {

namespace detail {
std::atomic<bool> profiling{false};
}  // namespace detail

namespace {

struct Totals {
  std::int64_t count = 0;
  std::chrono::steady_clock::duration total{}, self{};
};

std::mutex table_mutex;
std::map<std::string, Totals, std::less<>>& table() {
  static auto* const totals = new std::map<std::string, Totals, std::less<>>;  // outlives ranges of exiting threads
  return *totals;
}

thread_local ProfileRange* innermost = nullptr;

double to_seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void start_profile() {
  const std::lock_guard lock(table_mutex);
  table().clear();
  detail::profiling = true;
}

std::vector<ProfileEntry> stop_profile() {
  detail::profiling = false;
  const std::lock_guard lock(table_mutex);
  std::vector<ProfileEntry> entries;
  for (const auto& [name, totals] : table()) {
    entries.push_back({name, totals.count, to_seconds(totals.total), to_seconds(totals.self)});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const ProfileEntry& a, const ProfileEntry& b) { return a.self_seconds > b.self_seconds; });
  return entries;
}

void ProfileRange::begin(std::string name) {
  name_ = std::move(name);
  outer_ = innermost;
  innermost = this;
  active_ = true;
  start_ = Clock::now();
}

void ProfileRange::end() noexcept {
  const Clock::duration elapsed = Clock::now() - start_;
  innermost = outer_;
  if (outer_ != nullptr) outer_->inner_ += elapsed;
  if (!profiling()) return;  // began before stop_profile()
  const std::lock_guard lock(table_mutex);
  Totals& totals = table()[name_];
  ++totals.count;
  totals.total += elapsed;
  totals.self += elapsed - inner_;
}

}  // namespace tandem
