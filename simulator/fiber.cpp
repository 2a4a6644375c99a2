// Fiber stacks and switches.
#include "simulator/fiber.h"

#include <sys/mman.h>

#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tandem::simulator {

namespace {
using boost::context::detail::fcontext_t;
using boost::context::detail::transfer_t;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSlotBytes = FiberStacks::kStackBytes + kPage;

// Whom to tell where the fiber that was left can be resumed. Launches run one at a time, under the runtime's lock.
Fiber* left = nullptr;
#if defined(__SANITIZE_ADDRESS__)
Fiber* entered = nullptr;
#endif
}  // namespace

FiberStacks::FiberStacks() {
  void* const memory = mmap(nullptr, kSlotBytes * kMaxBlockThreads, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("simulator: no address space for the stacks of 1024 threads");
  base_ = static_cast<char*>(memory);
  for (unsigned i = 0; i < kMaxBlockThreads; ++i) {
    if (mprotect(base_ + i * kSlotBytes + kPage, kStackBytes, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("simulator: cannot map the stack of a thread; raise vm.max_map_count");
  }
}

void FiberStacks::prepare(Fiber& fiber, unsigned index, void (*entry)(transfer_t)) const {
  char* const low = base_ + index * kSlotBytes + kPage;
  // Stacks start at different distances from a page's end, or all threads' frames would share a few cache sets.
  const std::size_t shift = index % 32 * 128;
  fiber.stack_low = low;
  fiber.stack_bytes = kStackBytes - shift;
  fiber.sanitizer_stack = nullptr;
  fiber.context = boost::context::detail::make_fcontext(low + fiber.stack_bytes, fiber.stack_bytes, entry);
}

bool FiberStacks::contains(std::uintptr_t address) const {
  return address - reinterpret_cast<std::uintptr_t>(base_) < kSlotBytes * kMaxBlockThreads;
}

void FiberStacks::clean() const {
#if defined(__SANITIZE_ADDRESS__)
  for (unsigned i = 0; i < kMaxBlockThreads; ++i)
    __asan_unpoison_memory_region(base_ + i * kSlotBytes + kPage, kStackBytes);
#endif
}

void switch_fiber(Fiber& from, Fiber& to, [[maybe_unused]] bool last) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(last ? nullptr : &from.sanitizer_stack, to.stack_low, to.stack_bytes);
  entered = &to;
#endif
  left = &from;
  fiber_entered(boost::context::detail::jump_fcontext(to.context, nullptr));
}

void fiber_entered(transfer_t transfer) {
  left->context = transfer.fctx;
#if defined(__SANITIZE_ADDRESS__)
  // The stack that was left is only learned for the context that started the launch; others know theirs.
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(entered->sanitizer_stack, &stack, &bytes);
  if (left->stack_low == nullptr) {
    left->stack_low = const_cast<void*>(stack);
    left->stack_bytes = bytes;
  }
#endif
}

}  // namespace tandem::simulator
