#include "tandem/comm/backends/native/parked_windows.h"

#include "tandem/comm/backends/keep_for_ever.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

namespace tandem::comm {

namespace {

struct Parked {
  std::mutex mutex;
  std::vector<ParkedWindow> windows;
};

Parked& parked() {
  static Parked& all = *new Parked;  // never destroyed: the process's end frees what is left
  return all;
}

/// Whether it may be freed. To close and to free may wait for all streams of the process.
bool look_after(ParkedWindow& one) {
  if (std::ranges::all_of(one.ends, &Event::is_done)) {
    one.ends.clear();
    one.kept.clear();
    one.at_work.reset();
  }
  if (one.at_work || StreamAtWork::exists()) return false;
  if (!one.has_closed->load(std::memory_order_relaxed)) {
    one.window->close();
    one.has_closed->store(true, std::memory_order_release);
  }
  return std::ranges::all_of(one.others_have_closed,
                             [](const auto* other) { return other->load(std::memory_order_acquire); });
}

/// Its device has failed.
void keep(ParkedWindow one) {
  for (std::shared_ptr<void>& thing : one.kept) detail::keep_for_ever(std::move(thing));
  detail::keep_for_ever(std::shared_ptr<StreamAtWork>(std::move(one.at_work)));
  detail::keep_for_ever(std::shared_ptr<DeviceWindow>(std::move(one.window)));
  detail::keep_for_ever(std::move(one.memory));
}

}  // namespace

std::atomic<int>& StreamAtWork::count() {
  static std::atomic<int> all = 0;
  return all;
}

void park(ParkedWindow window) {
  {
    const std::lock_guard lock(parked().mutex);
    parked().windows.push_back(std::move(window));
  }
  look_after_parked_windows();
}

std::size_t look_after_parked_windows() {
  const std::lock_guard lock(parked().mutex);
  std::vector<ParkedWindow>& windows = parked().windows;
  for (std::size_t i = windows.size(); i-- > 0;) {
    try {
      if (!look_after(windows[i])) continue;
    } catch (const std::exception&) {
      keep(std::move(windows[i]));
    }
    windows.erase(windows.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return windows.size();
}

}  // namespace tandem::comm
