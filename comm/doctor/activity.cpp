// Following the ranges of a thread.
#include "tandem/comm/doctor/activity.h"

#include "tandem/comm/long_work.h"
#include "tandem/core/range_observer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <vector>

namespace tandem::comm {

struct ShownActivity::Places {
  std::mutex mutex;  // groups may be dropped in another thread
  std::vector<RankStatus*> statuses;
  int long_work = 0;  // scopes
  std::atomic<std::size_t> groups = 0;
};

namespace {

std::shared_ptr<ShownActivity::Places>& places_of_thread() {
  thread_local std::shared_ptr<ShownActivity::Places> places;
  return places;
}

ShownActivity::Places& made_places_of_thread() {
  auto& places = places_of_thread();
  if (!places) places = std::make_shared<ShownActivity::Places>();
  return *places;
}

void show(std::string_view name, std::string_view module) {
  const auto& places = places_of_thread();
  if (!places) return;
  std::array<char, decltype(RankStatus::activity)::kBytes> buffer;
  std::string_view text = name;
  if (!module.empty()) {
    const auto result = fmt::format_to_n(buffer.data(), buffer.size(), "{} of {}", name, module);
    text = {buffer.data(), static_cast<std::size_t>(result.out - buffer.data())};
  }
  const std::scoped_lock lock(places->mutex);
  for (RankStatus* const status : places->statuses) status->activity.set(text);
}

/// Whether there are other groups.
bool show_elsewhere(const RankStatus& own, const OperationView& operation) {
  const auto& places = places_of_thread();
  if (!places || places->groups.load(std::memory_order_relaxed) < 2) return false;
  const std::scoped_lock lock(places->mutex);
  for (RankStatus* const status : places->statuses)
    if (status != &own) status->elsewhere.set(operation);
  return true;
}

void count_long_work(int change) {
  ShownActivity::Places& places = made_places_of_thread();
  const std::scoped_lock lock(places.mutex);
  places.long_work += change;
  for (RankStatus* const status : places.statuses) status->long_work.store(places.long_work, std::memory_order_release);
}

}  // namespace

ShownActivity::ShownActivity(RankStatus& status) : status_(status) {
  made_places_of_thread();
  places_ = places_of_thread();
  const std::scoped_lock lock(places_->mutex);
  places_->statuses.push_back(&status_);
  places_->groups = places_->statuses.size();
  status_.long_work.store(places_->long_work, std::memory_order_release);
  detail::follow_ranges(show);
}

ShownActivity::~ShownActivity() {
  const std::scoped_lock lock(places_->mutex);
  std::erase(places_->statuses, &status_);
  places_->groups = places_->statuses.size();
}

WaitElsewhere::WaitElsewhere(const RankStatus& own, const OperationView& operation)
    : own_(own), is_shown_(show_elsewhere(own, operation)) {}

WaitElsewhere::~WaitElsewhere() {
  if (is_shown_) show_elsewhere(own_, {});
}

LongWork::LongWork() { count_long_work(1); }

LongWork::~LongWork() { count_long_work(-1); }

}  // namespace tandem::comm
