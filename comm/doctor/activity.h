// What the program of a rank is in, shown to the others.
#pragma once

#include "tandem/comm/doctor/rank_status.h"

#include <memory>

namespace tandem::comm {

/// While it is there, `status` has the name of the innermost profiler range (core/profiler.h) of the thread that made
/// it, "" outside of any, and whether it does long work (comm/long_work.h). Each range of such a thread then costs some
/// tenths of a microsecond, in other threads less.
class ShownActivity {
 public:
  explicit ShownActivity(RankStatus& status);
  ~ShownActivity();
  ShownActivity(const ShownActivity&) = delete;
  ShownActivity& operator=(const ShownActivity&) = delete;

  struct Places;

 private:
  RankStatus& status_;
  std::shared_ptr<Places> places_;  // of the thread
};

/// While it is there, the groups that this thread has made show, but for that of `own`, that it waits in another one.
class WaitElsewhere {
 public:
  WaitElsewhere(const RankStatus& own, const OperationView& operation);
  ~WaitElsewhere();
  WaitElsewhere(const WaitElsewhere&) = delete;
  WaitElsewhere& operator=(const WaitElsewhere&) = delete;

 private:
  const RankStatus& own_;
  bool is_shown_;
};

}  // namespace tandem::comm
