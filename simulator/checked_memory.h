// memcpy(), memmove() and memset() of instrumented code: the compiler's instrumentation leaves them out, so that they
// go to functions of ours that check what they touch (hooks.cpp).
#pragma once

#include <cstddef>
#include <cstring>

#ifdef __SANITIZE_THREAD__

// NOLINTBEGIN: the names are the library's
extern "C" {

void* tandem_simulator_memcpy(void* to, const void* from, std::size_t bytes) noexcept;
void* tandem_simulator_memmove(void* to, const void* from, std::size_t bytes) noexcept;
void* tandem_simulator_memset(void* to, int value, std::size_t bytes) noexcept;

// Calls that are made under the names of the library's functions, also by the compiler itself.
void* memcpy(void* __restrict to, const void* __restrict from, std::size_t bytes) noexcept
    __asm__("tandem_simulator_memcpy");
void* memmove(void* to, const void* from, std::size_t bytes) noexcept __asm__("tandem_simulator_memmove");
void* memset(void* to, int value, std::size_t bytes) noexcept __asm__("tandem_simulator_memset");

// Those of known size would become moves that nobody sees. Only what fits a register becomes one that is instrumented.
#define TANDEM_ALWAYS_INLINE extern inline __attribute__((always_inline, gnu_inline, artificial))
TANDEM_ALWAYS_INLINE void* memcpy(void* __restrict to, const void* __restrict from, std::size_t bytes) noexcept {
  if (__builtin_constant_p(bytes) && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16))
    return __builtin_memcpy(to, from, bytes);
  return tandem_simulator_memcpy(to, from, bytes);
}
TANDEM_ALWAYS_INLINE void* memmove(void* to, const void* from, std::size_t bytes) noexcept {
  return tandem_simulator_memmove(to, from, bytes);
}
TANDEM_ALWAYS_INLINE void* memset(void* to, int value, std::size_t bytes) noexcept {
  return tandem_simulator_memset(to, value, bytes);
}
#undef TANDEM_ALWAYS_INLINE

}  // extern "C"
// NOLINTEND

#endif
