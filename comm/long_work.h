// Work that one rank does while the others wait for it, for longer than a wait may take.
// Example:
//     #include "tandem/comm/launch/mpi_environment.h"
//     #include "tandem/comm/process_group.h"
//     MpiEnvironment environment;
//     const auto group = make_process_group("auto", environment);
//     if (group->rank() == 0) {
//       const LongWork writing;
//       // ... what may take minutes
//     }
//     group->barrier();  // has no deadline meanwhile
#pragma once

namespace tandem::comm {

/// While it is there, other ranks that wait for this one wait for as long as it takes (GroupOptions::timeout), in all
/// groups that were made in this thread. A process that ends or is stopped meanwhile is named as ever.
class LongWork {
 public:
  LongWork();
  ~LongWork();
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;
};

}  // namespace tandem::comm
