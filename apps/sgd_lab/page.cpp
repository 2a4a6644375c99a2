#include "apps/sgd_lab/page.h"

#include "apps/sgd_lab/text.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace tandem::sgd_lab {

namespace {

using train::report::begin_card;
using train::report::HtmlWriter;
namespace plot = train::plot;

using Row = std::vector<std::string>;

void add_note(HtmlWriter& html, const std::string& text) { html.element("p", text, {{"class", "note"}}); }

/// A card with a table, which narrow windows show line by line.
void add_table(HtmlWriter& html, const Row& columns, const std::vector<Row>& rows, const std::string& note) {
  begin_card(html, "card scroll");
  html.open("table", {{"class", "stack"}});
  html.open("tr");
  for (const std::string& column : columns) html.element("th", column, {{"class", column.empty() ? "" : "n"}});
  html.close();
  for (const Row& row : rows) {
    html.open("tr");
    html.element("td", row[0], {{"class", "name"}});
    for (std::size_t i = 1; i < row.size(); ++i)
      html.element("td", row[i], {{"class", "n"}, {"data-name", columns[i]}});
    html.close();
  }
  html.close();
  add_note(html, note);
  html.close();
}

std::string name_of_rank(std::size_t rank) { return fmt::format("rank {}", rank); }

void add_weights(HtmlWriter& html, const Run& run) {
  html.element("h2", "1. Initial weights");
  std::vector<Row> rows;
  for (std::size_t rank = 0; rank < run.size(); ++rank) {
    const Flat &drawn = run[rank].drawn, &weights = run[rank].weights[0];
    rows.push_back({name_of_rank(rank), hash(drawn), fmt::format("{:.5f}", norm(drawn)), hash(weights),
                    fmt::format("{:.5f}", norm(weights))});
  }
  add_table(html, {"", "drawn: hash", "norm", "broadcast: hash", "norm"}, rows,
            "Each rank draws its own weights; rank 0 then broadcasts its own to all. Equal hashes are equal bits.");
}

/// Images in a row, in 16 levels of grey.
void draw_images(plot::Canvas& canvas, const Tensor& images, const std::vector<std::int64_t>& indices, double width) {
  const std::int64_t side = images.size(2);
  const double cell = width / static_cast<double>(indices.size()), pixel = (cell - 4.0) / static_cast<double>(side);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::map<int, std::vector<plot::Box>> boxes_of_level;
    const std::vector<int> values = images.select(0, indices[i]).to_vector<int>();
    for (std::size_t at = 0; at < values.size(); ++at) {
      const std::int64_t row = static_cast<std::int64_t>(at) / side, column = static_cast<std::int64_t>(at) % side;
      boxes_of_level[values[at] / 16].push_back({static_cast<double>(i) * cell + static_cast<double>(column) * pixel,
                                                 static_cast<double>(row) * pixel, pixel, pixel});
    }
    for (const auto& [level, boxes] : boxes_of_level)
      canvas.rectangles(boxes, {{"", fmt::format("#{0:02x}{0:02x}{0:02x}", 17 * level)}}, "");
  }
}

void add_batches(HtmlWriter& html, const Lesson& lesson) {
  constexpr double kWidth = 52.0 * kBatchPerRank;  // pixels of 4 points
  const data::ImageDataset& examples = lesson.examples.training;
  const std::vector<std::int64_t> labels = examples.labels.to_vector<std::int64_t>();
  html.element("h2", "2. Micro-batches of step 1");
  html.open("div", {{"class", "grid"}});
  for (std::size_t rank = 0; rank < lesson.intact.size(); ++rank) {
    const RankRecord& record = lesson.intact[rank];
    const std::vector<std::int64_t>& batch = record.batches[0];
    std::vector<std::string> names;
    for (const std::int64_t index : batch)
      names.push_back(examples.class_names[static_cast<std::size_t>(labels[static_cast<std::size_t>(index)])]);
    begin_card(html);
    html.element("h3", fmt::format("Rank {}: gradient norm {:.6f}", rank, norm(record.own_gradient)));
    html.markup(plot::svg_picture({kWidth, kWidth / static_cast<double>(batch.size())},
                                  fmt::format("The micro-batch of rank {}", rank), plot::SvgKind::inline_,
                                  [&](plot::Canvas& canvas) { draw_images(canvas, examples.images, batch, kWidth); }));
    add_note(html, fmt::format("{}. Examples {}.", fmt::join(names, ", "), fmt::join(batch, ", ")));
    html.close();
  }
  html.close();
}

