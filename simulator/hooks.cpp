// What instrumented code calls: kernels of the race build are compiled with -fsanitize=thread, but linked with these
// functions instead of the library that belongs to it. The same for -fsanitize=alignment.
//
// This file, like all of the simulator, must not be instrumented itself.
#include "simulator/shadow.h"

#include <fmt/format.h>

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

}  // namespace

// NOLINTBEGIN: the names are the compiler's
#define TANDEM_HOOK(bytes)                                                                                 \
  void __tsan_read##bytes(void* p) { hook<bytes, Access::read>(p, __builtin_return_address(0)); }          \
  void __tsan_write##bytes(void* p) { hook<bytes, Access::write>(p, __builtin_return_address(0)); }        \
  void __tsan_volatile_read##bytes(void* p) { hook<bytes, Access::read>(p, __builtin_return_address(0)); } \
  void __tsan_volatile_write##bytes(void* p) { hook<bytes, Access::write>(p, __builtin_return_address(0)); }
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

void __tsan_read_range(void* p, std::size_t bytes) {
  check_access(reinterpret_cast<std::uintptr_t>(p), bytes, Access::read,
               site_id_of_address(__builtin_return_address(0)));
}
void __tsan_write_range(void* p, std::size_t bytes) {
  check_access(reinterpret_cast<std::uintptr_t>(p), bytes, Access::write,
               site_id_of_address(__builtin_return_address(0)));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

}  // extern "C"
// NOLINTEND
