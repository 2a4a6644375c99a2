// Terminal queries by ioctl and the environment.
#include "tandem/train/terminal.h"

#include "tandem/core/number_text.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tandem::train {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

int width_of(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Launchers put a pipe behind standard error; the terminal itself can often still be asked.
int width_of_controlling_terminal() {
  const int descriptor = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  const int width = width_of(descriptor);
  close(descriptor);
  return width;
}

/// COLUMNS, or 0.
int columns_variable() {
  const char* columns = std::getenv("COLUMNS");
  return columns == nullptr ? 0 : std::max(parse_number<int>(columns).value_or(0), 0);
}

bool shows_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = environment(name);
    if (locale.empty()) continue;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos ||
           locale.find("utf-8") != locale.npos;
  }
  return false;
}

}  // namespace

Terminal query_terminal(std::FILE* stream) {
  Terminal terminal;
  const int descriptor = fileno(stream);
  const bool dumb = environment("TERM") == "dumb";
  terminal.interactive = isatty(descriptor) == 1 && !dumb;
  terminal.color = !dumb && environment("NO_COLOR").empty();
  terminal.unicode = shows_unicode();
  for (const int width : {width_of(descriptor), width_of_controlling_terminal(), columns_variable()}) {
    if (width <= 0) continue;
    terminal.width = width;
    break;
  }
  return terminal;
}

int line_columns(std::FILE* stream, bool is_seen) {
  const int descriptor = fileno(stream);
  if (const int width = width_of(descriptor); width > 0) return width;
  struct stat status{};
  if (is_seen && fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode)) return query_terminal(stream).width;
  return isatty(descriptor) == 1 ? columns_variable() : 0;
}

}  // namespace tandem::train
