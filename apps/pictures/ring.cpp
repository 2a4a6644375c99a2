// All-reduce by a ring: its rounds on small numbers, and what it costs beside other algorithms.
#include "apps/sgd_lab/ring.h"
#include "apps/pictures/measured.h"
#include "apps/pictures/picture.h"
#include "apps/pictures/shapes.h"
#include "apps/sgd_lab/ring_picture.h"
#include "tandem/comm/cost/network_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/error.h"
#include "tandem/train/plot/line_chart.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace tandem::pictures {

namespace {

namespace plot = train::plot;
constexpr int kRanks = 4;
constexpr std::string_view kFile = "ring-all-reduce.csv";
constexpr std::array kAlgorithms{"ring", "recursive-doubling", "halving-doubling", "double-tree"};

void draw_values(plot::Canvas& canvas, const sgd_lab::RingLesson& ring, std::size_t round, double top) {
  const sgd_lab::Values& values = round == 0 ? ring.before : ring.rounds[round - 1].after;
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    for (std::size_t chunk = 0; chunk < values[rank].size(); ++chunk) {
      const plot::Box box{46.0 + static_cast<double>(rank) * 84.0 + static_cast<double>(chunk) * 20.0, top, 20.0, 20.0};
      const double share = static_cast<double>(ring.parts[round][rank][chunk]) / kRanks;
      draw_cell(canvas, box, fmt::format("{}", values[rank][chunk]), sgd_lab::colour_of_chunk(static_cast<int>(chunk)),
                0.06 + 0.49 * share);
      const bool is_new =
          round > 0 && std::ranges::any_of(ring.rounds[round - 1].messages, [&](const sgd_lab::Message& message) {
            return message.to == static_cast<int>(rank) && message.chunk == static_cast<int>(chunk);
          });
      if (is_new) draw_outline(canvas, {box.x + 1.0, box.y + 1.0, 18.0, 18.0}, {plot::kInk, 1.2});
    }
}

Picture rounds_picture() {
  return {"ring-rounds", 232.0,
          "What four ranks hold before an all-reduce by a ring and after each of its six rounds; what has just arrived "
          "is framed",
          [](plot::Canvas& canvas) {
            const sgd_lab::RingLesson ring = sgd_lab::make_ring_lesson(kRanks, 1);
            for (int rank = 0; rank < kRanks; ++rank)
              draw_heading(canvas, 46.0 + rank * 84.0, 14.0, fmt::format("rank {}", rank));
            for (std::size_t round = 0; round <= ring.rounds.size(); ++round) {
              const double top = 22.0 + static_cast<double>(round) * 26.0 + (round > kRanks - 1 ? 14.0 : 0.0);
              draw_note(canvas, 2.0, top + 14.0, round == 0 ? "before" : fmt::format("{}", round));
              draw_values(canvas, ring, round, top);
            }
            const double between = 22.0 + kRanks * 26.0 + 3.0;
            canvas.segment({4.0, between}, {kWidth - 4.0, between}, {.colour = plot::kMuted, .dashed = true});
          }};
}

/// alpha and beta alone, every message whole: 2 (N - 1) (alpha + S / N beta).
double formula_seconds(int ranks, double bytes, const comm::LinkModel& link) {
  return 2.0 * (ranks - 1) * (link.latency + bytes / ranks / link.bytes_per_second);
}

std::vector<int> hosts(int ranks) {
  std::vector<int> nodes(static_cast<std::size_t>(ranks));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

constexpr int kManyRanks = 16;
constexpr std::string_view kNetwork = "alpha=50us beta=10Gbit";

/// By the schedule, on that network, of an all-reduce among many ranks.
double predicted(std::string_view algorithm, std::int64_t bytes) {
  const std::vector<int> nodes = hosts(kManyRanks);
  return comm::predicted_seconds(comm::all_reduce_algorithm(algorithm).make(nodes), nodes, bytes,
                                 comm::costs_of(comm::parse_network_model(kNetwork)));
}

plot::LineChart time_chart(const std::string& title) {
  return {.title = title,
          .x = {.title = "size of the data", .unit = plot::Unit::bytes, .logarithmic = true, .ticks = 4},
          .y = {.title = "", .unit = plot::Unit::seconds, .logarithmic = true, .ticks = 5},
          .series = {}};
}

Picture cost_picture() {
  return {"ring-cost", 270.0, "Predicted times of four all-reduce algorithms among 16 ranks by the size of the data",
          [](plot::Canvas& canvas) {
            plot::LineChart chart = time_chart("16 ranks, 50 µs, 10 Gbit/s: predicted");
            for (std::size_t i = 0; i < kAlgorithms.size(); ++i) {
              plot::Series series{.name = kAlgorithms[i], .colour = plot::series_colour(i), .x = {}, .y = {}};
              for (std::int64_t bytes = 1024; bytes <= std::int64_t{64} << 20; bytes *= 2) {
                series.x.push_back(static_cast<double>(bytes));
                series.y.push_back(predicted(kAlgorithms[i], bytes));
              }
              chart.series.push_back(series);
            }
            draw_line_chart(canvas, {4.0, 8.0, kWidth - 8.0, 254.0}, chart);
          }};
}

struct Timed {
  std::string algorithm;
  double bytes = 0.0, measured = 0.0, predicted = 0.0;
};

std::vector<Timed> read_timed(const std::string& folder) {
  std::vector<Timed> all;
  for (const std::vector<std::string>& row : read_measured(folder, kFile).rows) {
    require(row.size() == 4, "{}: a row has {} words, not 4", kFile, row.size());
    all.push_back({row[0], number_of(row[1]), number_of(row[2]), number_of(row[3])});
  }
  return all;
}

const comm::LinkModel kTimedLink{200e-6, 125e6};  // as the notes of the file say

void add_dots(plot::LineChart& chart, const std::vector<Timed>& timed, const std::string& algorithm,
              std::size_t colour) {
  constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
  plot::Series line{.name = "", .colour = plot::series_colour(colour), .x = {}, .y = {}}, dots = line;
  line.name = algorithm;
  for (const Timed& row : timed) {
    if (row.algorithm != algorithm) continue;
    line.x.push_back(row.bytes);
    line.y.push_back(row.predicted);
    dots.x.insert(dots.x.end(), {kGap, row.bytes});
    dots.y.insert(dots.y.end(), {kGap, row.measured});
  }
  dots.x.push_back(kGap);
  dots.y.push_back(kGap);
  chart.series.push_back(line);
  chart.series.push_back(dots);
}

Picture measured_picture(const std::string& folder) {
  return {"ring-measured", 270.0,
          "Measured and predicted times of two all-reduce algorithms among four ranks by the size of the data",
          [folder](plot::Canvas& canvas) {
            const std::vector<Timed> timed = read_timed(folder);
            plot::LineChart chart = time_chart("4 ranks, 200 µs, 1 Gbit/s: dots are measured");
            add_dots(chart, timed, "ring", 0);
            add_dots(chart, timed, "recursive-doubling", 1);
            plot::Series formula{.name = "ring, formula", .colour = plot::kMuted, .x = {}, .y = {}, .dashed = true};
            for (const Timed& row : timed) {
              if (row.algorithm != "ring") continue;
              formula.x.push_back(row.bytes);
              formula.y.push_back(formula_seconds(kRanks, row.bytes, kTimedLink));
            }
            chart.series.push_back(formula);
            draw_line_chart(canvas, {4.0, 8.0, kWidth - 8.0, 254.0}, chart);
          }};
}

}  // namespace

Concept ring_concept(const std::string& folder) {
  Concept page{"ring-all-reduce", {rounds_picture(), cost_picture(), measured_picture(folder)}, {}};
  const sgd_lab::RingLesson ring = sgd_lab::make_ring_lesson(kRanks, 1);
  for (std::size_t round = 0; round < ring.rounds.size(); ++round)
    for (const sgd_lab::Message& message : ring.rounds[round].messages)
      if (message.from == 0)
        page.lines.push_back(fmt::format("round {}: rank 0 sends chunk {}, {}, which rank 1 {}", round + 1,
                                         message.chunk, message.value, message.is_added ? "adds" : "keeps"));
  page.lines.push_back(fmt::format("after round {} all ranks hold {}", ring.rounds.size(),
                                   fmt::join(ring.rounds.back().after.front(), " ")));
  for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{256} << 10, std::int64_t{64} << 20})
    for (const char* const algorithm : kAlgorithms)
      page.lines.push_back(fmt::format("16 ranks, {:>8} bytes, {:<18} {:>8.2f} ms predicted", bytes, algorithm,
                                       1e3 * predicted(algorithm, bytes)));
  for (const Timed& row : read_timed(folder))
    if (row.algorithm == "ring")
      page.lines.push_back(fmt::format(
          "4 ranks, {:>7.0f} bytes, ring: formula {:>6.2f} ms, predicted {:>6.2f}, measured {:>6.2f}", row.bytes,
          1e3 * formula_seconds(kRanks, row.bytes, kTimedLink), 1e3 * row.predicted, 1e3 * row.measured));
  return page;
}

}  // namespace tandem::pictures
