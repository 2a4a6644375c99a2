#include "tandem/comm/backends/native/obstacle.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

namespace tandem::comm {

std::string obstacle_to(Backend& backend, const std::function<void()>& step) {
  std::string mine;
  try {
    step();
  } catch (const std::exception& error) {
    mine = error.what();
  }
  const std::vector<std::string> all = backend.all_gather_bytes(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const bool is_one = std::ranges::all_of(all, [&](const std::string& other) { return other == all[rank]; });
    return is_one ? all[rank] : fmt::format("rank {}: {}", rank, all[rank]);
  }
  return "";
}

}  // namespace tandem::comm
