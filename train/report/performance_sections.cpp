// Where time and memory went, and all that was asked for.
#include "tandem/train/plot/bars.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::train::report {
namespace {

using plot::number_text;
using plot::Unit;

/// Sums over all epochs, in the order in which the names first appear.
NumberTable total_time(const RunData& run) {
  NumberTable total;
  for (const Epoch& epoch : run.epochs) {
    for (const auto& [name, seconds] : epoch.time) {
      if (!std::isfinite(seconds)) continue;
      const auto found = std::ranges::find(total, name, &std::pair<std::string, double>::first);
      if (found == total.end()) {
        total.emplace_back(name, seconds);
      } else {
        found->second += seconds;
      }
    }
  }
  return total;
}

double sum_of(const NumberTable& table) {
  double sum = 0.0;
  for (const auto& [name, value] : table) sum += value;
  return sum;
}

void add_time(HtmlWriter& html, const RunData& run, const NumberTable& total) {
  plot::StackedChart chart;
  chart.x = {.title = "epoch", .whole = true};
  chart.y.unit = Unit::seconds;
  chart.first = static_cast<double>(run.epochs.front().epoch);
  const double sum = sum_of(total);
  for (const auto& [name, seconds] : total) {
    plot::StackedChart::Layer layer{
        fmt::format("{} {:.0f} %", name, 100.0 * seconds / sum), plot::series_colour(chart.layers.size()), {}};
    for (const Epoch& epoch : run.epochs) layer.values.push_back(figure_in(epoch.time, name));
    chart.layers.push_back(std::move(layer));
  }
  constexpr plot::Size kSize{kChartWidth, 280.0};
  begin_card(html);
  html.element("h3", "Time of each epoch, rank 0");
  html.markup(plot::svg_picture(kSize, "Time of each epoch", plot::SvgKind::inline_, [&](plot::Canvas& canvas) {
    draw_stacked_chart(canvas, {0.0, 0.0, kSize.width, kSize.height}, chart);
  }));
  html.close();
}

/// Peaks of the run, or what the last epoch says.
NumberTable memory_of(const RunData& run) {
  NumberTable memory = run.peak_tensor_bytes;
  if (memory.empty() && !run.epochs.empty()) memory = run.epochs.back().memory;
  std::erase_if(memory, [](const auto& kind) { return !(kind.second > 0.0); });
  std::ranges::stable_sort(memory, [](const auto& a, const auto& b) { return a.second > b.second; });
  return memory;
}

void add_memory(HtmlWriter& html, const RunData& run, const NumberTable& memory) {
  plot::BarChart chart{{}, plot::kTest, 0.0};
  for (const auto& [kind, bytes] : memory) chart.bars.push_back({kind, bytes, number_text(bytes, Unit::bytes)});
  const plot::Size size{kChartWidth, height_of(chart)};
  begin_card(html);
  html.element("h3", "Memory of tensors by kind, each at its peak");
  html.markup(plot::svg_picture(size, "Memory by kind", plot::SvgKind::inline_, [&](plot::Canvas& canvas) {
    draw_bar_chart(canvas, {0.0, 0.0, size.width, size.height}, chart);
  }));
  const double whole = run.epochs.empty() ? kMissing : run.epochs.back().peak_memory_bytes;
  if (std::isfinite(whole))
    html.element("p",
                 fmt::format("The process took {} at its peak{}.", number_text(whole, Unit::bytes),
                             run.backend == "threads" ? ", for all ranks" : ", on the rank that took most"),
                 {{"class", "note"}});
  html.close();
}

/// Missing where no epoch tells it.
double exchanged(const RunData& run, const char* name) {
  double sum = kMissing;
  for (const Epoch& epoch : run.epochs) {
    if (const double value = figure_in(epoch.exchange, name); std::isfinite(value))
      sum = std::isfinite(sum) ? sum + value : value;
  }
  return sum;
}

/// Milliseconds of a step, epoch by epoch.
plot::Series exchange_series(const RunData& run, const char* name, const char* field, const plot::Colour& colour) {
  plot::Series series{name, colour, {}, {}};
  for (const Epoch& epoch : run.epochs) {
    series.x.push_back(static_cast<double>(epoch.epoch));
    series.y.push_back(1e3 * figure_in(epoch.exchange, field) / figure_in(epoch.exchange, "steps"));
  }
  return series;
}

void add_exchange(HtmlWriter& html, const RunData& run) {
  if (!(exchanged(run, "steps") > 0.0)) return;
  plot::LineChart chart;
  chart.title = "Exchange of gradients, ms per step";
  chart.x = {.title = "epoch", .whole = true};
  chart.y.include(0.0);
  chart.series.push_back(exchange_series(run, "under way", "seconds", plot::kTraining));
  chart.series.push_back(exchange_series(run, "waited for", "waited_seconds", plot::kValidation));
  add_chart(html, chart);
}

void add_communication(HtmlWriter& html, const RunData& run, const NumberTable& total) {
  const double seconds = figure_in(total, "communication");
  if (!std::isfinite(seconds) || !(run.ranks > 1.0)) return;
  TextTable table{{"ranks", number_text(run.ranks)}, {"backend", run.backend}};
  table.emplace_back("waiting for other ranks", number_text(seconds, Unit::seconds));
  if (const double sum = sum_of(total); sum > 0.0)
    table.emplace_back("share of the time", fmt::format("{:.1f} %", 100.0 * seconds / sum));
  if (const double steps = exchanged(run, "steps"), bytes = exchanged(run, "bytes"); steps > 0.0) {
    table.emplace_back("gradients of a step", number_text(bytes / steps, Unit::bytes));
    if (const double early = exchanged(run, "early_bytes"); std::isfinite(early) && bytes > 0.0)
      table.emplace_back("exchanged before backward ended", fmt::format("{:.0f} %", 100.0 * early / bytes));
    table.emplace_back("waiting for them, of a step",
                       fmt::format("{:.2f} ms", 1e3 * exchanged(run, "waited_seconds") / steps));
    table.emplace_back("exchanged at", number_text(bytes / exchanged(run, "seconds"), Unit::bytes) + "/s");
  }
  for (const char* const name :
       {"comm-algorithm", "comm-progress", "simulate-network", "bucket-mb", "allreduce-dtype"}) {
    std::string value = setting(run, name);
    if (value == "0.0") value = "by the size of the model";  // of bucket-mb
    if (!value.empty()) table.emplace_back(name, value);
  }
  begin_card(html);
  html.element("h3", "Communication");
  add_pairs(html, table);
  html.element("p",
               "Rank 0's. Waiting is for gradients that the backward pass did not hide, and for sums. An exchange is "
               "under way from its first bucket to its last, most of it beside the backward pass.",
               {{"class", "note"}});
  html.close();
}

/// What environment.json says of what stands elsewhere on the page.
constexpr std::string_view kTold[] = {"host", "threads", "backend", "model", "dataset"};

/// What starts the run again. Ranks that are threads are started by an option, which is there.
std::string started_command(const RunData& run) {
  if (!(run.ranks > 1.0) || run.backend == "threads") return run.command_line;
  const bool is_slurm = run.launcher == "srun";
  return fmt::format("{} {} {:.0f} {}", is_slurm ? "srun" : "mpirun", is_slurm ? "-n" : "-np", run.ranks,
                     run.command_line);
}

void add_text(HtmlWriter& html, const std::string& text) {
  begin_card(html);
  html.element("pre", text);
  html.close();
}

void add_table(HtmlWriter& html, const char* title, const TextTable& table) {
  if (table.empty()) return;
  html.element("h2", title);
  begin_card(html);
  add_pairs(html, table);
  html.close();
}

}  // namespace

