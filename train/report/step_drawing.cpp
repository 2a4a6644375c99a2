// Rows below each other over one axis of time.
#include "tandem/train/report/step_drawing.h"

#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/text_width.h"
#include "tandem/train/plot/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace tandem::train::report {

namespace {

using plot::Box;
using plot::Canvas;

constexpr double kLabels = 82.0, kRight = 6.0, kAxis = 26.0, kRankGap = 16.0, kTextSize = 10.5;

/// What a row shows, from the top of a rank's part on.
struct Lane {
  std::string name;
  std::vector<const StepSpan*> spans;
  double height = 14.0;
  double opacity = 1.0;
};

/// All lanes of a rank.
using Lanes = std::vector<Lane>;

bool is_part(const StepSpan& span) {
  return span.number < 0 && (span.name == "wait" || span.name == "copy" || span.name == "combine");
}

bool is_step(const StepSpan& span) { return span.number >= 0 && span.wait + span.copy + span.combine > 0.0; }

/// "buckets (2)" is one more row of buckets.
std::string_view kind_of(const StepRow& row) {
  return std::string_view(row.name).substr(0, std::min(row.name.find(" ("), row.name.size()));
}

bool has_messages(const StepRow& row) { return row.name.starts_with("to rank ") || row.name.starts_with("from rank "); }

/// "forward " of "forward Conv2d", "backward " of "backward conv2d", else "".
std::string_view direction_of(const StepSpan& span) {
  for (const std::string_view direction : {"forward ", "backward "})
    if (span.name.starts_with(direction)) return direction;
  return "";
}

/// Layers that have no others within them, and what else lies directly within a phase.
std::vector<const StepSpan*> layers_of(const std::vector<StepSpan>& work) {
  std::vector<const StepSpan*> layers;
  for (std::size_t i = 0; i < work.size(); ++i) {
    const std::string_view direction = direction_of(work[i]);
    bool is_innermost = true;
    for (std::size_t k = i + 1; k < work.size() && work[k].begin < work[i].end; ++k)
      is_innermost = is_innermost && direction_of(work[k]) != direction;
    if (direction.empty() ? work[i].depth == 1 : is_innermost) layers.push_back(&work[i]);
  }
  return layers;
}

/// Of the whole step: without messages, and without collectives where there are buckets, which are the same.
Lanes lanes_of(const StepOfRank& rank) {
  Lanes lanes{{"phases", {}, 18.0}, {"layers", layers_of(rank.work), 13.0, 0.45}};
  for (const StepSpan& span : rank.work)
    if (span.depth == 0) lanes.front().spans.push_back(&span);
  const bool has_buckets = std::ranges::any_of(rank.rows, [](const StepRow& row) { return kind_of(row) == "buckets"; });
  for (const StepRow& row : rank.rows) {
    if (has_messages(row) || (has_buckets && kind_of(row) == "collectives")) continue;
    Lane lane{row.name, {}, 12.0, 0.45};
    for (const StepSpan& span : row.spans)
      if (span.depth == 0) lane.spans.push_back(&span);
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

double height_of(const Lanes& lanes) {
  double height = 0.0;
  for (const Lane& lane : lanes) height += lane.height + 2.0;
  return height;
}

/// Places of times.
class Scale {
 public:
  Scale(double begin, double end, double width)
      : begin_(begin), per_ms_((width - kLabels - kRight) / std::max(end - begin, 1e-6)), end_(end) {}
  double x(double time) const { return kLabels + per_ms_ * (std::clamp(time, begin_, end_) - begin_); }
  Box box(double from, double to, double y, double height) const {
    return {x(from), y, std::max(x(to) - x(from), 0.4), height};
  }
  double begin() const { return begin_; }
  double end() const { return end_; }

 private:
  double begin_, per_ms_, end_;
};

void draw_axis(Canvas& canvas, const Scale& scale, double bottom) {
  const double length = scale.end() - scale.begin();
  if (!(length > 0.0)) return;
  const double unit = length < 1.0 ? 1e-3 : 1.0;  // microseconds below a millisecond
  const double step = plot::tick_step(0.0, length / unit, 5);
  for (const double tick : plot::linear_ticks(0.0, length / unit)) {
    const double x = scale.x(scale.begin() + tick * unit);
    canvas.segment({x, 0.0}, {x, bottom}, {plot::kRule});
    canvas.text({x, bottom + 14.0}, plot::tick_text(tick, step),
                {.colour = plot::kMuted, .size = kTextSize, .anchor = plot::Anchor::middle});
  }
  canvas.text({0.0, bottom + 14.0}, unit == 1.0 ? "ms" : "\xC2\xB5s", {.colour = plot::kMuted, .size = kTextSize});
}

std::string time_text(double ms) {
  return ms < 1.0 ? fmt::format("{:.1f} \xC2\xB5s", 1e3 * ms) : fmt::format("{:.2f} ms", ms);
}

std::string tip_of(const StepSpan& span) {
  std::string tip = span.module.empty() ? span.name : fmt::format("{} of {}", span.name, span.module);
  tip += ": " + time_text(span.end - span.begin);
  for (const auto& [name, value] : {std::pair{"round", span.round}, std::pair{"rank", span.peer},
                                    std::pair{"chunk", span.chunk}, std::pair{"segment", span.segment}})
    if (value >= 0) tip += fmt::format(", {} {}", name, value);
  if (span.bytes > 0.0) tip += ", " + plot::number_text(span.bytes, plot::Unit::bytes);
  return tip;
}

/// Waiting, copying and combining, one after another.
void draw_parts(Canvas& canvas, const Scale& scale, const StepSpan& span, double y, double height) {
  double begin = span.begin;
  const bool is_send = span.name == "send";
  for (const auto& [name, length] : {std::pair{is_send ? "send" : "wait", span.wait}, std::pair{"copy", span.copy},
                                     std::pair{"combine", span.combine}}) {
    const double opacity = name == std::string_view("wait") ? 0.25 : is_send ? 0.5 : 0.9;
    if (length > 0.0 && begin + length > scale.begin() && begin < scale.end())
      canvas.rectangle(scale.box(begin, begin + length, y, height), {colour_of(name), opacity}, tip_of(span));
    begin += length;
  }
}

void draw_span(Canvas& canvas, const Scale& scale, const StepSpan& span, double y, double height, double opacity) {
  const Box box = scale.box(span.begin, span.end, y, height);
  canvas.rectangle(box, {colour_of(span.name), opacity}, tip_of(span));
  constexpr double kLeastText = 26.0;
  if (box.width < kLeastText || height < 12.0) return;
  const std::string name = span.name.substr(direction_of(span).size());  // which the colour tells
  const std::string text = plot::cut_to_width(name, kTextSize, box.width - 4.0);
  canvas.text({box.x + 2.5, y + height / 2.0 + 3.6}, text,
              {.colour = opacity < 0.7 ? plot::kInk : plot::kOnFull, .size = kTextSize});
}

void draw_lane(Canvas& canvas, const Scale& scale, const Lane& lane, double y) {
  if (lane.height >= 8.0)
    canvas.text({10.0, y + lane.height / 2.0 + 3.6}, plot::cut_to_width(lane.name, kTextSize, kLabels - 14.0),
                {.colour = plot::kMuted, .size = lane.height < 10.0 ? 8.5 : kTextSize});
  for (const StepSpan* const span : lane.spans) {
    if (is_step(*span)) {
      draw_parts(canvas, scale, *span, y, lane.height);
    } else {
      draw_span(canvas, scale, *span, y, lane.height, lane.opacity);
    }
  }
}

std::size_t ranks_drawn(const StepTrace& step) { return std::min(step.ranks.size(), kMostRanksDrawn); }

/// Of one exchange, the lanes of a rank: its steps in shared memory, or messages by peer.
Lanes lanes_of(const StepOfRank& rank, const Exchange& exchange) {
  Lanes lanes;
  for (const StepRow& row : rank.rows) {
    if (kind_of(row) != "collectives" && !has_messages(row)) continue;
    Lane lane{has_messages(row) ? row.name : "memory", {}, has_messages(row) ? 13.0 : 20.0};
    for (const StepSpan& span : row.spans)
      if (is_step(span) && span.number == exchange.number && span.algorithm == exchange.algorithm)
        lane.spans.push_back(&span);
    if (!lane.spans.empty()) lanes.push_back(std::move(lane));
  }
  return lanes;
}

/// From shortly before its last rank joined until shortly behind the last copy: what lies beside that is waiting.
void find_ends(const StepTrace& step, Exchange& exchange) {
  double joined = 0.0, worked = 0.0, ended = 0.0;
  for (const StepOfRank& rank : step.ranks) {
    for (const StepRow& row : rank.rows) {
      for (const StepSpan& span : row.spans) {
        if (span.number != exchange.number || span.algorithm != exchange.algorithm) continue;
        if (span.copy + span.combine > 0.0) worked = std::max(worked, span.end);
        if (span.name != exchange.name) continue;
        joined = std::max(joined, span.begin);
        ended = std::max(ended, span.end);
      }
    }
  }
  const double beside = 0.1 * std::max(0.0, worked - joined);
  exchange.begin = std::max(exchange.begin, joined - beside);
  exchange.end = std::min(ended, std::max(worked, joined) + beside);
}

constexpr double kHeading = 16.0;

/// Where a message leaves and where it arrives.
struct Ends {
  plot::Point from, to;
  bool has_from = false, has_to = false;
};

void draw_arrows(Canvas& canvas, const std::map<std::tuple<int, int, int, int, int>, Ends>& messages) {
  constexpr std::size_t kMost = 200;  // more would hide what they join
  if (messages.size() > kMost) return;
  for (const auto& [key, ends] : messages) {
    if (!ends.has_from || !ends.has_to) continue;
    canvas.segment(ends.from, ends.to, {plot::kInk, 0.8, 0.55});
    canvas.circle(ends.to, 1.8, {plot::kInk, 0.7}, "");
  }
}

}  // namespace

plot::Colour colour_of(std::string_view name) {
  static const std::map<std::string_view, std::size_t> kNamed = {{"data", 7}, {"optimizer", 2}, {"communication", 1},
                                                                 {"copy", 6}, {"combine", 2},   {"send", 0}};
  if (name == "wait" || name == "wait for all") return plot::kMuted;
  if (const auto found = kNamed.find(name); found != kNamed.end()) return plot::series_colour(found->second);
  if (name.starts_with("forward")) return plot::series_colour(0);
  if (name.starts_with("backward")) return plot::series_colour(4);
  if (name.starts_with("bucket") || name.starts_with("all_reduce")) return plot::series_colour(1);
  return plot::kMuted;
}

double height_of_step(const StepTrace& step) {
  double height = kAxis;
  for (std::size_t i = 0; i < ranks_drawn(step); ++i)
    height += kHeading + height_of(lanes_of(step.ranks[i])) + kRankGap;
  return height;
}

void draw_step(Canvas& canvas, const StepTrace& step, double width) {
  const Scale scale(0.0, step.end, width);
  draw_axis(canvas, scale, height_of_step(step) - kAxis);
  double y = 0.0;
  for (std::size_t i = 0; i < ranks_drawn(step); ++i) {
    const StepOfRank& rank = step.ranks[i];
    canvas.text({0.0, y + 11.0}, fmt::format("rank {}", rank.rank), {.colour = plot::kInk, .size = 12.0, .bold = true});
    y += kHeading;
    for (const Lane& lane : lanes_of(rank)) {
      draw_lane(canvas, scale, lane, y);
      y += lane.height + 2.0;
    }
    y += kRankGap;
  }
}

Exchange largest_exchange(const StepTrace& step) {
  Exchange best;
  if (step.ranks.empty()) return best;
  for (const StepRow& row : step.ranks.front().rows) {
    if (kind_of(row) != "collectives") continue;
    for (const StepSpan& span : row.spans) {
      if (is_step(span) || is_part(span) || span.bytes <= best.bytes) continue;
      Exchange exchange{span.name, span.algorithm, span.number, span.bytes, span.begin, span.end};
      if (!lanes_of(step.ranks.front(), exchange).empty()) best = exchange;
    }
  }
  find_ends(step, best);
  return best;
}

double height_of_exchange(const StepTrace& step, const Exchange& exchange) {
  double height = kAxis;
  for (std::size_t i = 0; i < ranks_drawn(step); ++i)
    height += kHeading + height_of(lanes_of(step.ranks[i], exchange)) + kRankGap;
  return height;
}

void draw_exchange(Canvas& canvas, const StepTrace& step, const Exchange& exchange, double width) {
  const Scale scale(exchange.begin, exchange.end, width);
  draw_axis(canvas, scale, height_of_exchange(step, exchange) - kAxis);
  std::map<std::tuple<int, int, int, int, int>, Ends> messages;  // from, to, round, chunk, segment
  double y = 0.0;
  for (std::size_t i = 0; i < ranks_drawn(step); ++i) {
    const StepOfRank& rank = step.ranks[i];
    canvas.text({0.0, y + 11.0}, fmt::format("rank {}", rank.rank), {.colour = plot::kInk, .size = 12.0, .bold = true});
    y += kHeading;
    for (const Lane& lane : lanes_of(rank, exchange)) {
      draw_lane(canvas, scale, lane, y);
      for (const StepSpan* const span : lane.spans) {
        if (span->peer < 0) continue;
        const bool is_send = span->name == "send";
        const int from = is_send ? rank.rank : span->peer, to = is_send ? span->peer : rank.rank;
        Ends& ends = messages[{from, to, span->round, span->chunk, span->segment}];
        (is_send ? ends.from : ends.to) = {scale.x(is_send ? span->begin : span->begin + span->wait + span->copy),
                                           y + lane.height / 2.0};
        (is_send ? ends.has_from : ends.has_to) = true;
      }
      y += lane.height + 2.0;
    }
    y += kRankGap;
  }
  draw_arrows(canvas, messages);
}

}  // namespace tandem::train::report
