// Queues of asynchronous copies, one per thread.
#include "tandem/simulator/async_copy.h"

#include "tandem/simulator/engine.h"
#include "tandem/simulator/lint.h"
#include "tandem/simulator/shadow.h"
#include "tandem/simulator/shared_memory.h"

#include <fmt/format.h>

#include <cstring>

namespace tandem::simulator {

namespace {

struct Copy {
  char* shared;
  const char* global;
  std::size_t bytes, source_bytes;
  unsigned group;
  SiteId where;
};

struct Queue {
  std::vector<Copy> copies;  // in order; those of closed groups first
  unsigned group = 0;        // that copies are added to now
};

std::array<Queue, kMaxBlockThreads> queues;
bool any_copy = false;  // since clear_async_copies()

}  // namespace

void start_async_copy(void* shared, const void* global, std::size_t bytes, std::size_t source_bytes,
                      std::source_location where) {
  Engine& e = engine();
  const SiteId site = site_id(where);
  const auto to = reinterpret_cast<std::uintptr_t>(shared), from = reinterpret_cast<std::uintptr_t>(global);
  if ((bytes != 4 && bytes != 8 && bytes != 16) || source_bytes > bytes)
    e.raise(FaultKind::async_copy, site,
            fmt::format("cp.async of {} bytes, {} of them read; 4, 8 or 16 can be copied", bytes, source_bytes));
  if (to % bytes != 0 || from % bytes != 0)
    e.raise(FaultKind::misaligned, site,
            fmt::format("cp.async of {} bytes from {:#x} to {:#x}; both must be multiples", bytes, from, to));
  if (!is_shared_address(shared))
    e.raise(FaultKind::async_copy, site, "the destination of cp.async is not in shared memory");
  if (is_shared_address(global)) e.raise(FaultKind::async_copy, site, "the source of cp.async is in shared memory");
  if constexpr (kChecksMemory) {
    if (source_bytes > 0) {
      check_access(from, source_bytes, Access::read, site);
    } else if (lint_is_on()) {
      const Engine::Aside aside(e);
      count_request(from, 0, false, false, site);
    }
    check_access(to, bytes, Access::write, site);
    shared_shadow().set(to, bytes, Stamp::kBeingCopied, site);
  }
  const Engine::Aside aside(e);
  std::memset(shared, 0xff, bytes);
  Queue& queue = queues[e.current().linear];
  queue.copies.push_back(
      {static_cast<char*>(shared), static_cast<const char*>(global), bytes, source_bytes, queue.group, site});
  any_copy = true;
}

void commit_async_copies() { ++queues[engine().current().linear].group; }

void wait_for_async_copies(unsigned pending) {
  Engine& e = engine();
  Queue& queue = queues[e.current().linear];
  std::size_t done = 0;
  for (; done < queue.copies.size() && queue.copies[done].group + pending < queue.group; ++done) {
    const Copy& copy = queue.copies[done];
    std::memcpy(copy.shared, copy.global, copy.source_bytes);
    std::memset(copy.shared + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
    if constexpr (kChecksMemory) {
      // Until now it may have read its source: who writes there comes before its start or after this.
      const auto from = reinterpret_cast<std::uintptr_t>(copy.global);
      if (copy.source_bytes > 0) global_shadow().access(from, copy.source_bytes, Access::read, copy.where);
      const auto to = reinterpret_cast<std::uintptr_t>(copy.shared);
      shared_shadow().set(to, copy.bytes, Stamp::kUninitialised);
      check_access(to, copy.bytes, Access::write, copy.where);
    }
  }
  const Engine::Aside aside(e);
  queue.copies.erase(queue.copies.begin(), queue.copies.begin() + static_cast<std::ptrdiff_t>(done));
}

void clear_async_copies() {
  if (!any_copy) return;
  for (Queue& queue : queues) {
    queue.copies.clear();
    queue.group = 0;
  }
  any_copy = false;
}

void check_async_copies_at_exit(const Thread& thread) {
  const Queue& queue = queues[thread.linear];
  if (queue.copies.empty()) return;
  engine().raise(
      FaultKind::async_copy, queue.copies.front().where,
      fmt::format("the thread leaves the kernel and has not waited for {} of its cp.async{}", queue.copies.size(),
                  queue.copies.front().group == queue.group ? ", which were never committed" : ""));
}

}  // namespace tandem::simulator
