// Within hosts, then between them, then within them again.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/schedule_builder.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <map>

namespace tandem::comm {

namespace {

/// The ranks of each host, rising; hosts by their first rank.
std::vector<std::vector<int>> hosts_of(std::span<const int> node_of_rank) {
  std::vector<std::vector<int>> hosts;
  std::map<int, std::size_t> place;  // by node
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto [found, is_new] = place.try_emplace(node_of_rank[rank], hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[found->second].push_back(static_cast<int>(rank));
  }
  return hosts;
}

/// Rounds that a binomial tree of the largest host takes.
int tree_rounds(const std::vector<std::vector<int>>& hosts) {
  int rounds = 0;
  for (const auto& host : hosts) {
    while ((std::size_t{1} << rounds) < host.size()) ++rounds;
  }
  return rounds;
}

}  // namespace

Schedule two_level_all_reduce(std::span<const int> node_of_rank) {
  require(!node_of_rank.empty(), "two-level: there are no ranks");
  const auto hosts = hosts_of(node_of_rank);
  const int count = static_cast<int>(hosts.size()), up = tree_rounds(hosts), across = 2 * (count - 1);
  ScheduleBuilder schedule("two-level", static_cast<int>(node_of_rank.size()), count);
  for (const auto& host : hosts) {
    for (int round = 0; round < up; ++round) {
      const std::size_t distance = std::size_t{1} << round;
      for (std::size_t place = 0; place + distance < host.size(); place += 2 * distance) {
        for (int chunk = 0; chunk < count; ++chunk) schedule.combine(round, host[place + distance], host[place], chunk);
      }
      const int down = up + across + (up - 1 - round);
      for (std::size_t place = 0; place + distance < host.size(); place += 2 * distance) {
        for (int chunk = 0; chunk < count; ++chunk) schedule.copy(down, host[place], host[place + distance], chunk);
      }
    }
  }
  const Schedule ring = ring_all_reduce(count);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (const Step& step : ring.of_rank[host]) {
      if (step.action == Action::send) continue;
      const int from = hosts[static_cast<std::size_t>(step.peer)].front(), to = hosts[host].front();
      if (step.action == Action::reduce) {
        schedule.combine(up + step.round, from, to, step.chunk);
      } else {
        schedule.copy(up + step.round, from, to, step.chunk);
      }
    }
  }
  return schedule.take();
}

}  // namespace tandem::comm