void add_performance(HtmlWriter& html, const RunData& run) {
  const NumberTable time = total_time(run), memory = memory_of(run);
  const bool has_time = sum_of(time) > 0.0;
  if (!has_time && memory.empty()) return;
  html.element("h2", "Time and memory");
  html.open("div", {{"class", "flow"}});
  if (has_time) add_time(html, run, time);
  if (!memory.empty()) add_memory(html, run, memory);
  add_communication(html, run, time);
  if (run.ranks > 1.0) add_exchange(html, run);
  html.close();
}

void add_circumstances(HtmlWriter& html, const RunData& run) {
  if (!run.command_line.empty()) {
    html.element("h2", "Command line");
    add_text(html, started_command(run));
  }
  TextTable about;
  if (!run.host.empty()) about.emplace_back("host", run.host);
  const auto add_number = [&](const char* name, double value) {
    if (std::isfinite(value)) about.emplace_back(name, number_text(value));
  };
  add_number("threads per rank", run.threads);
  add_number("training images", run.train_images);
  add_number("test images", run.test_images);
  add_number("images per step", run.global_batch_size);
  add_number("steps per epoch", run.steps_per_epoch);
  // The log's record of the run has some of it, too.
  for (const auto& entry : run.environment.empty() ? run.versions : run.environment) {
    if (std::ranges::find(kTold, entry.first) == std::end(kTold)) about.push_back(entry);
  }
  add_table(html, "Environment", about);
  add_table(html, "All settings", run.config);
  if (run.config_text.empty()) return;
  html.element("h2", "Settings");
  add_text(html, run.config_text);
}

}  // namespace tandem::train::report
