// Layout of the progress line.
#include "tandem/train/progress_format.h"

#include "tandem/train/character_width.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace tandem::train {
namespace {

constexpr int kWidestBar = 30;
constexpr int kNarrowestBar = 5;

double fraction(const Progress& p) {
  return p.steps <= 0 ? 1.0 : std::clamp(static_cast<double>(p.step) / static_cast<double>(p.steps), 0.0, 1.0);
}

std::string bar(double done, int width, bool unicode) {
  if (!unicode) {
    const auto full = static_cast<int>(done * width);
    return std::string(static_cast<std::size_t>(full), '#') + std::string(static_cast<std::size_t>(width - full), ' ');
  }
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<int>(done * width * 8);
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  return text + std::string(static_cast<std::size_t>(width - (eighths + 7) / 8), ' ');
}

std::string head(const Progress& p) {
  return fmt::format("{} {}/{} {:3.0f}%", p.phase, p.epoch, p.epochs, std::floor(100.0 * fraction(p)));
}

std::string timing(const Progress& p) {
  const double done = fraction(p);
  const double left = done > 0.0 ? p.seconds * (1.0 - done) / done : -1.0;
  return fmt::format("{}<{}", format_duration(p.seconds), format_duration(left));
}

std::string speed(const Progress& p) {
  const double rate = p.seconds > 0.0 ? static_cast<double>(p.images) / p.seconds : 0.0;
  return format_count(rate) + " images/s";
}

/// Accuracy is left out where it is not counted.
std::string figures(const Progress& p) {
  const std::string loss = "loss " + format_loss(p.loss);
  return std::isnan(p.accuracy) ? loss : fmt::format("{}, acc {:.1f}%", loss, p.accuracy);
}

}  // namespace

std::string format_loss(double loss, int decimals) {
  if (std::isnan(loss)) return "nan";
  return loss < 1000.0 ? fmt::format("{:.{}f}", loss, decimals) : fmt::format("{:.3g}", loss);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0.0 || seconds > 1e9) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_count(double count) {
  if (!std::isfinite(count)) return "?";
  if (count < 999.5) return fmt::format("{:.0f}", count);
  if (count < 9995.0) return fmt::format("{:.2f}k", count / 1e3);
  if (count < 99950.0) return fmt::format("{:.1f}k", count / 1e3);
  if (count < 999500.0) return fmt::format("{:.0f}k", count / 1e3);
  return fmt::format("{:.2f}M", count / 1e6);
}

int display_width(const std::string& text) {
  int columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\x1b') {
      at = std::min(text.find_first_of("mK", at), text.size() - 1) + 1;
      continue;
    }
    const Character character = character_at(text, at);
    columns += character.columns;
    at += character.bytes;
  }
  return columns;
}

std::string format_bar(const Progress& p, const Terminal& terminal) {
  constexpr int kBehind = 3;  // a terminal's ^C, and the cursor
  const int room = std::max(terminal.width - kBehind, 1);
  const std::string count = fmt::format("{}/{}", p.step, p.steps);
  const std::string tails[] = {
      fmt::format("{} [{}, {}, {}]", count, timing(p), speed(p), figures(p)),
      fmt::format("[{}, {}]", timing(p), figures(p)),
      fmt::format("[{}]", figures(p)),
  };
  for (const std::string& tail : tails) {
    const std::string start = head(p);
    const int free = room - static_cast<int>(start.size() + tail.size()) - 4;  // " |", "| "
    if (free < kNarrowestBar) continue;
    const std::string drawn = bar(fraction(p), std::min(free, kWidestBar), terminal.unicode);
    if (!terminal.color) return fmt::format("{} |{}| {}", start, drawn, tail);
    return fmt::format("{} |\x1b[32m{}\x1b[0m| {}", start, drawn, tail);
  }
  std::string line = fmt::format("{} {}", head(p), figures(p));
  if (static_cast<int>(line.size()) > room) line.resize(static_cast<std::size_t>(room));
  return line;
}

std::string format_plain(const Progress& p) {
  return fmt::format("{}  {}/{} steps  {}  {}  {}", head(p), p.step, p.steps, timing(p), speed(p), figures(p));
}

}  // namespace tandem::train
