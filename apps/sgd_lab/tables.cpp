#include "apps/sgd_lab/tables.h"

#include "tandem/comm/schedules/segment_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::sgd_lab {

namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); }

/// "93 %": of the exchange, what the backward pass hid.
double hidden_share(const ExchangeWay& way) {
  return way.exchange > 0.0 ? std::clamp(1.0 - way.waited / way.exchange, 0.0, 1.0) : 0.0;
}

Row time_row(const std::string& name, const TimedSteps& timed, const ExchangeWay& way) {
  return {name,
          fmt::format("{}", way.bucket_bytes.size()),
          milliseconds(way.step),
          milliseconds(predicted_step(timed, way)),
          milliseconds(way.step - way.waited),
          milliseconds(way.exchange),
          milliseconds(way.waited),
          fmt::format("{:.0f} %", 100.0 * hidden_share(way))};
}

}  // namespace

Table time_table(const TimedSteps& timed) {
  Table table{
      .columns = {"exchange", "buckets", "step, ms", "predicted", "computes", "T_sync", "waits", "hidden"},
      .rows = {},
      .note = fmt::format(
          "Medians of {} steps in each way, which took turns, on {} ranks: with no exchange, with one behind the "
          "backward pass, and with one beside it. T_sync: from when the first bucket was full to the last "
          "average. A step computes, and waits for what is left of that behind the backward pass; the rest is "
          "hidden. Predicted: T_comp and that wait, by the latency and the bandwidth, with {} segments of {} KiB "
          "at most on their way at once between two ranks; that ranks also copy and add what they exchange, within "
          "\"computes\", is not in it.",
          timed.turns, timed.ranks, comm::SegmentOptions{}.depth, comm::SegmentOptions{}.segment_bytes / 1024)};
  const std::string compute = milliseconds(timed.compute);
  table.rows.push_back({"none", "0", compute, compute, compute, "0.000", "0.000", ""});
  table.rows.push_back(time_row("behind", timed, timed.behind));
  table.rows.push_back(time_row("beside", timed, timed.beside));
  return table;
}

std::vector<std::string> time_paragraphs(const Lesson& lesson) {
  const TimedSteps& timed = lesson.timed.front();
  return {fmt::format("The small network of this lesson computes a step for {} ms and exchanges gradients for {} ms "
                      "(medians): threads gain nothing by it. So a larger one is timed: {} layers, {} weights, {} "
                      "examples a rank, on {} ranks whose messages arrive as late as on a network of {}.",
                      milliseconds(lesson.compute_seconds), milliseconds(lesson.exchange_seconds), timed.layers,
                      timed.weights, timed.batch, timed.ranks, timed.network),
          fmt::format("T_comp, a step that exchanges nothing, takes {} ms, and T_sync, the exchange, {} ms. Behind the "
                      "backward pass a step takes both: {} ms. Beside it, in {} buckets, a rank waits for {} ms of the "
                      "exchange, and a step takes {} ms.",
                      milliseconds(timed.compute), milliseconds(timed.behind.exchange), milliseconds(timed.behind.step),
                      timed.beside.bucket_bytes.size(), milliseconds(timed.beside.waited),
                      milliseconds(timed.beside.step))};
}

std::string speed_text(const Lesson& lesson) {
  const TimedSteps& timed = lesson.timed.front();
  const std::string text = fmt::format(
      "N ranks compute N batches in the time T of a step, which is T_comp and what is waited for: S(N) = N T_comp / T. "
      "This is for the steps of chapter 6, on a network of {}, each rank on a host of its own. {} ranks were measured",
      timed.network, timed.ranks);
  const auto error = [&](const ExchangeWay& way) {
    const double percent = 100.0 * (way.step / predicted_step(timed, way) - 1.0);
    return fmt::format("{:.1f} % {}", std::abs(percent), percent < 0.0 ? "less" : "more");
  };
  double furthest = 0.0;
  for (const VirtualExchange& exchange : lesson.speed_ups.virtual_exchanges)
    furthest = std::max(furthest, std::abs(exchange.seconds / exchange.predicted - 1.0));
  return text + fmt::format(
                    ": their step takes {} than was predicted behind the backward pass, and {} beside it. "
                    "Beyond that as many ranks exchange all gradients on a virtual clock, which is at most "
                    "{:.1f} % from what was predicted.",
                    error(timed.behind), error(timed.beside), 100.0 * furthest);
}

Table speed_table(const Lesson& lesson) {
  const SpeedUps& all = lesson.speed_ups;
  Table table{.columns = {"ranks", "algorithm", "T_sync, ms", "clock", "behind", "timed", "beside", "timed"},
              .rows = {},
              .note =
                  "T_sync: of all gradients at once, predicted, and by the clock of as many ranks that carry it out "
                  "on a simulated network. Behind and beside the backward pass: speed-ups, predicted and timed. "
                  "Timed ones are beside as many ranks that exchange nothing, since ranks of one machine also slow "
                  "each other down."};
  for (std::size_t i = 0; i < all.behind.size(); ++i) {
    const int ranks = all.behind[i].ranks;
    Row row{fmt::format("{}", ranks),
            "",
            "",
            "",
            fmt::format("{:.2f}", all.behind[i].factor),
            "",
            fmt::format("{:.2f}", all.beside[i].factor),
            ""};
    for (const VirtualExchange& exchange : all.virtual_exchanges) {
      if (exchange.ranks != ranks) continue;
      row[1] = exchange.algorithm;
      row[2] = milliseconds(exchange.predicted);
      row[3] = milliseconds(exchange.seconds);
    }
    for (const TimedSteps& timed : lesson.timed) {
      if (timed.ranks != ranks) continue;
      row[5] = fmt::format("{:.2f}", measured_speed_up(timed, timed.behind));
      row[7] = fmt::format("{:.2f}", measured_speed_up(timed, timed.beside));
    }
    table.rows.push_back(row);
  }
  return table;
}

Table batch_table(const BatchLesson& lesson) {
  Table table{
      .columns = {"", "batch", "updates", fmt::format("loss, rate {:g}", kLearningRate), "scaled rate", "loss, scaled"},
      .rows = {},
      .note = batch_text(lesson)};
  for (std::size_t i = 0; i < lesson.same.size(); ++i) {
    const BatchRun &same = lesson.same[i], &scaled = lesson.scaled[i];
    table.rows.push_back({fmt::format("{} x batch", same.factor), fmt::format("{}", same.batch),
                          fmt::format("{}", same.losses.size() - 1), fmt::format("{:.4f}", same.losses.back()),
                          fmt::format("{:g}", scaled.learning_rate), fmt::format("{:.4f}", scaled.losses.back())});
  }
  return table;
}

std::string to_text(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    widths.push_back(table.columns[column].size());
    for (const Row& row : table.rows) widths.back() = std::max(widths.back(), row[column].size());
  }
  const auto line_of = [&](const Row& row) {
    std::string line = fmt::format("  {:<{}}", row[0], widths[0]);
    for (std::size_t column = 1; column < row.size(); ++column)
      line += fmt::format("  {:>{}}", row[column], widths[column]);
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  };
  std::string text = line_of(table.columns);
  for (const Row& row : table.rows) text += line_of(row);
  return text + table.note + "\n";
}

}  // namespace tandem::sgd_lab
