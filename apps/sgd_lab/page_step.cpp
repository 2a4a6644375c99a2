// One step in detail.
#include "apps/sgd_lab/page_parts.h"
#include "tandem/data/image_dataset.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

namespace tandem::sgd_lab {

namespace {

using train::report::begin_card;
namespace plot = train::plot;

void add_weights(HtmlWriter& html, const Run& run) {
  html.element("h2", "1. Initial weights");
  std::vector<Row> rows;
  for (std::size_t rank = 0; rank < run.size(); ++rank) {
    const Flat &drawn = run[rank].drawn, &weights = run[rank].weights[0];
    rows.push_back({name_of_rank(rank), hash(drawn), fmt::format("{:.5f}", norm(drawn)), hash(weights),
                    fmt::format("{:.5f}", norm(weights))});
  }
  add_table(html,
            {{"", "drawn: hash", "norm", "broadcast: hash", "norm"},
             rows,
             "Each rank draws its own weights; rank 0 then broadcasts its own to all. Equal hashes are equal bits."});
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
  add_table(html,
            {{"", "hash after step 1", fmt::format("after step {}", run[0].batches.size())},
             rows,
             "Equal weights and equal gradients make equal weights: nobody exchanges weights after the first time."});
}

}  // namespace

void add_step(HtmlWriter& html, const Lesson& lesson) {
  add_weights(html, lesson.intact);
  add_batches(html, lesson);
  add_gradient(html, lesson.gradient);
  add_replicas(html, lesson.intact);
}

}  // namespace tandem::sgd_lab
