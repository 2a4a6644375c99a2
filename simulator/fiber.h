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
  void* stack_low = nullptr;
  std::size_t stack_bytes = 0;
  void* sanitizer_stack = nullptr;
};

/// The stacks of all CUDA threads: mapped once, touched as used, a guard page below each.
class FiberStacks {
 public:
  static constexpr std::size_t kStackBytes = 64 * 1024;

  FiberStacks();
  /// Points `fiber` at the `index`-th stack, to start in `entry` at the next switch to it.
  void prepare(Fiber& fiber, unsigned index, void (*entry)(boost::context::detail::transfer_t)) const;
  /// True if the address lies in any fiber's stack.
  bool contains(std::uintptr_t address) const;
  /// Forgets what abandoned fibers left behind: a sanitizer's marks on their frames.
  void clean() const;

 private:
  char* base_;
};

/// Saves the running context in `from` and goes on in `to`. `last` says that `from` will never run again.
void switch_fiber(Fiber& from, Fiber& to, bool last = false);

/// What a fiber's entry function does first with what it is given.
void fiber_entered(boost::context::detail::transfer_t transfer);

}  // namespace tandem::simulator
