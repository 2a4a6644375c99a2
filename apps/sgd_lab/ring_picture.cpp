#include "apps/sgd_lab/ring_picture.h"

#include "apps/sgd_lab/text.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem::sgd_lab {

namespace {

namespace plot = train::plot;
using plot::Point;

constexpr int kMostInRow = 4;
constexpr double kCellWidth = 23.0, kCellHeight = 19.0, kHeading = 17.0, kEdge = 5.0;

bool is_changed(const std::vector<Message>& messages, int rank, int chunk) {
  return std::ranges::any_of(messages,
                             [&](const Message& message) { return message.to == rank && message.chunk == chunk; });
}

/// How far along a direction one leaves a box from its middle.
double way_out(plot::Size box, Point direction) {
  const double across = std::abs(direction.x) > 1e-9 ? 0.5 * box.width / std::abs(direction.x) : 1e9;
  const double down = std::abs(direction.y) > 1e-9 ? 0.5 * box.height / std::abs(direction.y) : 1e9;
  return std::min(across, down);
}

}  // namespace

plot::Colour colour_of_chunk(int chunk) { return plot::series_colour(static_cast<std::size_t>(chunk)); }

void draw_message(plot::Canvas& canvas, const Message& message, Point centre) {
  canvas.circle(centre, kMessageSize / 2.0, {colour_of_chunk(message.chunk)}, "");
  canvas.circle(centre, kMessageSize / 2.0 - 1.5, {plot::kPaper}, "");
  canvas.text({centre.x, centre.y + 4.0}, fmt::format("{}", message.value),
              {.colour = plot::kInk, .size = 11.5, .anchor = plot::Anchor::middle, .bold = true});
}

plot::Size RingPicture::box() const {
  const int chunks = ring_.schedule.chunks, rows = (chunks + kMostInRow - 1) / kMostInRow;
  return {std::max(52.0, std::min(chunks, kMostInRow) * kCellWidth + 2.0 * kEdge),
          kHeading + rows * kCellHeight + 2.0 * kEdge};
}

plot::Size RingPicture::size() const {
  const double radius = ring_.schedule.ranks > 4 ? 225.0 : 120.0;
  return {2.0 * radius + box().width + 4.0, 2.0 * radius + box().height + 4.0};
}

Point RingPicture::place_of(int rank) const {
  const double angle = 2.0 * std::numbers::pi * rank / ring_.schedule.ranks - 0.5 * std::numbers::pi;
  const plot::Size all = size(), one = box();
  return {all.width / 2.0 + (all.width - one.width - 4.0) / 2.0 * std::cos(angle),
          all.height / 2.0 + (all.height - one.height - 4.0) / 2.0 * std::sin(angle)};
}

RingPicture::Arrow RingPicture::arrow_of(const Message& message) const {
  constexpr double kGap = 3.0;
  Point from = place_of(message.from), to = place_of(message.to);
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  const Point way{(to.x - from.x) / length, (to.y - from.y) / length};
  // Of two ranks, what goes to and fro is side by side.
  const double aside = ring_.schedule.ranks == 2 ? 16.0 : 0.0, out = way_out(box(), way) + kGap;
  return {{from.x + out * way.x - aside * way.y, from.y + out * way.y + aside * way.x},
          {to.x - out * way.x - aside * way.y, to.y - out * way.y + aside * way.x}};
}

std::string RingPicture::description() const {
  if (round_ == 0) return "The ring before the first round";
  std::string text = fmt::format("Round {} of {}:", round_, ring_.rounds.size());
  for (const Message& message : ring_.rounds[round_ - 1].messages) text += fmt::format(" {};", message_text(message));
  text.back() = '.';
  return text;
}

void RingPicture::draw_rank(plot::Canvas& canvas, int rank) const {
  const auto number = static_cast<std::size_t>(rank);
  const Values& values = round_ == 0 ? ring_.before : ring_.rounds[round_ - 1].after;
  const plot::Size size = box();
  const Point centre = place_of(rank);
  const plot::Box outline{centre.x - size.width / 2.0, centre.y - size.height / 2.0, size.width, size.height};
  const Point corners[] = {{outline.x, outline.y},
                           {outline.x + outline.width, outline.y},
                           {outline.x + outline.width, outline.y + outline.height},
                           {outline.x, outline.y + outline.height},
                           {outline.x, outline.y}};
  canvas.line(corners, {plot::kMuted});
  canvas.text({centre.x, outline.y + kEdge + 10.0}, fmt::format("rank {}", rank),
              {.colour = plot::kInk, .size = 11.5, .anchor = plot::Anchor::middle, .bold = true});
  for (int chunk = 0; chunk < ring_.schedule.chunks; ++chunk) {
    const auto index = static_cast<std::size_t>(chunk);
    const int in_row = std::min(ring_.schedule.chunks, kMostInRow), row = chunk / in_row;
    const double share = static_cast<double>(ring_.parts[round_][number][index]) / ring_.schedule.ranks;
    const plot::Box cell{centre.x + (chunk % in_row - in_row / 2.0) * kCellWidth + 1.0,
                         outline.y + kEdge + kHeading + row * kCellHeight, kCellWidth - 2.0, kCellHeight - 2.0};
    canvas.rectangle(cell, {colour_of_chunk(chunk), 0.08 + 0.47 * share});
    const bool changed = round_ > 0 && is_changed(ring_.rounds[round_ - 1].messages, rank, chunk);
    if (changed)
      canvas.segment({cell.x, cell.y + cell.height}, {cell.x + cell.width, cell.y + cell.height},
                     {colour_of_chunk(chunk), 2.5});
    canvas.text({cell.x + cell.width / 2.0, cell.y + 12.5}, fmt::format("{}", values[number][index]),
                {.colour = plot::kInk, .size = 11.5, .anchor = plot::Anchor::middle, .bold = changed});
  }
}

void RingPicture::draw(plot::Canvas& canvas) const {
  for (int rank = 0; rank < ring_.schedule.ranks; ++rank) draw_rank(canvas, rank);
  if (round_ == 0) {
    for (int rank = 0; rank < ring_.schedule.ranks; ++rank) {
      const Arrow arrow = arrow_of({rank, (rank + 1) % ring_.schedule.ranks, 0, 0, false});
      canvas.segment(arrow.from, arrow.to, {.colour = plot::kMuted, .dashed = true});
    }
    return;
  }
  for (const Message& message : ring_.rounds[round_ - 1].messages) {
    const Arrow arrow = arrow_of(message);
    const double length = std::hypot(arrow.to.x - arrow.from.x, arrow.to.y - arrow.from.y);
    const Point way{(arrow.to.x - arrow.from.x) / length, (arrow.to.y - arrow.from.y) / length};
    const Point neck{arrow.to.x - 8.0 * way.x, arrow.to.y - 8.0 * way.y};
    canvas.segment(arrow.from, neck, {colour_of_chunk(message.chunk), 2.5});
    const Point head[] = {
        arrow.to, {neck.x - 4.5 * way.y, neck.y + 4.5 * way.x}, {neck.x + 4.5 * way.y, neck.y - 4.5 * way.x}};
    canvas.polygon(head, {colour_of_chunk(message.chunk)});
  }
}

}  // namespace tandem::sgd_lab
