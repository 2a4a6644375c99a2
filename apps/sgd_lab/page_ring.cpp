// The ring, round by round.
#include "apps/sgd_lab/page_parts.h"
#include "apps/sgd_lab/ring_picture.h"
#include "apps/sgd_lab/text.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tandem::sgd_lab {

namespace {

namespace plot = train::plot;

/// What came to a chunk, and how it was changed; null where nothing did.
const Message* message_to(const std::vector<Message>& messages, std::size_t rank, std::size_t chunk) {
  const auto found = std::ranges::find_if(messages, [&](const Message& message) {
    return message.to == static_cast<int>(rank) && message.chunk == static_cast<int>(chunk);
  });
  return found == messages.end() ? nullptr : &*found;
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
      const Message* const message = message_to(messages, rank, chunk);
      html.open("td", {{"class", message == nullptr ? "" : "changed"}});
      if (message != nullptr && message->is_added)
        html.element("span", fmt::format("{} + {} = ", before[rank][chunk], message->value), {{"class", "sum"}});
      html.text(fmt::format("{}", values[rank][chunk]));
      html.close();
    }
    html.close();
  }
  html.close();
}

/// Numbers on their way lie over the picture, each as one of its own, so that it can be moved.
void add_picture(HtmlWriter& html, const RingLesson& ring, std::size_t round) {
  const RingPicture picture(ring, round);
  const plot::Size size = picture.size();
  html.open("div", {{"class", "ring-picture"}, {"style", fmt::format("max-width: {:.0f}px", size.width)}});
  html.markup(plot::svg_picture(size, picture.description(), plot::SvgKind::inline_,
                                [&](plot::Canvas& canvas) { picture.draw(canvas); }));
  const std::vector<Message> messages = round == 0 ? std::vector<Message>() : ring.rounds[round - 1].messages;
  for (const Message& message : messages) {
    const plot::Point middle = picture.middle_of(message), start = picture.start_of(message);
    html.open("div",
              {{"class", "message"},
               {"aria-hidden", "true"},
               {"style", fmt::format("left: {:.2f}%; top: {:.2f}%; width: {:.2f}%; --x: {:.0f}%; --y: {:.0f}%",
                                     100.0 * (middle.x - kMessageSize / 2.0) / size.width,
                                     100.0 * (middle.y - kMessageSize / 2.0) / size.height,
                                     100.0 * kMessageSize / size.width, 100.0 * (start.x - middle.x) / kMessageSize,
                                     100.0 * (start.y - middle.y) / kMessageSize)}});
    html.markup(plot::svg_picture(
        {kMessageSize, kMessageSize}, message_text(message), plot::SvgKind::inline_,
        [&](plot::Canvas& canvas) { draw_message(canvas, message, {kMessageSize / 2.0, kMessageSize / 2.0}); }));
    html.close();
  }
  html.close();
}

void add_round(HtmlWriter& html, const RingLesson& ring, std::size_t round) {
  html.open("li");
  html.element("h3", round == 0 ? "Before: each rank has its own numbers"
                                : fmt::format("Round {} of {}: {}", round, ring.rounds.size(),
                                              round <= ring.rounds.size() / 2 ? "sums grow" : "sums go round"));
  html.open("div", {{"class", ring.schedule.chunks > 4 ? "round below" : "round"}});
  add_picture(html, ring, round);
  html.open("div", {{"class", "scroll"}});
  if (round == 0) {
    add_values(html, ring.before, ring.before, {});
    add_note(html, "Each rank wants the sum of each column. A chunk is the darker the more ranks are in it.");
  } else {
    const Round& now = ring.rounds[round - 1];
    add_values(html, now.after, round == 1 ? ring.before : ring.rounds[round - 2].after, now.messages);
    std::vector<std::string> texts;
    for (const Message& message : now.messages) texts.push_back(message_text(message));
    add_note(html, fmt::format("{}.", fmt::join(texts, "; ")));
  }
  html.close();
  html.close();
  html.close();
}

}  // namespace

void add_ring(HtmlWriter& html, const RingLesson& ring) {
  html.element("h2", "5. All-reduce by a ring, on small numbers");
  train::report::begin_card(html);
  html.open("div", {{"class", "controls"}, {"id", "ring-controls"}, {"hidden", ""}});
  for (const char* const name : {"Back", "Next", "Play"})
    html.element("button", name, {{"id", fmt::format("ring-{}", name)}, {"type", "button"}});
  html.close();
  html.open("ol", {{"id", "ring"}});
  for (std::size_t round = 0; round <= ring.rounds.size(); ++round) add_round(html, ring, round);
  html.close();
  html.close();
}

}  // namespace tandem::sgd_lab