void add_gradient(HtmlWriter& html, const GradientCheck& check) {
  html.element("h2", "3. The averaged gradient");
  begin_card(html);
  train::report::add_pairs(html, {{"Averaged over ranks, norm", fmt::format("{:.6f}", check.averaged_norm)},
                                  {"Single process, norm", fmt::format("{:.6f}", check.single_norm)},
                                  {"Largest difference of an element", fmt::format("{:.3g}", check.largest_difference)},
                                  {"Relative difference", fmt::format("{:.3g}", check.relative_difference)}});
  add_note(html, "One process that has the joined batch computes the same gradient, but for rounding.");
  html.close();
}

void add_replicas(HtmlWriter& html, const Run& run) {
  html.element("h2", "4. Replicas after the update");
  std::vector<Row> rows;
  for (std::size_t rank = 0; rank < run.size(); ++rank)
    rows.push_back({name_of_rank(rank), hash(run[rank].weights[1]), hash(run[rank].weights.back())});
  add_table(html, {"", "hash after step 1", fmt::format("after step {}", run[0].batches.size())}, rows,
            "Equal weights and equal gradients make equal weights: nobody exchanges weights after the first time.");
}

/// What ranks hold; what a message has changed is told with how.
void add_values(HtmlWriter& html, const Values& values, const Values& before, const std::vector<Message>& messages) {
  html.open("table");
  html.open("tr");
  html.element("th", "");
  for (std::size_t chunk = 0; chunk < values[0].size(); ++chunk) html.element("th", fmt::format("chunk {}", chunk));
  html.close();
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    html.open("tr");
    html.element("th", name_of_rank(rank));
    for (std::size_t chunk = 0; chunk < values[rank].size(); ++chunk) {
      std::string text = fmt::format("{}", values[rank][chunk]), kind;
      for (const Message& message : messages) {
        if (message.to != static_cast<int>(rank) || message.chunk != static_cast<int>(chunk)) continue;
        kind = "changed";
        if (message.is_added) text = fmt::format("{} + {} = {}", before[rank][chunk], message.value, text);
      }
      html.element("td", text, {{"class", kind}});
    }
    html.close();
  }
  html.close();
}

void add_ring(HtmlWriter& html, const RingLesson& ring) {
  html.element("h2", "5. All-reduce by a ring, on small numbers");
  begin_card(html, "card scroll");
  html.open("div", {{"class", "controls"}, {"id", "ring-controls"}, {"hidden", ""}});
  html.element("button", "Back", {{"id", "back"}});
  html.element("button", "Next", {{"id", "next"}});
  html.close();
  html.open("ol", {{"id", "ring"}});
  html.open("li");
  html.element("h3", "Before: each rank has its own numbers");
  add_values(html, ring.before, ring.before, {});
  html.close();
  const Values* before = &ring.before;
  for (std::size_t i = 0; i < ring.rounds.size(); ++i) {
    const Round& round = ring.rounds[i];
    html.open("li");
    html.element("h3", fmt::format("Round {} of {}", i + 1, ring.rounds.size()));
    add_values(html, round.after, *before, round.messages);
    std::vector<std::string> texts;
    for (const Message& message : round.messages) texts.push_back(message_text(message));
    add_note(html, fmt::format("{}.", fmt::join(texts, "; ")));
    html.close();
    before = &round.after;
  }
  html.close();
  html.close();
}

plot::LineChart chart_of(const std::string& title, const std::vector<double>& intact,
                         const std::vector<double>& broken) {
  std::vector<double> steps(intact.size());
  std::iota(steps.begin(), steps.end(), 0.0);
  plot::LineChart chart{.title = title, .x = {.title = "step", .whole = true}, .y = {}, .series = {}};
  chart.series.push_back({.name = "intact", .colour = plot::series_colour(0), .x = steps, .y = intact});
  chart.series.push_back({.name = "broken", .colour = plot::series_colour(1), .x = steps, .y = broken});
  return chart;
}

