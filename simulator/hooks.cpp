// What instrumented code calls: kernels of the race build are compiled with -fsanitize=thread, but linked with these
// functions instead of the library that belongs to it. The same for -fsanitize=alignment.
//
// This file, like all of the simulator, must not be instrumented itself.
#include "tandem/simulator/shadow.h"

#include <fmt/format.h>

#include <cstring>

namespace {

using tandem::simulator::Access;
using tandem::simulator::check_access;
using tandem::simulator::engine;
using tandem::simulator::FaultKind;
using tandem::simulator::site_id_of_address;

template <std::size_t kBytes, Access kKind>
inline void hook(const void* address, const void* caller) {
  if (!engine().running()) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  // The compiler moves local structs in one access whatever their alignment; a GPU keeps them in registers.
  if (kBytes > 1 && at % kBytes != 0 && !engine().stacks().contains(at)) {
    engine().raise(FaultKind::misaligned, site_id_of_address(caller),
                   fmt::format("{} bytes at {:#x}, which is no multiple of {}", kBytes, at, kBytes));
  }
  check_access(at, kBytes, kKind, site_id_of_address(caller));
}

/// Of volatile variables: what is read again and again may be a flag that another thread is to set.
template <std::size_t kBytes, Access kKind>
inline void volatile_hook(const void* address, const void* caller) {
  if (!engine().running()) return;
  if (kKind == Access::read)
    engine().poll(site_id_of_address(caller));
  else
    engine().note_change();
  hook<kBytes, kKind>(address, caller);
}

inline void range_hook(const void* start, std::size_t bytes, Access kind, const void* caller) {
  if (bytes == 0) return;
  check_access(reinterpret_cast<std::uintptr_t>(start), bytes, kind, site_id_of_address(caller));
}

}  // namespace

// NOLINTBEGIN: the names are the compiler's
#define TANDEM_HOOK(bytes)                                                                                          \
  void __tsan_read##bytes(void* p) { hook<bytes, Access::read>(p, __builtin_return_address(0)); }                   \
  void __tsan_write##bytes(void* p) { hook<bytes, Access::write>(p, __builtin_return_address(0)); }                 \
  void __tsan_volatile_read##bytes(void* p) { volatile_hook<bytes, Access::read>(p, __builtin_return_address(0)); } \
  void __tsan_volatile_write##bytes(void* p) { volatile_hook<bytes, Access::write>(p, __builtin_return_address(0)); }
#define TANDEM_UNALIGNED_HOOK(bytes)                                        \
  void __tsan_unaligned_read##bytes(void* p) {                              \
    check_access(reinterpret_cast<std::uintptr_t>(p), bytes, Access::read,  \
                 site_id_of_address(__builtin_return_address(0)));          \
  }                                                                         \
  void __tsan_unaligned_write##bytes(void* p) {                             \
    check_access(reinterpret_cast<std::uintptr_t>(p), bytes, Access::write, \
                 site_id_of_address(__builtin_return_address(0)));          \
  }

extern "C" {

TANDEM_HOOK(1)
TANDEM_HOOK(2)
TANDEM_HOOK(4)
TANDEM_HOOK(8)
TANDEM_HOOK(16)
TANDEM_UNALIGNED_HOOK(2)
TANDEM_UNALIGNED_HOOK(4)
TANDEM_UNALIGNED_HOOK(8)
TANDEM_UNALIGNED_HOOK(16)

void __tsan_read_range(void* p, std::size_t bytes) { range_hook(p, bytes, Access::read, __builtin_return_address(0)); }
void __tsan_write_range(void* p, std::size_t bytes) {
  range_hook(p, bytes, Access::write, __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// What memcpy() and its like are in kernels; see checked_memory.h.
void* tandem_simulator_memcpy(void* to, const void* from, std::size_t bytes) {
  range_hook(from, bytes, Access::read, __builtin_return_address(0));
  range_hook(to, bytes, Access::write, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void* tandem_simulator_memmove(void* to, const void* from, std::size_t bytes) {
  range_hook(from, bytes, Access::read, __builtin_return_address(0));
  range_hook(to, bytes, Access::write, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
void* tandem_simulator_memset(void* to, int value, std::size_t bytes) {
  range_hook(to, bytes, Access::write, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}

}  // extern "C"
// NOLINTEND
