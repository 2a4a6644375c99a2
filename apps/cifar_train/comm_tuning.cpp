// From the file or a measurement to the group.
#include "comm_tuning.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/long_work.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/train/message_costs_file.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <string>

namespace tandem::apps {

namespace {

/// Why nothing is to be chosen, or "".
std::string obstacle(const comm::ProcessGroup& group) {
  if (group.size() == 1) return "one rank exchanges nothing";
  if (!group.algorithm_choices().empty()) return "";
  if (group.name() == "native" || group.name() == "threads")
    return "nothing to choose, and nothing is measured: ranks of one host add up in shared memory; --comm-algorithm "
           "by-cost has them exchange messages";
  return fmt::format("backend {} chooses for itself", group.name());
}

/// What rank 0 finds in the file.
struct Kept {
  std::string key;
  train::LoadedCosts loaded;  // of rank 0
  bool is_known = false;      // on all ranks
};

Kept find_kept(const Settings& s, comm::ProcessGroup& group) {
  Kept kept{.key = train::message_costs_key(group), .loaded = {}};
  if (group.rank() == 0 && !s.comm_costs.empty()) kept.loaded = train::load_message_costs(s.comm_costs, kept.key);
  // --tune-comm makes it anew.
  comm::run_agreed(
      group, [&] { require(s.tune_comm || kept.loaded.problem.empty(), "--comm-costs {}", kept.loaded.problem); });
  kept.is_known = group.all_gather_bytes(kept.loaded.costs ? "known" : "").front() == "known";
  return kept;
}

/// Rank 0 keeps and tells them.
void keep(const Settings& s, comm::ProcessGroup& group, const Kept& kept, const comm::MessageCosts& costs,
          const TellLines& tell) {
  comm::run_agreed(group, [&] {
    if (group.rank() != 0) return;
    const comm::LongWork slow_disk;
    std::string place;
    if (kept.is_known) {
      place = fmt::format("; from {}", s.comm_costs);
    } else if (!s.comm_costs.empty()) {
      try {
        train::save_message_costs(s.comm_costs, kept.key, costs);
      } catch (const Error& error) {
        fail("--comm-costs {}", error.what());
      }
      place = fmt::format("; kept in {}", s.comm_costs);
    }
    tell(fmt::format("  messages {}\n  sums     {}{}\n", train::describe(costs, group),
                     train::describe(group.algorithm_choices()), place));
  });
}

/// On rank 0: what is chosen by usual costs.
void tell_choices(const comm::ProcessGroup& group, const TellLines& tell) {
  const std::vector<comm::AlgorithmChoice> choices = group.algorithm_choices();
  if (group.rank() == 0 && !choices.empty()) tell(fmt::format("  sums     {}\n", train::describe(choices)));
}

}  // namespace

void tune_comm(const Settings& s, comm::ProcessGroup& group, const TellLines& tell) {
  if (!s.tune_comm && s.comm_costs.empty()) return tell_choices(group, tell);
  const bool first = group.rank() == 0;
  const std::string_view option = s.tune_comm ? "--tune-comm" : "--comm-costs";
  if (const std::string why = obstacle(group); !why.empty()) {
    if (first) train::print_to_stderr(fmt::format("note: {}: {}", option, why));
    return;
  }
  const Kept kept = find_kept(s, group);
  const std::string& problem = kept.loaded.problem;
  if (!problem.empty()) train::print_to_stderr(fmt::format("note: --comm-costs {}", problem));
  if (!kept.is_known && !s.tune_comm) {
    if (first && problem.empty())
      train::print_to_stderr(
          fmt::format("note: --comm-costs {}: holds nothing for {}; --tune-comm measures it, usual costs are taken now",
                      s.comm_costs, kept.key));
    return tell_choices(group, tell);
  }
  comm::MessageCosts costs;
  if (kept.loaded.costs) costs = *kept.loaded.costs;
  if (!kept.is_known) {
    costs = group.measure_message_costs();
    reset_peak_memory();  // the run's is of training
  }
  group.use_message_costs(costs);
  keep(s, group, kept, costs, tell);
}

void use_kept_costs(const Settings& s, comm::ProcessGroup& group) {
  if (s.comm_costs.empty() || !obstacle(group).empty()) return;
  const Kept kept = find_kept(s, group);
  if (kept.is_known) group.use_message_costs(kept.loaded.costs.value_or(comm::MessageCosts()));
}

}  // namespace tandem::apps
