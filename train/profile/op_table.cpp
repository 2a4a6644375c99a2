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

/// By falling time.
std::vector<OpTotals> sorted(std::map<std::string, OpTotals> by_name) {
  std::vector<OpTotals> all;
  for (auto& [name, totals] : by_name) {
    totals.name = name;
    all.push_back(std::move(totals));
  }
  std::ranges::stable_sort(all, std::greater<>(), &OpTotals::seconds);
  return all;
}

double seconds_of(const DeviceActivity& activity) { return 1e-9 * static_cast<double>(activity.duration_ns); }

}  // namespace

std::vector<OpTotals> op_totals(const std::vector<TimelineEvent>& events) {
  const std::vector<std::int64_t> own = own_times(events);
  std::map<std::string, OpTotals> by_name;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const TimelineEvent& event = events[i];
    OpTotals& totals = by_name[event.name];
    ++totals.count;
    totals.seconds += 1e-9 * static_cast<double>(own[i]);
    totals.flops += event.flops;
    totals.bytes += event.bytes;
  }
  return sorted(std::move(by_name));
}

std::vector<OpTotals> device_op_totals(const Timeline& timeline) {
  if (timeline.device_activities.empty()) return op_totals(timeline.device_events);
  std::map<std::string, OpTotals> by_name;
  for (const DeviceActivity& activity : timeline.device_activities)
    by_name[activity.op.empty() ? "outside of any range" : activity.op].seconds += seconds_of(activity);
  for (const TimelineEvent& event : timeline.events) {
    const auto found = by_name.find(event.name);
    if (found == by_name.end()) continue;
    ++found->second.count;
    found->second.flops += event.flops;
    found->second.bytes += event.bytes;
  }
  return sorted(std::move(by_name));
}

std::vector<OpTotals> activity_totals(const std::vector<DeviceActivity>& activities) {
  std::map<std::string, OpTotals> by_name;
  for (const DeviceActivity& activity : activities) {
    OpTotals& totals =
        by_name[activity.kind == ActivityKind::kernel ? short_kernel_name(activity.name) : activity.name];
    ++totals.count;
    totals.seconds += seconds_of(activity);
    totals.bytes += static_cast<double>(activity.bytes);
  }
  return sorted(std::move(by_name));
}

std::string short_kernel_name(const std::string& name) {
  // The name proper ends where its template arguments, or its parameters, begin: at depth 0 of < and (.
  std::size_t begin = 0, end = name.size();
  int angles = 0, parentheses = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_outside = angles == 0 && parentheses == 0;
    const bool is_unnamed_space = name.compare(i, 21, "(anonymous namespace)") == 0;
    if (is_outside && name[i] == '(' && !is_unnamed_space) {
      end = i;
      break;
    }
    if (is_outside && (name[i] == ' ' || name[i] == ':')) begin = i + 1;
    angles += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    parentheses += name[i] == '(' ? 1 : name[i] == ')' ? -1 : 0;
  }
  return begin < end ? name.substr(begin, end - begin) : name;
}

