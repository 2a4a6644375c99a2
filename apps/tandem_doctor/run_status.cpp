// What the ranks of a run show of themselves.
#include "checks.h"

#include "tandem/comm/doctor/status_board.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace tandem::apps::doctor {

namespace {

std::string text_of_group(const comm::GroupView& group) {
  std::string text = fmt::format("{} ranks, backend {}, {}\n", group.ranks.size(), group.backend,
                                 group.timeout > 0.0 ? fmt::format("deadline {} s", group.timeout) : "no deadline");
  if (const std::string numbers = comm::numbers_of(group); !numbers.empty()) text += numbers + "\n";
  text += comm::text_of(group);
  if (const std::optional<comm::Diagnosis> found = comm::explain_look(group)) text += "-> " + comm::text_of(*found);
  return text;
}

bool has_doubtful_fault(const std::vector<comm::GroupView>& groups) {
  return std::ranges::any_of(groups, [](const comm::GroupView& group) {
    const std::optional<comm::Diagnosis> fault = comm::find_fault(group);
    return fault && !fault->is_final;
  });
}

/// A rank shows several things one after another, and may be seen between two of them: a fault must last.
std::vector<comm::GroupView> look_at_process(std::int64_t process) {
  constexpr int kLooks = 4;
  constexpr std::chrono::milliseconds kBetweenLooks{50};
  std::vector<comm::GroupView> groups = comm::views_of_process(process);
  for (int look = 1; look < kLooks && has_doubtful_fault(groups); ++look) {
    std::this_thread::sleep_for(kBetweenLooks);
    try {
      groups = comm::views_of_process(process);
    } catch (const Error&) {  // it has ended since
      return groups;
    }
  }
  return groups;
}

}  // namespace

std::string text_of_run(const std::string& run) {
  const std::optional<std::int64_t> process = parse_number<std::int64_t>(run);
  const std::vector<comm::GroupView> groups =
      process ? look_at_process(*process) : std::vector{comm::view_of_file(run)};
  std::string text;
  for (const comm::GroupView& group : groups) text += (text.empty() ? "" : "\n") + text_of_group(group);
  return text;
}

}  // namespace tandem::apps::doctor
