// The thread that looks whether the ranks of a group still go on together.
#pragma once

#include "tandem/comm/doctor/diagnosis.h"
#include "tandem/comm/doctor/heartbeats.h"
#include "tandem/comm/doctor/status_board.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace tandem::comm {

/// Looks twenty times a second, at the others less often where there are many. Something is wrong where a fault is
/// certain (find_fault()), where this rank has waited in one wait for longer than the deadline, or where another rank's
/// watchdog has found something. Time in which this process does not run, as after Ctrl-Z, or in which it waits for
/// long work, does not count, and each step of an algorithm begins it anew. That of the first rank of a host also
/// exchanges what its ranks show with other hosts.
class Watchdog {
 public:
  /// Of the text of what is wrong: called once, in the watchdog's thread. `is_teller`: it has all lines; other ranks'
  /// texts have the first one.
  using Handler = std::function<void(const GroupView& group, const Diagnosis& diagnosis, bool is_teller)>;

  /// `heartbeats`: null for none. `timeout`: seconds, 0 for no deadline. Throws Error where the system gives no thread.
  Watchdog(std::shared_ptr<StatusBoard> board, std::unique_ptr<Heartbeats> heartbeats, double timeout, Handler handler);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// What this rank has found itself, seen in `group`: the watchdog's thread tells it at once as it tells what it
  /// finds, the other hosts first. Does not wait for that. Means nothing where something was told or reported before,
  /// and in a process made by fork(), which has no such thread.
  void report(GroupView group, Diagnosis diagnosis);

 private:
  struct Report {
    GroupView group;
    Diagnosis diagnosis;
  };
  using Clock = std::chrono::steady_clock;

  void work();
  /// True where something was wrong, and was told.
  bool look();
  void tell(const GroupView& group, const Diagnosis& diagnosis);
  void update_own_times(std::chrono::duration<double> passed);

  std::shared_ptr<StatusBoard> board_;
  std::unique_ptr<Heartbeats> heartbeats_;
  double timeout_;
  Handler handler_;
  std::int64_t process_;
  // Of the last look.
  std::uint64_t waits_ = 0, finished_ = 0, steps_ = 0;
  std::chrono::duration<double> waiting_time_{}, time_since_look_{};
  std::chrono::duration<double> fault_time_{};  // since a fault was first seen
  // Since it was seen that another rank has told something of another group.
  std::optional<std::chrono::duration<double>> alarm_time_;
  bool sees_fault_ = false;
  Clock::time_point last_ = Clock::now();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::optional<Report> report_;
  std::thread thread_;
};

}  // namespace tandem::comm
