// Where fork() is not known to be safe to follow.
#include "tandem/core/fork.h"

namespace tandem {

void hold_during_fork(std::mutex& /*mutex*/) {}
void call_after_fork(void (* /*body*/)()) {}

}  // namespace tandem
