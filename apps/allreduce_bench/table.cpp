// Columns that are as wide as this run needs them.
#include "apps/allreduce_bench/reports.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::allreduce_bench {

namespace {

/// Microseconds in about four digits.
std::string time_text(double seconds) {
  const double us = seconds * 1e6;
  return fmt::format("{:.{}f}", us, us < 100.0 ? 2 : us < 10000.0 ? 1 : 0);
}

std::string rate_text(double bytes_per_second) {
  const double rate = bytes_per_second / 1e9;
  return fmt::format("{:.{}f}", rate, rate < 100.0 ? 2 : 1);
}

}  // namespace

std::string label_of(const BenchRow& row) {
  if (row.backend.starts_with(kAlgorithmOf)) return row.backend.substr(kAlgorithmOf.size());
  return row.shared && row.backend != kRoofline ? row.backend + ", shared" : row.backend;
}

std::string title_of(const BenchCollective& collective, const BenchOptions& options, int ranks) {
  if (!collective.has_bytes()) return fmt::format("{}, {} ranks", collective.name, ranks);
  const std::string op = collective.reduces ? fmt::format(" {}", name_of(options.op)) : "";
  return fmt::format("{}{} {}, {} ranks", collective.name, op, name_of(options.dtype), ranks);
}

Table::Table(const BenchOptions& options, int ranks) : options_(options), ranks_(ranks) {
  bytes_width_ = std::max(7, static_cast<int>(std::to_string(options.max_bytes).size()));
  name_width_ = static_cast<int>(std::string_view(options.replicas > 1 ? "threads, shared" : "native, shared").size());
  for (const std::string& algorithm : options.algorithms)
    name_width_ = std::max(name_width_, static_cast<int>(algorithm.size()));
}

bool Table::shows_predictions(const BenchCollective& collective) const {
  return (options_.predicts && is_all_reduce(collective)) || options_.network;
}

std::string Table::heading(const BenchCollective& collective) const {
  const std::string title = title_of(collective, options_, ranks_);
  const std::string network = options_.network ? to_text(*options_.network) + "\n" : "";
  std::string text =
      options_.has_virtual_clock()
          ? fmt::format("{} on a simulated network, by its clock\n", title)
          : fmt::format("{}{}: median of {} rounds, of the slowest rank\n", title,
                        options_.network ? " on a simulated network, in real time" : "", options_.rounds);
  text += network;
  if (collective.has_bytes())
    text += fmt::format("bytes: {}\nalgbw: bytes / time; busbw: algbw x {}, the speed of a link, whatever n\n",
                        collective.bytes, collective.factor);
  const bool all_reduces = is_all_reduce(collective);
  if (options_.network) {
    text += "predicted: by what messages cost on this network\n";
  } else if (all_reduces) {
    text += "shared: tensors in memory that all ranks see (ProcessGroup::shared_zeros)\n";
    if (!options_.algorithms.empty()) text += "with the name of an algorithm: backend native by that algorithm\n";
    if (options_.roofline) text += "roofline: the same on shared tensors, but no rank waits for another\n";
    if (options_.predicts) text += "predicted: by what messages cost, which was measured first\n";
  }
  const std::string first = fmt::format("{:{}}  {:{}}", "", bytes_width_, "", name_width_);
  const std::string second = fmt::format("{:>{}}  {:{}}", "bytes", bytes_width_, "", name_width_);
  const auto cells = [](const char* time, const char* algorithm, const char* bus) {
    return fmt::format(" {:>8} {:>6} {:>6}", time, algorithm, bus);
  };
  const bool roofline = options_.roofline && all_reduces, predicts = shows_predictions(collective);
  const bool both = !options_.has_virtual_clock();
  text += first + (both ? fmt::format(" {:-^22}", " out of place ") : "") + fmt::format(" {:-^22}", " in place ") +
          (roofline ? "   of the" : "") + (predicts ? " predicted" : "") + "\n";
  text += first + (both ? cells("time", "algbw", "busbw") : "") + cells("time", "algbw", "busbw") +
          (roofline ? " roofline" : "") + (predicts ? "      time" : "") + "\n";
  text += second + (both ? cells("us", "GB/s", "GB/s") : "") + cells("us", "GB/s", "GB/s") +
          (roofline ? "        %" : "") + (predicts ? "        us" : "") + " wrong\n";
  return text;
}

std::string Table::line(const BenchRow& row) const {
  const bool has_rates = row.collective->has_bytes(), all_reduces = is_all_reduce(*row.collective);
  const auto cells = [&](const std::optional<BenchTime>& time) {
    const auto rate = [&](double value) { return time && has_rates ? rate_text(value) : "-"; };
    return fmt::format(" {:>8} {:>6} {:>6}", time ? time_text(time->median) : "-",
                       rate(time ? row.algorithm_bandwidth(*time) : 0.0),
                       rate(time ? row.bus_bandwidth(*time, ranks_) : 0.0));
  };
  std::string text = fmt::format("{:>{}}  {:{}}{}{}", row.bytes, bytes_width_, label_of(row), name_width_,
                                 options_.has_virtual_clock() ? "" : cells(row.out_of_place), cells(row.in_place));
  if (options_.roofline && all_reduces) text += fmt::format(" {:>8.0f}", 100.0 * row.usual_time().of_roofline);
  if (shows_predictions(*row.collective))
    text += fmt::format(" {:>9}", row.predicted > 0.0 ? time_text(row.predicted) : "-");
  return text + fmt::format(" {:>5}\n", row.wrong);
}

}  // namespace tandem::allreduce_bench
