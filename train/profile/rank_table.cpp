// Bringing the times of all ranks together.
#include "tandem/train/profile/rank_table.h"

#include "tandem/train/profile/op_table.h"

#include <nlohmann/json.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::train {

namespace {

using Json = nlohmann::json;

/// Milliseconds of a step, by rank.
using Times = std::vector<double>;

std::string text_of(const Timeline& timeline, bool on_device) {
  Json json = Json::array();
  for (const OpTotals& op : on_device ? device_op_totals(timeline) : op_totals(timeline.events))
    json.push_back({op.name, op.seconds});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// By the largest time of any rank, falling.
std::vector<std::pair<std::string, Times>> times_of(const std::vector<std::string>& texts, double per_step) {
  std::map<std::string, Times> by_name;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    for (const Json& op : Json::parse(texts[rank])) {
      Times& times = by_name[op[0].get<std::string>()];
      times.resize(texts.size());
      times[rank] += 1e3 * per_step * op[1].get<double>();
    }
  }
  std::vector<std::pair<std::string, Times>> all(by_name.begin(), by_name.end());
  std::ranges::stable_sort(all, std::greater<>(),
                           [](const auto& entry) { return *std::ranges::max_element(entry.second); });
  return all;
}

}  // namespace

std::string rank_table(const Timeline& timeline, std::int64_t steps, comm::ProcessGroup& group, int shown) {
  const Tensor have_device = Tensor::from<std::int64_t>({timeline.device_events.empty() ? 0 : 1}, {1});
  group.all_reduce(Out(have_device), comm::ReduceOp::min);
  const auto texts = group.all_gather_bytes(text_of(timeline, have_device.to_vector<std::int64_t>()[0] != 0));
  if (group.rank() != 0) return "";
  const auto all = times_of(texts, 1.0 / static_cast<double>(std::max<std::int64_t>(steps, 1)));
  const std::size_t rows = std::min(all.size(), static_cast<std::size_t>(std::max(shown, 0)));
  constexpr std::string_view kTitle = "range, on all ranks";
  std::size_t width = kTitle.size();
  for (std::size_t i = 0; i < rows; ++i) width = std::max(width, std::min<std::size_t>(all[i].first.size(), 60));
  std::string text =
      fmt::format("{:<{}}  {:>9}  {:>17}  {:>17}\n", kTitle, width, "mean ms", "slowest ms", "fastest ms");
  for (std::size_t i = 0; i < rows; ++i) {
    const auto& [name, times] = all[i];
    double sum = 0.0;
    for (const double time : times) sum += time;
    const auto cell = [&](Times::const_iterator rank) {
      return fmt::format("{:.3f} (rank {})", *rank, rank - times.begin());
    };
    text += fmt::format("{:<{}}  {:>9.3f}  {:>17}  {:>17}\n", name.substr(0, 60), width,
                        sum / static_cast<double>(times.size()), cell(std::ranges::max_element(times)),
                        cell(std::ranges::min_element(times)));
  }
  if (all.size() > rows) text += fmt::format("({} more)\n", all.size() - rows);
  return text;
}

}  // namespace tandem::train
