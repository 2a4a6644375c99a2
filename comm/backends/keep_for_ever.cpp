#include "tandem/comm/backends/keep_for_ever.h"

#include <mutex>
#include <utility>
#include <vector>

namespace tandem::comm::detail {

void keep_for_ever(std::shared_ptr<const void> used) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<const void>>;  // never destroyed
  const std::scoped_lock lock(mutex);
  kept.push_back(std::move(used));
}

}  // namespace tandem::comm::detail
