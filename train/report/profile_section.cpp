// Where the time of the profiled steps went, and what memory they took.
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::train::report {
namespace {

using plot::number_text;
using plot::Unit;

constexpr std::size_t kMostOps = 15;

/// "12.3" and the share of the limit behind it; "–" where nothing was told.
std::string rate_text(double amount, double seconds, double limit) {
  if (!(amount > 0.0) || !(seconds > 0.0)) return "\xE2\x80\x93";
  const double rate = amount / seconds;
  const std::string text = fmt::format("{:.1f}", rate * 1e-9);
  return limit > 0.0 ? fmt::format("{} ({:.0f} %)", text, 100.0 * rate / limit) : text;
}

constexpr const char* kOpColumns[] = {"calls/step", "ms/step", "time", "GFLOP/s", "GB/s"};

/// A card of the first of `ops`, with a note below.
void add_ops(HtmlWriter& html, const Profile& profile, const std::vector<Profile::Op>& ops, const std::string& title,
             const std::string& what, const std::string& note) {
  html.open("div", {{"class", "card scroll wide"}});
  html.element("h3", title);
  html.open("table", {{"class", "stack"}});
  html.open("tr");
  html.element("th", what);
  for (const char* const name : kOpColumns) html.element("th", name, {{"class", "n"}});
  html.close();
  const double steps = std::max(1.0, profile.steps);
  for (std::size_t i = 0; i < std::min(ops.size(), kMostOps); ++i) {
    const Profile::Op& op = ops[i];
    const std::string cells[] = {fmt::format("{:.1f}", op.calls / steps),
                                 fmt::format("{:.3f}", 1e3 * op.seconds / steps),
                                 fmt::format("{:.1f} %", 100.0 * op.seconds / profile.seconds),
                                 rate_text(op.flops, op.seconds, profile.flops_per_second),
                                 rate_text(op.bytes, op.seconds, profile.bytes_per_second)};
    html.open("tr");
    html.element("td", op.name, {{"class", "name"}});
    for (std::size_t column = 0; column < std::size(cells); ++column)
      html.element("td", cells[column], {{"class", "n"}, {"data-name", kOpColumns[column]}});
    html.close();
  }
  html.close();
  html.element("p", note, {{"class", "note"}});
  html.close();
}

void add_operations(HtmlWriter& html, const Profile& profile) {
  const std::string own = "Time without that of the operations inside. A share in brackets is of what the ";
  const std::string& from = profile.device_times_from;
  add_ops(html, profile, profile.ops, "Operations with the most time", "operation",
          from.empty()
              ? own + "machine was measured to be able to do."
              : own + "clocks and widths of the GPU allow, which was not measured. Times of the GPU are from " + from +
                    ".");
  if (profile.kernels.empty()) return;
  add_ops(html, profile, profile.kernels, "Kernels and copies with the most time", "kernel or copy",
          "Names without namespaces and parameters; bytes are those of copies and fills.");
}

/// The kinds as layers over each other: lines of sums.
void add_memory_over_time(HtmlWriter& html, const Profile& profile) {
  if (profile.memory_seconds.size() < 2 || profile.memory.empty()) return;
  plot::LineChart chart;
  chart.title = "Memory over time";
  chart.x = {.title = "ms"};
  chart.y.unit = Unit::bytes;
  chart.y.include(0.0);
  std::vector<double> times;
  for (const double seconds : profile.memory_seconds) times.push_back(1e3 * seconds);
  std::vector<double> all(times.size(), 0.0);
  for (std::size_t i = 0; i < profile.memory.size(); ++i) {
    const auto& [kind, bytes] = profile.memory[i];
    for (std::size_t k = 0; k < bytes.size(); ++k) all[k] += bytes[k];
    chart.series.push_back({kind, plot::series_colour(i), times, bytes});
  }
  chart.series.push_back({"all", plot::kInk, times, all});
  add_chart(html, chart);
}

/// "features.12.weight.grad, backward conv2d"
std::string description_of(const Profile::Storage& storage) {
  if (storage.name.empty()) return storage.made_in.empty() ? "made outside of any operation" : storage.made_in;
  return storage.made_in.empty() ? storage.name : storage.name + ", " + storage.made_in;
}

void add_largest(HtmlWriter& html, const Profile& profile) {
  if (profile.largest_at_peak.empty()) return;
  begin_card(html);
  html.element("h3", fmt::format("Largest tensors at the peak of {}", number_text(profile.peak_bytes, Unit::bytes)));
  html.open("table");
  html.open("tr");
  html.element("th", "tensor, or what made it");
  html.element("th", "kind");
  html.element("th", "size", {{"class", "n"}});
  html.close();
  for (const Profile::Storage& storage : profile.largest_at_peak) {
    html.open("tr");
    html.element("td", description_of(storage));
    html.element("td", storage.kind, {{"class", "word"}});
    html.element("td", number_text(storage.bytes, Unit::bytes), {{"class", "n"}});
    html.close();
  }
  html.close();
  html.close();
}

}  // namespace

void add_profile(HtmlWriter& html, const RunData& run) {
  if (!run.profile || run.profile->ops.empty()) return;
  const Profile& profile = *run.profile;
  const std::string steps = std::isfinite(profile.steps)
                                ? fmt::format(" of {:.0f} step{}", profile.steps, profile.steps == 1.0 ? "" : "s")
                                : "";
  html.element("h2", "Profile" + steps + ", rank 0");
  html.open("div", {{"class", "grid"}});
  add_operations(html, profile);
  add_memory_over_time(html, profile);
  add_largest(html, profile);
  html.close();
}

}  // namespace tandem::train::report
