// The progress line: its text at every width, and when it is written where.
#include "tandem/train/progress_line.h"

#include "tests/support/catch.h"

#include "tandem/core/error.h"

#include <cmath>

using namespace tandem::train;
using tandem::test::ContainsText;

namespace {

Progress halfway() {
  Progress p;
  p.epoch = 3;
  p.epochs = 24;
  p.step = 121;
  p.steps = 195;
  p.images = 121 * 256;
  p.seconds = 41.0;
  p.loss = 0.8124;
  p.accuracy = 71.26;
  return p;
}

// Catches what a ProgressLine writes, under a clock that the test turns.
struct Recorder {
  double now = 0.0;
  std::string transient;
  std::string report;
  int transients = 0;

  ProgressOptions options(ProgressMode mode, bool interactive = false, bool shared = false) {
    ProgressOptions o;
    o.mode = mode;
    o.terminal = {.interactive = interactive, .width = 100};
    o.shared_screen = shared;
    o.seconds = [this] { return now; };
    o.write_transient = [this](const std::string& text) { transient += text, ++transients; };
    o.write_report = [this](const std::string& text) { report += text; };
    return o;
  }
};

}  // namespace

TEST_CASE("durations and counts are short") {
  CHECK(format_duration(0.4) == "0s");
  CHECK(format_duration(41.2) == "41s");
  CHECK(format_duration(59.6) == "1:00");
  CHECK(format_duration(187) == "3:07");
  CHECK(format_duration(3765) == "1:02:45");
  CHECK(format_duration(-1) == "?");
  CHECK(format_duration(1.0 / 0.0) == "?");
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(999.7) == "1.00k");
  CHECK(format_count(9994) == "9.99k");
  CHECK(format_count(12345) == "12.3k");
  CHECK(format_count(123456) == "123k");
  CHECK(format_count(999499) == "999k");
  CHECK(format_count(1234567) == "1.23M");
}

TEST_CASE("a wide bar shows everything") {
  const std::string line = format_bar(halfway(), {.width = 120});
  CHECK(line ==
        "epoch 3/24  62% |##################            | 121/195 [41s<25s, 756 images/s, loss 0.812, acc 71.3%]");
}

TEST_CASE("a bar fits every width, with and without colour and UTF-8") {
  const bool unicode = GENERATE(false, true);
  const bool color = GENERATE(false, true);
  for (int width = 1; width <= 200; ++width) {
    for (const std::int64_t step : {0, 1, 97, 194, 195}) {
      Progress p = halfway();
      p.step = step;
      const std::string line = format_bar(p, {.width = width, .color = color, .unicode = unicode});
      INFO(width << ": " << line);
      CHECK(display_width(line) <= std::max(width - 3, 1));
      CHECK((line.find('\x1b') == line.npos || color));
      CHECK(line.find('\n') == line.npos);
    }
  }
}

TEST_CASE("a narrow bar keeps the figures") {
  CHECK_THAT(format_bar(halfway(), {.width = 62}), ContainsText("loss 0.812, acc 71.3%"));
  CHECK(format_bar(halfway(), {.width = 44}) == "epoch 3/24  62% loss 0.812, acc 71.3%");
  Progress uncounted = halfway();
  uncounted.accuracy = std::nan("");
  CHECK_THAT(format_bar(uncounted, {.width = 44}), ContainsText("loss 0.812]"));
}

TEST_CASE("the bar is empty at the start and full at the end") {
  Progress p = halfway();
  p.step = 0;
  p.seconds = 0.0;
  p.images = 0;
  CHECK_THAT(format_bar(p, {.width = 120}),
             ContainsText("  0% |" + std::string(30, ' ') + "| 0/195 [0s<?, 0 images/s"));
  p.step = 195;
  CHECK_THAT(format_bar(p, {.width = 120}), ContainsText("100% |" + std::string(30, '#') + "|"));
  p.steps = 0;
  p.step = 0;
  CHECK_THAT(format_bar(p, {.width = 120}), ContainsText("100%"));
}

