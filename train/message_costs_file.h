// What messages between ranks cost (comm/cost/message_costs.h), kept in a file from run to run.
#pragma once

#include "tandem/comm/cost/algorithm_choice.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/process_group.h"

#include <optional>
#include <string>
#include <vector>

namespace tandem::train {

/// What the costs depend on, as far as it is known: backend, ranks and their cores on each host, processors, a network
/// that is simulated, and the versions of this build. The same on all ranks. Collective.
std::string message_costs_key(comm::ProcessGroup& group);

/// What load_message_costs() found.
struct LoadedCosts {
  std::optional<comm::MessageCosts> costs;  ///< nothing where the file has none of that key
  std::string problem;                      ///< why the file is of no use, beginning with its name; mostly empty
};

/// What the file holds for this key. No such file yet is no problem.
LoadedCosts load_message_costs(const std::string& path, const std::string& key);

/// Whether save_message_costs() may take this name: of a file of costs, whole or damaged, of an empty one, or of none.
bool can_hold_message_costs(const std::string& path);

/// Adds these costs to the file, or puts them in the place of those of that key, and leaves those of other keys; a file
/// that is damaged is made anew. All of it is written or, throwing Error, nothing. Example:
///     void choose_by_costs(comm::ProcessGroup& group) {
///       const std::string key = message_costs_key(group);
///       std::optional<comm::MessageCosts> costs;
///       if (group.rank() == 0) costs = load_message_costs("costs.json", key).costs;
///       const bool is_known = group.all_gather_bytes(costs ? "known" : "").front() == "known";  // to rank 0
///       if (!is_known) costs = group.measure_message_costs();
///       group.use_message_costs(costs.value_or(comm::MessageCosts()));  // rank 0's hold
///       if (group.rank() == 0) save_message_costs("costs.json", key, *costs);
///     }
void save_message_costs(const std::string& path, const std::string& key, const comm::MessageCosts& costs);

/// What a run tells of them: "4 B in 2.1 us, 128 KiB in 38.0 us; 128 KiB are added in 1.5 us".
std::string describe(const comm::MessageCosts& costs, const comm::ProcessGroup& group);
/// And of what was chosen by them: "by recursive-doubling, from 192.0 KiB on by ring".
std::string describe(const std::vector<comm::AlgorithmChoice>& choices);

}  // namespace tandem::train
