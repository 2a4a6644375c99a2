// Waiting for the others' end, or for what they say of this rank.
#include "tandem/comm/doctor/leave_together.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

struct LeftBoard {
  std::mutex mutex;
  std::shared_ptr<StatusBoard> board;
  std::vector<std::weak_ptr<StatusBoard>> all;  // of this process
};

LeftBoard& left_board() {
  static LeftBoard& left = *new LeftBoard;  // never destroyed
  return left;
}

}  // namespace

void follow_for_leave_together(const std::shared_ptr<StatusBoard>& board) {
  LeftBoard& left = left_board();
  const std::scoped_lock lock(left.mutex);
  std::erase_if(left.all, [](const auto& other) { return other.expired(); });
  left.all.push_back(board);
}

void remember_for_leave_together(std::shared_ptr<StatusBoard> board) {
  LeftBoard& left = left_board();
  const std::scoped_lock lock(left.mutex);
  left.board = std::move(board);
}

void leave_together() {
  constexpr std::chrono::milliseconds kBetweenLooks{1}, kBetweenLooksAtProcesses{100}, kForOthers{2000};
  std::shared_ptr<StatusBoard> board;
  {
    LeftBoard& left = left_board();
    const std::scoped_lock lock(left.mutex);
    board = left.board;
    for (const auto& each : left.all)
      if (const auto own = each.lock())
        if (RankEnd none = RankEnd::none; own->mine().end.compare_exchange_strong(none, RankEnd::left)) board = own;
  }
  if (!board) return;
  const auto is_there = [](const RankStatus& status) {
    return status.magic.load(std::memory_order_acquire) == RankStatus::kMagic &&
           status.end.load(std::memory_order_acquire) == RankEnd::none;
  };
  for (auto waited = std::chrono::milliseconds(); std::ranges::any_of(board->statuses(), is_there);
       waited += kBetweenLooks) {
    const bool is_blamed = std::ranges::any_of(board->statuses(), [](const RankStatus& status) {
      return status.has_found_fault.load(std::memory_order_acquire) != 0;
    });
    if (is_blamed) {
      std::this_thread::sleep_for(kForOthers);
      _exit(2);
    }
    if (waited % kBetweenLooksAtProcesses == std::chrono::milliseconds() &&
        std::ranges::none_of(board->look_here(), [](const RankView& rank) {
          return rank.end == RankEnd::none && rank.state != ProcessState::ended;
        }))
      return;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace tandem::comm
