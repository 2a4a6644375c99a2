// From the file or a measurement to the group.
#include "comm_tuning.h"

#include "tandem/comm/agreement.h"
#include "tandem/train/message_costs_file.h"

#include <fmt/core.h>

#include <string>

namespace tandem::apps {

namespace {

/// Why nothing is to be chosen, or "".
std::string obstacle(const comm::ProcessGroup& group) {
  if (group.size() == 1) return "one rank exchanges nothing";
  if (!group.algorithm_choices().empty()) return "";
  if (group.name() == "native" || group.name() == "threads")
    return "ranks of one host add up in shared memory; --comm-algorithm by-cost has them exchange messages";
  return fmt::format("backend {} chooses for itself", group.name());
}

/// Rank 0 keeps and tells them.
void keep(const Settings& s, comm::ProcessGroup& group, const std::string& key, const comm::MessageCosts& costs,
          bool is_known) {
  comm::run_agreed(group, [&] {
    if (group.rank() != 0) return;
    const bool is_kept = !is_known && !s.comm_costs.empty();
    if (is_kept) train::save_message_costs(s.comm_costs, key, costs);
    fmt::print("  messages {}\n  sums     {}{}\n", train::describe(costs, group),
               train::describe(group.algorithm_choices()),
               is_kept ? fmt::format("; kept in {}", s.comm_costs) : std::string());
  });
}

}  // namespace

void tune_comm(const Settings& s, comm::ProcessGroup& group) {
  if (!s.tune_comm && s.comm_costs.empty()) return;
  const bool first = group.rank() == 0;
  const std::string_view option = s.tune_comm ? "--tune-comm" : "--comm-costs";
  if (const std::string why = obstacle(group); !why.empty()) {
    if (first) fmt::print(stderr, "note: {}: {}\n", option, why);
    return;
  }
  const std::string key = train::message_costs_key(group);
  train::LoadedCosts loaded;
  if (first && !s.comm_costs.empty()) loaded = train::load_message_costs(s.comm_costs, key);
  if (!loaded.problem.empty()) fmt::print(stderr, "note: --comm-costs {}\n", loaded.problem);
  const bool is_known = group.all_gather_bytes(loaded.costs ? "known" : "").front() == "known";
  if (!is_known && !s.tune_comm) {
    if (first && loaded.problem.empty())
      fmt::print(stderr, "note: --comm-costs {}: holds nothing for {}; --tune-comm measures it\n", s.comm_costs, key);
    return;
  }
  comm::MessageCosts costs;
  if (loaded.costs) costs = *loaded.costs;
  if (!is_known) costs = group.measure_message_costs();
  group.use_message_costs(costs);
  keep(s, group, key, costs, is_known);
}

}  // namespace tandem::apps
