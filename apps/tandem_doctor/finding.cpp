// Findings as text and as JSON.
#include "finding.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace tandem::apps::doctor {
namespace {

std::ptrdiff_t count(std::span<const Finding> findings, State state) {
  return std::ranges::count(findings, state, &Finding::state);
}

std::string counted(std::ptrdiff_t number, std::string_view what) {
  return number == 0 ? fmt::format("no {}s", what) : fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

std::string_view name_of(State state) {
  switch (state) {
    case State::ok:
      return "ok";
    case State::note:
      return "note";
    case State::fault:
      return "fault";
  }
  return "";
}

std::string text_of(std::span<const Finding> findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<5}  {:<{}}  {}\n", name_of(finding.state), finding.subject, width, finding.what);
    if (!finding.remedy.empty()) text += fmt::format("{:{}}{}\n", "", width + 9, "-> " + finding.remedy);
  }
  return text + fmt::format("{}, {}\n", counted(count(findings, State::fault), "fault"),
                            counted(count(findings, State::note), "note"));
}

std::string json_of(std::span<const Finding> findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    nlohmann::ordered_json entry{
        {"state", name_of(finding.state)}, {"subject", finding.subject}, {"what", finding.what}};
    if (!finding.remedy.empty()) entry["remedy"] = finding.remedy;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json json{
      {"findings", list}, {"faults", count(findings, State::fault)}, {"notes", count(findings, State::note)}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool has_fault(std::span<const Finding> findings) { return count(findings, State::fault) > 0; }

}  // namespace tandem::apps::doctor
