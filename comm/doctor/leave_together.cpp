// Waiting for the others' end, or for what they say of this rank.
#include "tandem/comm/doctor/leave_together.h"

#include "tandem/comm/doctor/end_process.h"

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

/// Ranks of this host whose processes are there and have not left.
std::vector<int> those_that_stay(const StatusBoard& board) {
  std::vector<int> ranks;
  for (const RankView& rank : board.look_here())
    if (rank.end == RankEnd::none && rank.state != ProcessState::ended) ranks.push_back(rank.rank);
  return ranks;
}

bool all_are_held_up(const GroupView& group, const std::vector<int>& ranks) {
  return std::ranges::all_of(ranks, [&](int rank) {
    const ProcessState state = group.ranks[static_cast<std::size_t>(rank)].state;
    return state == ProcessState::stopped || state == ProcessState::held;
  });
}

/// The one that tells all lines: the lowest of this host that has left.
bool is_first_that_left(const GroupView& group, int rank) {
  const auto first = std::ranges::find_if(group.ranks, [](const RankView& other) {
    return other.is_known && !other.is_far && other.end == RankEnd::left && other.state != ProcessState::ended;
  });
  return first != group.ranks.end() && first->rank == rank;
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

void leave_together(const std::function<void()>& end_all) {
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
  using Clock = std::chrono::steady_clock;
  // Time in which this process does not run, as after Ctrl-Z, does not count.
  constexpr std::chrono::milliseconds kMostBetweenLooks{500};
  std::chrono::duration<double> held_up{};
  Clock::time_point last = Clock::now();
  for (auto waited = std::chrono::milliseconds(); std::ranges::any_of(board->statuses(), is_there);
       waited += kBetweenLooks) {
    const bool is_blamed = std::ranges::any_of(board->statuses(), [](const RankStatus& status) {
      return status.has_found_fault.load(std::memory_order_acquire) != 0;
    });
    if (is_blamed) {
      std::this_thread::sleep_for(kForOthers);
      _exit(2);
    }
    if (waited % kBetweenLooksAtProcesses == std::chrono::milliseconds()) {
      const std::vector<int> stayed = those_that_stay(*board);
      if (stayed.empty()) return;
      const GroupView group = board->look();
      const Clock::time_point now = Clock::now();
      held_up += std::min<Clock::duration>(now - std::exchange(last, now), kMostBetweenLooks);
      if (!all_are_held_up(group, stayed)) held_up = {};
      if (const double timeout = board->mine().timeout; timeout > 0.0 && held_up.count() >= timeout) {
        const Diagnosis diagnosis = explain_leaving(group, stayed);
        const bool tells_all = is_first_that_left(group, board->place().rank);
        end_process(*board, group, diagnosis,
                    {tells_all ? text_of(diagnosis) : diagnosis.cause + "\n", tells_all, end_all});
      }
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace tandem::comm
