// Who hears notices, and what has been said.
#include "tandem/kernels/notice.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

namespace tandem::kernels {
namespace {

struct Notices {
  std::mutex mutex;
  std::set<std::string> said;
  std::function<void(const std::string&)> listener = print_notice;
};

Notices& notices() {
  static Notices the_notices;
  return the_notices;
}

}  // namespace

void notice(const std::string& line) {
  Notices& all = notices();
  std::function<void(const std::string&)> listener;
  {
    const std::lock_guard lock(all.mutex);
    if (all.said.insert(line).second) listener = all.listener;
  }
  if (listener) listener(line);  // which may give lines itself
}

void listen_to_notices(std::function<void(const std::string&)> listener) {
  Notices& all = notices();
  const std::lock_guard lock(all.mutex);
  all.said.clear();
  all.listener = std::move(listener);
}

void print_notice(const std::string& line) { std::fprintf(stderr, "note: %s\n", line.c_str()); }

}  // namespace tandem::kernels
