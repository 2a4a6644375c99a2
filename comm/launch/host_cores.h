// Ranks and cores of each host.
// Example:
//     const std::vector<std::string> all{"0 1 4 5", "0 1 4 5", "2 1 1"};  // place_text() of three ranks
//     const std::map<int, HostCores> hosts = cores_by_host(all);
//     const std::size_t ranks = hosts.at(0).ranks, cores = hosts.at(2).cores.size();  // 2, 1
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace tandem::comm {

/// What the ranks of one host compute with.
struct HostCores {
  std::size_t ranks = 0;     ///< how many are on it
  std::size_t threads = 0;   ///< that these compute with, all together
  std::set<int> cores = {};  ///< that these may run on, by number; empty where the system does not say
};

/// For a rank to tell the others: the number of its host (Place::node), the threads that it computes with
/// (num_threads()), and the cores that it may run on.
std::string place_text(int node);

/// By host, from the texts of all ranks; what stands behind the numbers is passed over.
std::map<int, HostCores> cores_by_host(std::span<const std::string> place_texts);

/// How many cores the ranks of a host share, where there are more ranks than cores; the least of several such hosts, 0
/// where there is none.
int shared_cores(const std::map<int, HostCores>& hosts);

/// Whether each host has, beside those that its ranks compute on, a core for one more thread of each rank. False where
/// a system does not say what cores there are.
bool has_spare_cores(const std::map<int, HostCores>& hosts);

}  // namespace tandem::comm