void add_broken(HtmlWriter& html, const Lesson& lesson, const BrokenRun& run) {
  html.element("h2", fmt::format("Left out: {}", run.left_out.name));
  html.element("p", run.left_out.what_breaks);
  html.element("p", difference_text(run) + fmt::format(" Different examples that were used: {} intact, {} broken.",
                                                       lesson.examples_seen, run.examples_seen));
  html.open("div", {{"class", "grid"}});
  train::report::add_chart(html, chart_of("Loss on held-out examples, mean of replicas", lesson.losses, run.losses));
  train::report::add_chart(html,
                           chart_of("Largest distance between weights of replicas", lesson.distances, run.distances));
  html.close();
}

// Speed-up -----------------------------------------------------------------------------------------------------------

const std::vector<double> kBatches{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

struct Slider {
  std::string id, name;
  std::size_t count, at;
  double value;
};

void add_slider(HtmlWriter& html, const Slider& slider) {
  html.open("label");
  html.text(slider.name + " ");
  html.element("output", fmt::format("{}", slider.value), {{"id", slider.id + "-value"}});
  html.empty_element("input", {{"type", "range"},
                               {"id", slider.id},
                               {"min", "0"},
                               {"max", fmt::format("{}", slider.count - 1)},
                               {"value", fmt::format("{}", slider.at)}});
  html.close();
}

/// Seconds of computing for an example and a weight, as in the intact run.
double compute_cost(const Lesson& lesson) {
  const auto weights = static_cast<double>(lesson.intact[0].drawn.size());
  return lesson.compute_seconds / static_cast<double>(kBatchPerRank) / weights;
}

void add_speed_rows(HtmlWriter& html, const SpeedGrid& speed, std::size_t first, double compute) {
  html.open("table", {{"id", "speed"}});
  html.open("tr");
  for (const char* const column : {"ranks", "exchange, ms", "speed-up", "of the ideal"}) html.element("th", column);
  html.close();
  for (std::size_t rank = 0; rank < speed.ranks.size(); ++rank) {
    const int ranks = speed.ranks[rank];
    const double exchange = speed.exchange[first + rank], factor = speed_up(ranks, compute, exchange);
    html.open("tr", {{"data-rank", fmt::format("{}", ranks)}});
    html.element("td", fmt::format("{}", ranks));
    html.element("td", fmt::format("{:.3f}", 1e3 * exchange));
    html.element("td", fmt::format("{:.2f}", factor));
    html.open("td", {{"class", "wide-cell"}});
    html.element("div", "", {{"class", "bar"}, {"style", fmt::format("width: {:.1f}%", 100.0 * factor / ranks)}});
    html.close();
    html.close();
  }
  html.close();
}

void add_speed(HtmlWriter& html, const Lesson& lesson, const SpeedGrid& speed) {
  constexpr std::size_t kBatch = 5, kWeights = 2, kGigabits = 1, kMicroseconds = 1;
  const double compute = kBatches[kBatch] * static_cast<double>(speed.weights[kWeights]) * compute_cost(lesson);
  html.element("h2", "6. What more ranks gain");
  begin_card(html);
  html.element("p",
               fmt::format("In the intact run a rank computes a step for {:.1f} \xC2\xB5s and exchanges gradients for "
                           "{:.1f} \xC2\xB5s (medians): the network is so small that threads of one machine gain "
                           "nothing. Larger models and batches do, also over a network:",
                           1e6 * lesson.compute_seconds, 1e6 * lesson.exchange_seconds));
  html.open("div", {{"class", "sliders"}, {"id", "sliders"}, {"hidden", ""}});
  add_slider(html, {"batch", "Batch of a rank", kBatches.size(), kBatch, kBatches[kBatch]});
  add_slider(html,
             {"weights", "Weights", speed.weights.size(), kWeights, static_cast<double>(speed.weights[kWeights])});
  add_slider(html, {"gigabits", "Bandwidth, Gbit/s", speed.gigabits.size(), kGigabits, speed.gigabits[kGigabits]});
  add_slider(html, {"microseconds", "Latency, \xC2\xB5s", speed.microseconds.size(), kMicroseconds,
                    speed.microseconds[kMicroseconds]});
  html.close();
  add_speed_rows(html, speed, speed.index(kGigabits, kMicroseconds, kWeights, 0), compute);
  html.open("p", {{"class", "note"}});
  html.text("A rank computes a step for ");
  html.element("span", fmt::format("{:.3f}", 1e3 * compute), {{"id", "compute"}});
  html.text(fmt::format(
      " ms: the batch times the weights times {:.3g} ns, as measured here. Exchange: predicted for ranks on hosts of "
      "their own by the fastest algorithm for each size; nothing is computed meanwhile. Speed-up: N ranks compute N "
      "batches in the time of computing and exchanging. Without the script of this page the table is that of a batch "
      "of {}, {} weights, {} Gbit/s and {} \xC2\xB5s.",
      1e9 * compute_cost(lesson), kBatches[kBatch], speed.weights[kWeights], speed.gigabits[kGigabits],
      speed.microseconds[kMicroseconds]));
  html.close();
  html.close();
}

// Exercises ----------------------------------------------------------------------------------------------------------

void add_exercises(HtmlWriter& html, const Lesson& lesson) {
  const int ranks = lesson.options.ranks;
  const std::pair<std::string, std::string> exercises[] = {
      {fmt::format("How many numbers does a rank send in the ring, of {} chunks of k numbers each?", ranks),
       fmt::format(
           "2 (N - 1) k = {} k: a chunk in each of the {} rounds. As N grows this comes near to twice the data, "
           "whatever the number of ranks.",
           2 * (ranks - 1), 2 * (ranks - 1))},
      {"Why are the averaged gradient and that of a single process not the same bits?",
       fmt::format("Sums of floating-point numbers depend on their order. The relative difference is {:.2g}; f32 has "
                   "about 7 digits.",
                   lesson.gradient.relative_difference)},
      {"Without sync-init all replicas get the same gradient. Why does their distance stay what it was?",
       "All take the same steps, so that differences between weights never change. The gradient that each gets is an "
       "average over different places, and right for none of them."},
      {"Without the sampler replicas stay equal. How would one notice?",
       "By the examples that are used, or by the loss: hashes of replicas do not show it."}};
  html.element("h2", "Exercises");
  begin_card(html);
  for (const auto& [question, answer] : exercises) {
    html.open("details");
    html.element("summary", question);
    html.element("p", answer);
    html.close();
  }
  html.close();
}

void add_script(HtmlWriter& html, const Lesson& lesson, const SpeedGrid& speed) {
  html.open("script");
  html.markup(
      fmt::format("const speed = {{ batch: [{}], weights: [{}], gigabits: [{}], microseconds: [{}], ranks: [{}], "
                  "compute: {:.17g},\n"
                  "exchange: [{:.9g}] }};",
                  fmt::join(kBatches, ","), fmt::join(speed.weights, ","), fmt::join(speed.gigabits, ","),
                  fmt::join(speed.microseconds, ","), fmt::join(speed.ranks, ","), compute_cost(lesson),
                  fmt::join(speed.exchange, ",")));
  html.markup(page_script());
  html.close();
}

}  // namespace

