// Profiler ranges: how often named pieces of work ran and how long they took.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// One name's share since start_profile(). Ranges nest: `seconds` counts the ranges inside, `self_seconds` does not.
struct ProfileEntry {
  std::string name;
  std::int64_t count = 0;
  double seconds = 0.0;
  double self_seconds = 0.0;
};

namespace detail {
extern std::atomic<bool> profiling;
}  // namespace detail

/// True between start_profile() and stop_profile().
inline bool profiling() { return detail::profiling.load(std::memory_order_relaxed); }

/// Forgets what was collected and collects from now on, in all threads.
void start_profile();

/// Ends collecting; returns what was, by falling self_seconds.
std::vector<ProfileEntry> stop_profile();

/// Times its scope under a name. Costs one load while not profiling: the name is then neither made nor copied.
class ProfileRange {
 public:
  explicit ProfileRange(std::string_view name) {
    if (profiling()) [[unlikely]]
      begin(std::string(name));
  }
  /// For names that are costly to make: `make_name()` is only called while profiling.
  template <std::invocable MakeName>
  explicit ProfileRange(MakeName&& make_name) {
    if (profiling()) [[unlikely]]
      begin(make_name());
  }
  ~ProfileRange() {
    if (active_) [[unlikely]]
      end();
  }
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void begin(std::string name);
  void end() noexcept;

  bool active_ = false;
  std::string name_;
  Clock::time_point start_;
  ProfileRange* outer_ = nullptr;
  Clock::duration inner_{};  // time in ranges within this one
};

}  // namespace tandem
