// Systems that are not known to tell of cores and of the process that started this one.
#include "tandem/comm/launch/mpirun.h"
#include "tandem/comm/launch/threads.h"

namespace tandem::comm {

CoreSet allowed_cores() { return {}; }

bool undo_default_binding() { return false; }

ProcessCall launcher_call() { return {}; }

}  // namespace tandem::comm