std::string lesson_page(const Lesson& lesson, const SpeedGrid& speed) {
  const LabOptions& options = lesson.options;
  HtmlWriter html;
  train::report::begin_page(html, "Synchronous SGD, step by step", page_style(), train::report::Scripts::of_this_page);
  html.open("header");
  html.element("h1", "Synchronous SGD, step by step");
  html.element("p",
               fmt::format("{} ranks, {} steps, batches of {} examples a rank, learning rate {}, momentum {}, seed {}",
                           options.ranks, options.steps, kBatchPerRank, kLearningRate, kMomentum, options.seed),
               {{"class", "sub"}});
  html.close();
  add_weights(html, lesson.intact);
  add_batches(html, lesson);
  add_gradient(html, lesson.gradient);
  add_replicas(html, lesson.intact);
  add_ring(html, lesson.ring);
  add_speed(html, lesson, speed);
  html.element("h2", "7. What breaks when a part is left out");
  html.element("p", "Each part is left out of one more run, from the same seed.");
  for (const BrokenRun& run : lesson.broken) add_broken(html, lesson, run);
  add_exercises(html, lesson);
  add_script(html, lesson, speed);
  return train::report::end_page(html, "Made by sgd_lab; docs/synchronous-sgd.md goes through it.");
}

}  // namespace tandem::sgd_lab
