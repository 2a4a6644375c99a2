#pragma once

#include "tandem/comm/doctor/status_board.h"

#include <functional>
#include <memory>

namespace tandem::comm {

/// The board of a group that this process has made. One that is still there in leave_together() counts as left then:
/// the others do not wait for the end of its process.
void follow_for_leave_together(const std::shared_ptr<StatusBoard>& board);

/// The board of a group of all ranks that this process has left: leave_together() looks at the last one.
void remember_for_leave_together(std::shared_ptr<StatusBoard> board);

/// Before MPI is finalised: returns when all ranks of this host have left their group, too. Where one of them finds a
/// fault, as that this rank has returned early, this process ends with exit code 2. So it does where all that have not
/// left are stopped, or held by a debugger, for longer than the deadline: they are named, and `end_all` ends all ranks.
/// Open MPI 4.1's mpirun may hang where a rank waits in MPI_Finalize while others end by an error.
void leave_together(const std::function<void()>& end_all);

}  // namespace tandem::comm
