// Buckets of gradients: which parameters share one, and when each is exchanged in a step.
#include "apps/pictures/measured.h"
#include "apps/pictures/picture.h"
#include "apps/pictures/shapes.h"
#include "tandem/comm/ddp/gradient_bucket.h"
#include "tandem/core/error.h"
#include "tandem/layers/models/models.h"
#include "tandem/train/plot/frame.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::pictures {

namespace {

namespace plot = train::plot;
constexpr std::string_view kSeveral = "step.csv", kOne = "step-one-bucket.csv";
constexpr std::int64_t kBucketBytes = 52'429;  // --bucket-mb 0.05

struct Row {
  std::string name;
  double kilobytes = 0.0;
  std::size_t bucket = 0;
};

/// The parameters of small_cnn as DistributedDataParallel expects their gradients: from the last to the first.
std::vector<Row> plan() {
  const auto network = layers::make_model({.name = "small_cnn"});
  const NamedTensors named = network->named_parameters();
  std::vector<Tensor> parameters;
  for (const auto& [name, tensor] : named) parameters.push_back(tensor);
  const comm::BucketPlan buckets = comm::plan_buckets(parameters, kBucketBytes, kBucketBytes);
  std::vector<Row> rows;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket)
    for (const std::size_t index : buckets[bucket])
      rows.push_back({named[index].first, static_cast<double>(parameters[index].numel()) * 4.0 / 1024.0, bucket});
  return rows;
}

std::vector<double> bucket_kilobytes(const std::vector<Row>& rows) {
  std::vector<double> sums;
  for (const Row& row : rows) {
    if (row.bucket >= sums.size()) sums.resize(row.bucket + 1);
    sums[row.bucket] += row.kilobytes;
  }
  return sums;
}

Picture plan_picture() {
  return {"buckets-plan", 294.0, "The parameters of small_cnn from the last layer to the first, and the bucket of each",
          [](plot::Canvas& canvas) {
            draw_heading(canvas, 6.0, 14.0, "parameter");
            draw_heading(canvas, 182.0, 14.0, "KiB");
            draw_heading(canvas, 230.0, 14.0, "bucket");
            double top = 22.0;
            const std::vector<Row> rows = plan();
            for (std::size_t i = 0; i < rows.size(); ++i) {
              const Row& row = rows[i];
              if (i > 0 && rows[i - 1].bucket != row.bucket) top += 5.0;
              canvas.rectangle({4.0, top, kWidth - 8.0, 18.0}, {plot::series_colour(row.bucket), 0.22});
              draw_text(canvas, 8.0, top + 13.0, row.name, kSmallSize);
              canvas.text({206.0, top + 13.0}, fmt::format("{:.2f}", row.kilobytes),
                          {.colour = plot::kInk, .size = kSmallSize, .anchor = plot::Anchor::end});
              if (i == 0 || rows[i - 1].bucket != row.bucket)
                draw_text(canvas, 230.0, top + 13.0,
                          fmt::format("{}: {:.1f} KiB in all", row.bucket, bucket_kilobytes(rows)[row.bucket]),
                          kSmallSize);
              top += 18.0;
            }
          }};
}

struct Span {
  std::string row, name;
  double begin = 0.0, end = 0.0;
};

std::vector<Span> read_spans(const std::string& folder, std::string_view file) {
  std::vector<Span> spans;
  for (const std::vector<std::string>& row : read_measured(folder, file).rows) {
    require(row.size() == 4, "{}: a row has {} words, not 4", file, row.size());
    spans.push_back({row[0], row[1], number_of(row[2]), number_of(row[3])});
  }
  return spans;
}

plot::Colour colour_of(const Span& span) {
  if (span.name == "forward") return plot::series_colour(0);
  if (span.name == "backward") return plot::series_colour(2);
  if (span.name.starts_with("bucket")) return plot::series_colour(1);
  return span.name == "communication" ? plot::kWrong : plot::series_colour(4);
}

std::vector<std::string> rows_of(const std::vector<Span>& spans) {
  std::vector<std::string> rows;
  for (const Span& span : spans)
    if (std::ranges::find(rows, span.row) == rows.end()) rows.push_back(span.row);
  return rows;
}

/// A step and its heading; a row of it is so high.
constexpr double kRowHeight = 24.0, kHeadingHeight = 24.0;
double height_of(const std::vector<Span>& spans) {
  return kHeadingHeight + kRowHeight * static_cast<double>(rows_of(spans).size());
}

plot::Frame frame_of(const plot::Axis& time, double top, double height) {
  return {{84.0, top, kWidth - 100.0, height}, time, {.title = "", .least = 0.0, .most = 1.0}};
}

void draw_step(plot::Canvas& canvas, const std::string& heading, const std::vector<Span>& spans, const plot::Axis& time,
               double top) {
  draw_heading(canvas, 4.0, top + 15.0, heading);
  const std::vector<std::string> rows = rows_of(spans);
  const plot::Frame frame = frame_of(time, top, 0.0);
  for (const Span& span : spans) {
    const auto row = static_cast<double>(std::ranges::find(rows, span.row) - rows.begin());
    const double left = frame.x(span.begin), width = std::max(frame.x(span.end) - left, 1.0);
    const plot::Box box{left, top + kHeadingHeight + kRowHeight * row, width, kRowHeight - 4.0};
    canvas.rectangle(box, {colour_of(span), 0.6}, fmt::format("{}: {:.2f} ms", span.name, span.end - span.begin));
    const std::string name = span.name == "communication" ? "waits" : span.name;
    if (width > 38.0 && !span.name.starts_with("bucket")) draw_centred(canvas, left + width / 2.0, box.y + 14.0, name);
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    draw_text(canvas, 4.0, top + kHeadingHeight + kRowHeight * static_cast<double>(i) + 14.0, rows[i], kSmallSize);
}

Picture step_picture(const std::string& folder) {
  const std::vector<Span> several = read_spans(folder, kSeveral), one = read_spans(folder, kOne);
  const double second = height_of(several) + 8.0, bottom = second + height_of(one);
  return {
      "buckets-step", bottom + 40.0,
      "Two measured steps of a rank: with four buckets most of the exchange lies beside the backward pass, with one "
      "bucket all of it lies behind",
      [=](plot::Canvas& canvas) {
        plot::Axis time{.title = "milliseconds since the step began", .least = 0.0, .most = 0.0};
        for (const std::vector<Span>* const spans : {&several, &one})
          for (const Span& span : *spans) time.include(span.end);
        frame_of(time, 8.0, bottom - 4.0).draw_x(canvas);
        draw_step(canvas, "four buckets", several, time, 0.0);
        draw_step(canvas, "one bucket", one, time, second);
      }};
}

}  // namespace

Concept buckets_concept(const std::string& folder) {
  Concept page{"buckets", {plan_picture(), step_picture(folder)}, {}};
  const std::vector<double> sums = bucket_kilobytes(plan());
  for (std::size_t bucket = 0; bucket < sums.size(); ++bucket)
    page.lines.push_back(fmt::format("bucket {}: {:.1f} KiB", bucket, sums[bucket]));
  for (const auto& [what, file] : {std::pair{"four buckets", kSeveral}, std::pair{"one bucket", kOne}})
    for (const Span& span : read_spans(folder, file))
      page.lines.push_back(
          fmt::format("{:<12} {:<13} from {:>6.2f} to {:>6.2f} ms", what, span.name, span.begin, span.end));
  return page;
}

}  // namespace tandem::pictures
