// What the ranks of a run show of themselves.
#include "checks.h"

#include "tandem/comm/doctor/status_board.h"
#include "tandem/core/number_text.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

namespace tandem::apps::doctor {

namespace {

std::string text_of_group(const comm::GroupView& group) {
  std::string text = fmt::format("{} ranks, backend {}, {}\n", group.ranks.size(), group.backend,
                                 group.timeout > 0.0 ? fmt::format("deadline {} s", group.timeout) : "no deadline");
  text += comm::text_of(group);
  if (const std::optional<comm::Diagnosis> fault = comm::find_fault(group)) {
    text += "-> " + comm::text_of(*fault);
  } else if (const int waiting = comm::longest_waiting(group);
             waiting >= 0 && comm::is_longer_than_news(group, waiting)) {
    text += "-> " + comm::text_of(comm::explain_wait(group, waiting));
  }
  return text;
}

}  // namespace

std::string text_of_run(const std::string& run) {
  const std::optional<std::int64_t> process = parse_number<std::int64_t>(run);
  const std::vector<comm::GroupView> groups =
      process ? comm::views_of_process(*process) : std::vector{comm::view_of_file(run)};
  std::string text;
  for (const comm::GroupView& group : groups) text += (text.empty() ? "" : "\n") + text_of_group(group);
  return text;
}

}  // namespace tandem::apps::doctor
