// Fiber stacks and switches.
#include "tandem/simulator/fiber.h"

#include <sys/mman.h>

#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tandem::simulator {

namespace {
using boost::context::detail::transfer_t;
}  // namespace

FiberStacks::FiberStacks() {
  void* const memory = mmap(nullptr, kSlotBytes * kMaxBlockThreads, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("simulator: no address space for the stacks of 1024 threads");
  base_ = static_cast<char*>(memory);
  for (unsigned i = 0; i < kMaxBlockThreads; ++i) {
    if (mprotect(low_end(i), kStackBytes, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("simulator: cannot map the stack of a thread; raise vm.max_map_count");
  }
}

void FiberStacks::prepare(Fiber& fiber, unsigned index, void (*entry)(transfer_t)) const {
  char* const low = low_end(index);
  // Stacks start at different distances from a page's end, or all threads' frames would share a few cache sets.
  const std::size_t shift = index % 32 * 128;
  const std::size_t bytes = kStackBytes - shift;
#if defined(__SANITIZE_ADDRESS__)
  fiber.stack_low = low;
  fiber.stack_bytes = bytes;
  fiber.sanitizer_stack = nullptr;
#endif
  fiber.context = boost::context::detail::make_fcontext(low + bytes, bytes, entry);
}

void FiberStacks::clean() const {
#if defined(__SANITIZE_ADDRESS__)
  for (unsigned i = 0; i < kMaxBlockThreads; ++i) __asan_unpoison_memory_region(low_end(i), kStackBytes);
#endif
}

#if defined(__SANITIZE_ADDRESS__)
namespace {
Fiber* entered = nullptr;  // launches run one at a time, under the runtime's lock
}

void announce_switch(Fiber& from, Fiber& to, bool last) {
  if (last) {
    // These frames are never left, so nobody takes the marks off that the next fiber on this stack would stumble over.
    char* const frame = static_cast<char*>(__builtin_frame_address(0));
    __asan_unpoison_memory_region(
        frame, static_cast<std::size_t>(static_cast<char*>(from.stack_low) + from.stack_bytes - frame));
  }
  __sanitizer_start_switch_fiber(last ? nullptr : &from.sanitizer_stack, to.stack_low, to.stack_bytes);
  entered = &to;
}

void finish_switch(Fiber& left) {
  // The stack that was left is only learned for the context that started the launch; others know theirs.
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(entered->sanitizer_stack, &stack, &bytes);
  if (left.stack_low == nullptr) {
    left.stack_low = const_cast<void*>(stack);
    left.stack_bytes = bytes;
  }
}
#endif

}  // namespace tandem::simulator