TEST_CASE("plain text has no escape codes and no bar") {
  CHECK(format_plain(halfway()) == "epoch 3/24  62%  121/195 steps  41s<25s  756 images/s  loss 0.812, acc 71.3%");
}

TEST_CASE("a bar is drawn at most ten times a second") {
  Recorder recorder;
  ProgressLine line(recorder.options(ProgressMode::bar));
  for (int i = 0; i < 1000; ++i, recorder.now += 0.01) line.update(halfway());
  CHECK(recorder.transients <= 100);
  CHECK(recorder.transients >= 90);
  CHECK(recorder.report.empty());
}

TEST_CASE("plain lines come at most every ten seconds, and once per epoch") {
  Recorder recorder;
  ProgressLine line(recorder.options(ProgressMode::automatic));
  REQUIRE(line.mode() == ProgressMode::plain);
  for (int i = 0; i <= 350; ++i, recorder.now += 0.1) line.update(halfway());
  CHECK(recorder.transients == 3);
  line.finish("epoch 3/24 done");
  CHECK(recorder.report == "epoch 3/24 done\n");
  line.update(halfway());  // the epoch's line counts as one
  CHECK(recorder.transients == 3);
}

TEST_CASE("a finished epoch replaces its bar on the screen they share") {
  Recorder recorder;
  ProgressLine line(recorder.options(ProgressMode::automatic, true, true));
  REQUIRE(line.mode() == ProgressMode::bar);
  recorder.now = 1.0;
  line.update(halfway());
  CHECK_THAT(recorder.transient, ContainsText("\repoch 3/24"));
  recorder.transient.clear();
  line.finish("done");
  CHECK(recorder.transient == "\r\x1b[Kdone\n");
  CHECK(recorder.report.empty());
}

TEST_CASE("a finished epoch reaches a report that goes elsewhere") {
  Recorder recorder;
  ProgressLine line(recorder.options(ProgressMode::bar, true, false));
  line.finish("done");
  CHECK(recorder.report == "done\n");
}

TEST_CASE("none is silent, and a bar is taken off the screen") {
  Recorder recorder;
  {
    ProgressLine line(recorder.options(ProgressMode::none, true));
    recorder.now = 100.0;
    line.update(halfway());
    line.finish("done");
  }
  CHECK((recorder.transient + recorder.report).empty());
  {
    ProgressLine line(recorder.options(ProgressMode::bar));
    recorder.now = 200.0;
    line.update(halfway());
    recorder.transient.clear();
  }
  CHECK(recorder.transient == "\r\x1b[K");
}

TEST_CASE("progress modes by name") {
  CHECK(parse_progress_mode("auto") == ProgressMode::automatic);
  CHECK(parse_progress_mode("none") == ProgressMode::none);
  CHECK_THROWS_AS(parse_progress_mode("tqdm"), tandem::Error);
}

TEST_CASE("what follows ^C begins on a line of its own") {
  Recorder recorder;
  SECTION("with a bar, or the place of one, which goes with it") {
    ProgressLine line(recorder.options(ProgressMode::automatic, true, GENERATE(true, false)));
    recorder.now = 1.0;
    if (GENERATE(true, false)) line.update(halfway());
    recorder.transient.clear();
    line.begin_fresh_line();
    CHECK((recorder.transient == "\r\x1b[K" && recorder.report.empty()));
    line.clear();
    CHECK(recorder.transient == "\r\x1b[K");
  }
  SECTION("on the terminal of standard output") {
    ProgressLine line(recorder.options(GENERATE(ProgressMode::plain, ProgressMode::none), GENERATE(true, false), true));
    line.begin_fresh_line();
    CHECK((recorder.report == "\n" && recorder.transient.empty()));
  }
  SECTION("on that of standard error alone") {
    ProgressLine line(recorder.options(ProgressMode::plain, true));
    line.begin_fresh_line();
    CHECK((recorder.report.empty() && recorder.transient == "\n"));
  }
  SECTION("but not in files") {
    ProgressLine line(recorder.options(ProgressMode::automatic));
    line.begin_fresh_line();
    CHECK((recorder.report.empty() && recorder.transient.empty()));
  }
}