namespace {

/// What a table of totals has beside calls and times.
struct TableColumns {
  std::string title = "range";
  bool has_rates = true;
  std::map<std::string, double> device_seconds = {};  ///< by name; empty: no column
};

std::string cells_behind(const OpTotals& op, const TableColumns& columns, const MachineLimits& limits,
                         double per_step) {
  if (columns.has_rates)
    return fmt::format("  {:>14}  {:>14}\n", rate(op.flops, op.seconds, limits.flops_per_second),
                       rate(op.bytes, op.seconds, limits.bytes_per_second));
  if (columns.device_seconds.empty()) return "\n";
  const auto found = columns.device_seconds.find(op.name);
  return found == columns.device_seconds.end() ? fmt::format("  {:>11}\n", "-")
                                               : fmt::format("  {:>11.3f}\n", 1e3 * found->second * per_step);
}

std::string rows_of(const std::vector<OpTotals>& all, std::int64_t steps, const MachineLimits& limits, int shown,
                    const TableColumns& columns) {
  const double per_step = 1.0 / static_cast<double>(std::max<std::int64_t>(steps, 1));
  double whole = 0.0;
  for (const OpTotals& totals : all) whole += totals.seconds;
  const std::size_t rows = std::min(all.size(), static_cast<std::size_t>(std::max(shown, 0)));
  std::size_t width = columns.title.size();
  for (std::size_t i = 0; i < rows; ++i) width = std::max(width, std::min<std::size_t>(all[i].name.size(), 60));
  std::string text = fmt::format("{:<{}}  {:>6}  {:>9}  {:>6}", columns.title, width, "calls", "ms/step", "time");
  if (columns.has_rates) text += fmt::format("  {:>14}  {:>14}", "GFLOP/s", "GB/s");
  if (!columns.device_seconds.empty()) text += fmt::format("  {:>11}", "GPU ms/step");
  text += '\n';
  for (std::size_t i = 0; i < rows; ++i) {
    const OpTotals& op = all[i];
    text += fmt::format("{:<{}}  {:>6.1f}  {:>9.3f}  {:>4.1f} %", op.name.substr(0, 60), width,
                        static_cast<double>(op.count) * per_step, 1e3 * op.seconds * per_step,
                        whole > 0.0 ? 100.0 * op.seconds / whole : 0.0);
    text += cells_behind(op, columns, limits, per_step);
  }
  if (all.size() > rows) text += fmt::format("({} more)\n", all.size() - rows);
  return text;
}

std::string note_of(const MachineLimits& limits) {
  if (!limits.is_nominal) return "";
  return fmt::format(
      "shares are of nominal limits, which follow from clocks and widths and were not measured: {:.0f} "
      "GFLOP/s in f32 without tensor cores, {:.0f} GB/s\n",
      1e-9 * limits.flops_per_second, 1e-9 * limits.bytes_per_second);
}

std::string tables_of(const Timeline& timeline, std::int64_t steps, const MachineLimits& limits, int shown) {
  const std::vector<OpTotals> on_host = op_totals(timeline.events);
  const std::string& from = timeline.device_times_from;
  if (timeline.device_events.empty() && timeline.device_activities.empty()) {
    if (!from.empty())  // the limits are the GPU's
      return fmt::format("no times of the GPU; they were to come from {}\n", from) +
             rows_of(on_host, steps, limits, shown, {.has_rates = false});
    return rows_of(on_host, steps, limits, shown, {}) + note_of(limits);
  }
  std::string text = from.empty() ? "" : fmt::format("times of the GPU are from {}\n", from);
  const std::vector<OpTotals> on_device = device_op_totals(timeline);
  text += "on the GPU:\n" + rows_of(on_device, steps, limits, shown, {}) + note_of(limits);
  if (!timeline.device_activities.empty()) {
    text += rows_of(activity_totals(timeline.device_activities), steps, limits, shown, {.title = "kernel or copy"});
  }
  TableColumns host{.has_rates = false};
  for (const OpTotals& op : on_device) host.device_seconds[op.name] = op.seconds;
  return text + "on the host:\n" + rows_of(on_host, steps, limits, shown, host);
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
  std::string text = tables_of(timeline, steps, limits, shown);
  text += fmt::format("peak memory {}", format_memory(timeline.peak_bytes));
  for (std::size_t i = 0; i < timeline.largest_at_peak.size(); ++i) {
    const LiveStorage& storage = timeline.largest_at_peak[i];
    text += fmt::format("{}  {:>10}  {:<11}  {}\n", i == 0 ? ", of which\n" : "", format_memory(storage.bytes),
                        name_of(storage.tag), origin_of(storage));
  }
  return timeline.largest_at_peak.empty() ? text + "\n" : text;
}

}  // namespace tandem::train
