// When to draw, and on which stream.
#include "tandem/train/progress_line.h"

#include "tandem/core/error.h"
#include "tandem/train/wrapped_text.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>

namespace tandem::train {
namespace {

constexpr double kBarInterval = 0.1;     // seconds
constexpr double kPlainInterval = 10.0;  // seconds

void write_flushed(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace

ProgressMode parse_progress_mode(std::string_view name) {
  if (name == "auto") return ProgressMode::automatic;
  if (name == "bar") return ProgressMode::bar;
  if (name == "plain") return ProgressMode::plain;
  if (name == "none") return ProgressMode::none;
  fail("progress mode '{}': choose auto, bar, plain or none", name);
}

ProgressOptions standard_progress(ProgressMode mode) {
  ProgressOptions options;
  options.mode = mode;
  options.terminal = query_terminal(stderr);
  options.columns = [] { return query_terminal(stderr).width; };
  options.report_columns = [is_seen = mode == ProgressMode::bar] { return line_columns(stdout, is_seen); };
  options.shared_screen = isatty(STDOUT_FILENO) == 1;
  options.write_transient = [](const std::string& text) { write_flushed(stderr, text); };
  options.write_report = [](const std::string& text) { write_flushed(stdout, text); };
  options.seconds = [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  return options;
}

ProgressLine::ProgressLine(ProgressOptions options) : options_(std::move(options)) {
  if (options_.mode == ProgressMode::automatic) {
    options_.mode = options_.terminal.interactive ? ProgressMode::bar : ProgressMode::plain;
  }
  last_ = options_.seconds();
}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(const Progress& progress) {
  if (options_.mode == ProgressMode::none) return;
  const double now = options_.seconds();
  const bool bar = options_.mode == ProgressMode::bar;
  if (now - last_ < (bar ? kBarInterval : kPlainInterval)) return;
  last_ = now;
  if (bar) {
    if (options_.columns) options_.terminal.width = options_.columns();  // windows change their size
    options_.write_transient(fmt::format("\r{}\x1b[K", format_bar(progress, options_.terminal)));
    drawn_ = true;
  } else {
    options_.write_transient(format_plain(progress) + "\n");
  }
}

void ProgressLine::finish(const std::string& line) {
  if (options_.mode == ProgressMode::none) return;
  last_ = options_.seconds();
  if (options_.mode == ProgressMode::bar) {
    // One stream for the bar and what replaces it: two streams may reach the screen in either order.
    const int width = options_.columns ? options_.columns() : options_.terminal.width;
    options_.write_transient(fmt::format("\r\x1b[K{}\n", wrapped(line, width)));
    drawn_ = false;
    if (options_.shared_screen) return;
  }
  options_.write_report(fitted(line) + "\n");
}

std::string ProgressLine::fitted(const std::string& text) const {
  return wrapped(text, options_.report_columns ? options_.report_columns() : 0);
}

void ProgressLine::begin_fresh_line() {
  if (options_.mode == ProgressMode::bar) {
    drawn_ = true;
    clear();
  } else if (options_.shared_screen) {
    options_.write_report("\n");
  } else if (options_.terminal.interactive) {
    options_.write_transient("\n");
  }
}

void ProgressLine::clear() {
  if (drawn_) options_.write_transient("\r\x1b[K");
  drawn_ = false;
}

}  // namespace tandem::train
