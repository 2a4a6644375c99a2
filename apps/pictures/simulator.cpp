// Turns of simulated threads, and the two accesses of a race.
#include "apps/pictures/measured.h"
#include "apps/pictures/picture.h"
#include "apps/pictures/shapes.h"
#include "tandem/core/error.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

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

/// What the shadow of a word holds when an access comes: the last write, and one of the reads since. Places of
/// accesses.
struct ShadowLine {
  std::size_t access = 0;
  std::optional<std::size_t> write, read;
  bool races = false;
};

bool is_ordered(const Touch& earlier, const Touch& later) {
  return earlier.thread == later.thread || earlier.barrier < later.barrier;
}

std::vector<ShadowLine> shadow_of(const std::vector<Touch>& touches, std::size_t word) {
  std::vector<ShadowLine> lines;
  std::optional<std::size_t> write, read;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    const Touch& touch = touches[i];
    if (touch.word != word) continue;
    const bool after_write = !write || is_ordered(touches[*write], touch);
    const bool after_read = !touch.writes || !read || is_ordered(touches[*read], touch);
    lines.push_back({i, write, read, !after_write || !after_read});
    (touch.writes ? write : read) = i;
    if (touch.writes) read.reset();
  }
  return lines;
}

std::string stamp_of(const Touch& touch) {
  return fmt::format("thread {}, after barrier {}", touch.thread, touch.barrier);
}

/// "written by thread 1, after barrier 0; read by ..."
std::string text_of(const ShadowLine& line, const std::vector<Touch>& touches) {
  if (!line.write) return "nobody has written it";
  std::string text = fmt::format("written by {}", stamp_of(touches[*line.write]));
  if (line.read) text += fmt::format("; read by {}", stamp_of(touches[*line.read]));
  return text;
}

std::string verdict_of(const ShadowLine& line) {
  if (line.races) return "nothing orders them: a race";
  return line.write ? "a barrier lies between: ordered" : "nothing to compare with";
}

Picture shadow_picture(const std::string& folder) {
  const std::vector<Touch> touches = read_turns(folder, kRace);
  const std::size_t word = touches.back().word;
  const std::vector<ShadowLine> lines = shadow_of(touches, word);
  return {"simulator-shadow", 4.0 + 70.0 * static_cast<double>(lines.size()),
          "The accesses of one word, and what its shadow holds when each of them comes: the last one is a race",
          [=](plot::Canvas& canvas) {
            double top = 4.0;
            for (const ShadowLine& line : lines) {
              const Touch& touch = touches[line.access];
              canvas.rectangle({4.0, top, kWidth - 8.0, 64.0},
                               {line.races ? plot::kWrong : plot::series_colour(touch.writes ? 1 : 0), 0.15});
              draw_heading(canvas, 10.0, top + 15.0,
                           fmt::format("thread {} {} word {}, after barrier {}", touch.thread,
                                       touch.writes ? "writes" : "reads", word, touch.barrier));
              draw_text(canvas, 10.0, top + 31.0,
                        "shadow: " + (line.write ? "written by " + stamp_of(touches[*line.write])
                                                 : std::string("nobody has written it")),
                        kSmallSize);
              if (line.read)
                draw_text(canvas, 54.0, top + 45.0, "read by " + stamp_of(touches[*line.read]), kSmallSize);
              canvas.text({10.0, top + 59.0}, verdict_of(line),
                          {.colour = line.races ? plot::kWrong : plot::kMuted, .size = kSmallSize, .bold = line.races});
              top += 70.0;
            }
          }};
}

}  // namespace

Concept simulator_concept(const std::string& folder) {
  Concept page{"simulator", {turns_picture(folder), race_picture(folder), shadow_picture(folder)}, {}};
  const std::vector<Touch> correct = read_turns(folder, kCorrect), race = read_turns(folder, kRace);
  page.lines.push_back(fmt::format("with the barrier: {} accesses of shared memory are drawn, {} barriers between them",
                                   correct.size(), correct.back().barrier));
  page.lines.push_back(fmt::format("without it: the launch ends at access {}", race.size()));
  for (const std::size_t index : race_of(race)) {
    const Touch& touch = race[index];
    page.lines.push_back(fmt::format("access {}: thread {} {} word {}, {} barrier passed", index + 1, touch.thread,
                                     touch.writes ? "writes" : "reads", touch.word, touch.barrier));
  }
  for (const ShadowLine& line : shadow_of(race, race.back().word))
    page.lines.push_back(fmt::format("access {}, the shadow: {}", line.access + 1, text_of(line, race)));
  return page;
}

}  // namespace tandem::pictures
