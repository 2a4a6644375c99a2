// Adding up a timeline, and printing it.
#include "tandem/train/profile/op_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace tandem::train {

namespace {

/// Nanoseconds of each event without the events inside it, in the order of the events.
std::vector<std::int64_t> own_times(const std::vector<TimelineEvent>& events) {
  std::vector<std::size_t> order(events.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Of a thread, outer ranges before inner ones; of two that are alike in time, the one that ended later is outside.
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::tuple(events[i].thread, events[i].begin_ns, -events[i].duration_ns, -static_cast<std::int64_t>(i));
    };
    return key(a) < key(b);
  });
  std::vector<std::int64_t> own(events.size());
  std::vector<std::size_t> open;
  for (const std::size_t i : order) {
    const TimelineEvent& event = events[i];
    const auto is_over = [&](std::size_t outer) {
      return events[outer].thread != event.thread ||
             events[outer].begin_ns + events[outer].duration_ns <= event.begin_ns;
    };
    while (!open.empty() && is_over(open.back())) open.pop_back();
    own[i] = event.duration_ns;
    if (!open.empty()) own[open.back()] -= event.duration_ns;
    open.push_back(i);
  }
  return own;
}

/// "12.3" or "-" for nothing; with the share of a limit, "12.3 (45 %)".
std::string rate(double amount, double seconds, double limit) {
  if (amount <= 0.0 || seconds <= 0.0) return "-";
  const double per_second = amount / seconds;
  return limit > 0.0 ? fmt::format("{:.1f} ({:.0f} %)", per_second * 1e-9, 100.0 * per_second / limit)
                     : fmt::format("{:.1f}", per_second * 1e-9);
}

}  // namespace

std::vector<OpTotals> op_totals(const std::vector<TimelineEvent>& events) {
  const std::vector<std::int64_t> own = own_times(events);
  std::map<std::string, OpTotals> by_name;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const TimelineEvent& event = events[i];
    OpTotals& totals = by_name[event.name];
    totals.name = event.name;
    ++totals.count;
    totals.seconds += 1e-9 * static_cast<double>(own[i]);
    totals.flops += event.flops;
    totals.bytes += event.bytes;
  }
  std::vector<OpTotals> all;
  for (auto& [name, totals] : by_name) all.push_back(std::move(totals));
  std::ranges::stable_sort(all, std::greater<>(), &OpTotals::seconds);
  return all;
}

namespace {

/// The rows of events; with `has_rates`, those of their work.
std::string rows_of(const std::vector<TimelineEvent>& events, std::int64_t steps, const MachineLimits& limits,
                    int shown, bool has_rates) {
  const std::vector<OpTotals> all = op_totals(events);
  const double per_step = 1.0 / static_cast<double>(std::max<std::int64_t>(steps, 1));
  double whole = 0.0;
  for (const OpTotals& totals : all) whole += totals.seconds;
  const std::size_t rows = std::min(all.size(), static_cast<std::size_t>(std::max(shown, 0)));
  std::size_t width = 5;
  for (std::size_t i = 0; i < rows; ++i) width = std::max(width, std::min<std::size_t>(all[i].name.size(), 60));
  std::string text = fmt::format("{:<{}}  {:>6}  {:>9}  {:>6}", "range", width, "calls", "ms/step", "time");
  text += has_rates ? fmt::format("  {:>14}  {:>14}\n", "GFLOP/s", "GB/s") : "\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const OpTotals& op = all[i];
    text += fmt::format("{:<{}}  {:>6.1f}  {:>9.3f}  {:>4.1f} %", op.name.substr(0, 60), width,
                        static_cast<double>(op.count) * per_step, 1e3 * op.seconds * per_step,
                        whole > 0.0 ? 100.0 * op.seconds / whole : 0.0);
    text += has_rates ? fmt::format("  {:>14}  {:>14}\n", rate(op.flops, op.seconds, limits.flops_per_second),
                                    rate(op.bytes, op.seconds, limits.bytes_per_second))
                      : "\n";
  }
  if (all.size() > rows) text += fmt::format("({} more)\n", all.size() - rows);
  if (has_rates && limits.is_nominal)
    text += fmt::format(
        "shares are of nominal limits, which follow from clocks and widths and were not measured: {:.0f} "
        "GFLOP/s in f32 without tensor cores, {:.0f} GB/s\n",
        1e-9 * limits.flops_per_second, 1e-9 * limits.bytes_per_second);
  return text;
}

/// "conv1.weight f32[64, 3, 3, 3]", or what is known of it.
std::string origin_of(const LiveStorage& storage) {
  std::string text = storage.name;
  if (!storage.shape.empty()) text += (text.empty() ? "" : " ") + storage.shape;
  if (!storage.name.empty()) return text;
  return fmt::format("{}{}{}", text, text.empty() ? "" : ", ",
                     storage.made_in.empty() ? "outside of any range" : storage.made_in);
}

}  // namespace

std::string op_table(const Timeline& timeline, std::int64_t steps, const MachineLimits& limits, int shown) {
  const bool has_device = !timeline.device_events.empty();
  std::string text;
  if (has_device)
    text = "on the GPU:\n" + rows_of(timeline.device_events, steps, limits, shown, true) + "on the host:\n";
  text += rows_of(timeline.events, steps, limits, shown, !has_device);
  text += fmt::format("peak memory {}", format_memory(timeline.peak_bytes));
  for (std::size_t i = 0; i < timeline.largest_at_peak.size(); ++i) {
    const LiveStorage& storage = timeline.largest_at_peak[i];
    text += fmt::format("{}  {:>10}  {:<11}  {}\n", i == 0 ? ", of which\n" : "", format_memory(storage.bytes),
                        name_of(storage.tag), origin_of(storage));
  }
  return timeline.largest_at_peak.empty() ? text + "\n" : text;
}

}  // namespace tandem::train
