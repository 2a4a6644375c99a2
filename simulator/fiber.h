// Stacks and switches: one fiber per CUDA thread, on Boost.Context.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>
#include <cstdint>

namespace tandem::simulator {

constexpr unsigned kMaxBlockThreads = 1024;

/// A context that can be switched to, and what the sanitizer wants to know of its stack.
struct Fiber {
  boost::context::detail::fcontext_t context = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  void* stack_low = nullptr;
  std::size_t stack_bytes = 0;
  void* sanitizer_stack = nullptr;
#endif
};

/// The stacks of all CUDA threads: mapped once, touched as used, a guard page below each.
class FiberStacks {
 public:
  static constexpr std::size_t kStackBytes = 64 * 1024;
  static constexpr std::size_t kGuardBytes = 4096;
  static constexpr std::size_t kSlotBytes = kGuardBytes + kStackBytes;

  FiberStacks();
  /// Points `fiber` at the `index`-th stack, to start in `entry` at the next switch to it.
  void prepare(Fiber& fiber, unsigned index, void (*entry)(boost::context::detail::transfer_t)) const;
  /// True if the address lies in the `index`-th stack.
  bool contains(std::uintptr_t address, unsigned index) const {
    return address - reinterpret_cast<std::uintptr_t>(low_end(index)) < kStackBytes;
  }
  /// True if the address lies in any fiber's stack.
  bool contains(std::uintptr_t address) const {
    return address - reinterpret_cast<std::uintptr_t>(base_) < kSlotBytes * kMaxBlockThreads;
  }
  /// One past the `index`-th stack; what a waiting fiber has on it begins at its context.
  const char* high_end(unsigned index) const { return low_end(index) + kStackBytes; }
  /// Forgets what abandoned fibers left behind: a sanitizer's marks on their frames.
  void clean() const;

 private:
  char* low_end(unsigned index) const { return base_ + index * kSlotBytes + kGuardBytes; }

  char* base_;
};

// What AddressSanitizer wants to know of a switch; nothing in other builds.
#if defined(__SANITIZE_ADDRESS__)
void announce_switch(Fiber& from, Fiber& to, bool last);
void finish_switch(Fiber& left);
#else
inline void announce_switch(Fiber&, Fiber&, bool) {}
inline void finish_switch(Fiber&) {}
#endif

/// What a fiber does first with what it is given: it notes where the one that was left can be resumed.
inline void fiber_entered(boost::context::detail::transfer_t transfer) {
  Fiber& left = *static_cast<Fiber*>(transfer.data);
  left.context = transfer.fctx;
  finish_switch(left);
}

/// Saves the running context in `from` and goes on in `to`. `last` says that `from` will never run again.
inline void switch_fiber(Fiber& from, Fiber& to, bool last = false) {
  announce_switch(from, to, last);
  fiber_entered(boost::context::detail::jump_fcontext(to.context, &from));
}

}  // namespace tandem::simulator
