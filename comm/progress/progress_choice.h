// Who moves works on: polls and waits alone, or a thread as well.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <string>
#include <string_view>

namespace tandem::comm {

struct ProgressChoice {
  bool by_thread = false;
  bool has_spare_cores = false;  ///< for the threads of all ranks
  std::string notice = {};  ///< why "auto" did not choose what one would expect; mostly empty, the same on all ranks
};

/// "auto" is a thread where every host has a core for those of its ranks beside the cores that they compute on
/// (has_spare_cores() in comm/launch/host_cores.h), and polls elsewhere. Collective. Throws AgreedError for another
/// name, and for "thread" where the backend's works move on by themselves, or another thread cannot use it.
ProgressChoice choose_progress(std::string_view name, Backend& backend);

}  // namespace tandem::comm
