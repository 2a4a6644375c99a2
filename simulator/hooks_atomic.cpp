// Atomic operations of instrumented host code (reference counts in .cu files): plain ones, without a check. Atomics of
// kernels are functions of the simulator and are checked there.
#include <cstdint>

// NOLINTBEGIN: the names are the compiler's
#define TANDEM_FETCH(bits, type, name)                                         \
  type __tsan_atomic##bits##_fetch_##name(volatile type* p, type value, int) { \
    return __atomic_fetch_##name(p, value, __ATOMIC_SEQ_CST);                  \
  }
#define TANDEM_ATOMICS(bits, type)                                                                              \
  type __tsan_atomic##bits##_load(const volatile type* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); } \
  void __tsan_atomic##bits##_store(volatile type* p, type value, int) {                                         \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                             \
  type __tsan_atomic##bits##_exchange(volatile type* p, type value, int) {                                      \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                                     \
  }                                                                                                             \
  TANDEM_FETCH(bits, type, add)                                                                                 \
  TANDEM_FETCH(bits, type, sub)                                                                                 \
  TANDEM_FETCH(bits, type, and)                                                                                 \
  TANDEM_FETCH(bits, type, or)                                                                                  \
  TANDEM_FETCH(bits, type, xor)                                                                                 \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type value, int, int) {   \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
  }                                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type value, int, int) {     \
    return __atomic_compare_exchange_n(p, expected, value, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
  }                                                                                                             \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type value, int, int) {      \
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                \
    return expected;                                                                                            \
  }

extern "C" {
TANDEM_ATOMICS(8, std::uint8_t)
TANDEM_ATOMICS(16, std::uint16_t)
TANDEM_ATOMICS(32, std::uint32_t)
TANDEM_ATOMICS(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}
// NOLINTEND
