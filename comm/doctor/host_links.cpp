// Which address of another host to take.
#include "tandem/comm/doctor/host_links.h"

#include <algorithm>

namespace tandem::comm {

std::vector<std::uint32_t> addresses_to_try(std::span<const std::uint32_t> theirs,
                                            std::span<const NetworkInterface> ours) {
  constexpr int kBits = 32;
  const auto is_near = [&](std::uint32_t address) {
    return std::ranges::any_of(ours, [&](const NetworkInterface& own) {
      return own.address != 0 && own.is_up && !own.is_loopback && own.prefix > 0 &&
             (own.address ^ address) >> (kBits - own.prefix) == 0;
    });
  };
  std::vector<std::uint32_t> result;
  for (const std::uint32_t address : theirs)
    if (std::ranges::find(ours, address, &NetworkInterface::address) == ours.end()) result.push_back(address);
  std::ranges::stable_partition(result, is_near);
  return result;
}

}  // namespace tandem::comm
