// Kernels are compiled with -fsanitize=alignment: misaligned wide accesses come here, with their place in the source.
#include "tandem/simulator/engine.h"

#include <fmt/format.h>

#include <cstdint>

namespace {

/// As GCC lays it out for this handler.
struct TypeMismatch {
  const char* file;
  std::uint32_t line, column;
  const void* type;
  unsigned char log_alignment, access_kind;
};

}  // namespace

extern "C" void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, std::uintptr_t address) {
  tandem::simulator::Engine& e = tandem::simulator::engine();
  if (!e.running()) return;
  e.raise(tandem::simulator::FaultKind::misaligned, tandem::simulator::site_id(data->file, data->line),
          fmt::format("address {:#x} is used as an object that needs a multiple of {}", address,
                      1u << data->log_alignment));
}
