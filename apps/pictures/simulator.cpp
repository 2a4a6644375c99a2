// Turns of simulated threads, and the two accesses of a race.
#include "apps/pictures/measured.h"
#include "apps/pictures/picture.h"
#include "apps/pictures/shapes.h"
#include "tandem/core/error.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::pictures {

namespace {

namespace plot = train::plot;
constexpr std::string_view kCorrect = "turns.csv", kRace = "turns-with-race.csv";
constexpr double kLeft = 62.0, kRowHeight = 20.0;

struct Touch {
  std::size_t thread = 0;
  int barrier = 0;  ///< how many the thread had passed
  bool writes = false;
  std::size_t word = 0;
};

std::vector<Touch> read_turns(const std::string& folder, std::string_view file) {
  std::vector<Touch> touches;
  for (const std::vector<std::string>& row : read_measured(folder, file).rows) {
    require(row.size() == 4, "{}: a row has {} words, not 4", file, row.size());
    touches.push_back({static_cast<std::size_t>(number_of(row[0])), static_cast<int>(number_of(row[1])),
                       row[2] == "writes", static_cast<std::size_t>(number_of(row[3]))});
  }
  return touches;
}

std::string text_of(const Touch& touch) { return fmt::format("{}{}", touch.writes ? 'w' : 'r', touch.word); }

/// From left to right what the one core does; `bad` are the places of two accesses that nothing orders.
void draw_turns(plot::Canvas& canvas, const std::vector<Touch>& touches, std::size_t threads,
                std::vector<std::size_t> bad) {
  const double step = (kWidth - kLeft - 8.0) / static_cast<double>(touches.size());
  const double top = 22.0, bottom = top + static_cast<double>(threads) * kRowHeight;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    const double y = top + static_cast<double>(thread) * kRowHeight;
    draw_text(canvas, 4.0, y + 14.0, fmt::format("thread {}", thread), kSmallSize);
    canvas.segment({kLeft, y + kRowHeight}, {kWidth - 8.0, y + kRowHeight}, {plot::kRule});
  }
  for (std::size_t i = 0; i < touches.size(); ++i) {
    const Touch& touch = touches[i];
    const plot::Box box{kLeft + static_cast<double>(i) * step,
                        top + static_cast<double>(touch.thread) * kRowHeight + 1.0, step, kRowHeight - 2.0};
    const bool is_bad = std::ranges::find(bad, i) != bad.end();
    canvas.rectangle({box.x + 0.4, box.y, box.width - 0.8, box.height},
                     {is_bad ? plot::kWrong : plot::series_colour(touch.writes ? 1 : 0), is_bad ? 0.75 : 0.35},
                     fmt::format("thread {} {} word {}", touch.thread, touch.writes ? "writes" : "reads", touch.word));
    if (i > 0 && touches[i - 1].barrier != touch.barrier) {
      canvas.segment({box.x, top - 4.0}, {box.x, bottom}, {plot::kInk, 1.5});
      canvas.text({box.x, 13.0}, fmt::format("{}", touch.barrier),
                  {.colour = plot::kInk, .size = kSmallSize, .anchor = plot::Anchor::middle});
    }
    if (step >= 13.0)
      draw_centred(canvas, box.x + step / 2.0, box.y + 13.0, text_of(touch), step >= 20.0 ? 11.0 : 10.0);
  }
  draw_note(canvas, 4.0, 13.0, "barrier");
  draw_note(canvas, kLeft, bottom + 16.0, "time on the one core: r = reads word, w = writes word");
}

std::size_t thread_count(const std::vector<Touch>& touches) {
  return std::ranges::max(touches, {}, &Touch::thread).thread + 1;
}

Picture turns_picture(const std::string& folder) {
  const std::vector<Touch> touches = read_turns(folder, kCorrect);
  return {"simulator-turns", 46.0 + static_cast<double>(thread_count(touches)) * kRowHeight,
          "Turns of eight threads that add up eight numbers: a thread runs until a barrier, then the next one does",
          [touches](plot::Canvas& canvas) { draw_turns(canvas, touches, thread_count(touches), {}); }};
}

/// The last access and the one before it, by another thread to the same word, that no barrier lies between.
std::vector<std::size_t> race_of(const std::vector<Touch>& touches) {
  const Touch& last = touches.back();
  for (std::size_t i = touches.size() - 1; i-- > 0;) {
    const Touch& other = touches[i];
    if (other.word == last.word && other.thread != last.thread && other.barrier == last.barrier &&
        (other.writes || last.writes))
      return {i, touches.size() - 1};
  }
  fail("{}: the last access races with none; record it again", kRace);
}

Picture race_picture(const std::string& folder) {
  const std::vector<Touch> touches = read_turns(folder, kRace);
  const std::vector<std::size_t> bad = race_of(touches);
  return {"simulator-race", 46.0 + static_cast<double>(thread_count(touches)) * kRowHeight,
          "The same without the barrier of the loop: the last access writes a word that another thread has read since "
          "the barrier",
          [=](plot::Canvas& canvas) { draw_turns(canvas, touches, thread_count(touches), bad); }};
}

}  // namespace

Concept simulator_concept(const std::string& folder) {
  Concept page{"simulator", {turns_picture(folder), race_picture(folder)}, {}};
  const std::vector<Touch> correct = read_turns(folder, kCorrect), race = read_turns(folder, kRace);
  page.lines.push_back(fmt::format("with the barrier: {} accesses of shared memory, {} barriers between them",
                                   correct.size(), correct.back().barrier));
  page.lines.push_back(fmt::format("without it: the launch ends at access {}", race.size()));
  for (const std::size_t index : race_of(race)) {
    const Touch& touch = race[index];
    page.lines.push_back(fmt::format("access {}: thread {} {} word {}, {} barrier passed", index + 1, touch.thread,
                                     touch.writes ? "writes" : "reads", touch.word, touch.barrier));
  }
  return page;
}

}  // namespace tandem::pictures
