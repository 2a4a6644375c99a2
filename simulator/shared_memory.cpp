// The arena of shared memory.
#include "tandem/simulator/shared_memory.h"

#include "tandem/simulator/address_marks.h"
#include "tandem/simulator/shadow.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace tandem::simulator {

namespace {

constexpr std::size_t kRedZone = 128;
constexpr std::size_t kArenaBytes = 512 * 1024;
alignas(1024) char arena[kArenaBytes];

struct Variable {
  const void* key;
  const char* name;
  std::size_t offset, bytes;
};

struct Layout {
  std::vector<Variable> variables;  // the dynamic part is the first, where there is one
  std::size_t end = 0;              // of what is in use
  std::size_t dynamic_bytes = 0, static_bytes = 0;
};

Layout& layout() {
  static Layout the_layout;
  return the_layout;
}

void map_shadow_once() {
  if constexpr (!kChecksMemory) return;
  static const bool mapped = (shared_shadow().map(arena, kArenaBytes), true);
  static_cast<void>(mapped);
}

void* place(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
  Layout& l = layout();
  const std::size_t offset = (l.end + kRedZone + alignment - 1) / alignment * alignment;
  l.variables.push_back({key, name, offset, bytes});
  l.end = offset + bytes;
  mark_usable(arena + offset, bytes);
  std::memset(arena + offset, 0xff, bytes);
  if constexpr (kChecksMemory)
    shared_shadow().set(reinterpret_cast<std::uintptr_t>(arena + offset), bytes, Stamp::kUninitialised);
  return arena + offset;
}

}  // namespace

void start_shared_memory(std::size_t dynamic_bytes) {
  map_shadow_once();
  Layout& l = layout();
  if constexpr (kChecksMemory) {
    for (const Variable& variable : l.variables)
      shared_shadow().set(reinterpret_cast<std::uintptr_t>(arena + variable.offset), variable.bytes,
                          Stamp::kNotAllocated);
  }
  mark_unusable(arena, kArenaBytes);
  l = {};
  l.variables.reserve(64);
  l.dynamic_bytes = dynamic_bytes;
  if (dynamic_bytes > 0) place(nullptr, "dynamic shared memory", dynamic_bytes, 1024);
}

void start_block_of_shared_memory() {
  for (const Variable& variable : layout().variables) std::memset(arena + variable.offset, 0xff, variable.bytes);
}

void* shared_variable(const void* key, std::size_t bytes, std::size_t alignment, const char* name,
                      std::source_location where) {
  Layout& l = layout();
  for (const Variable& variable : l.variables) {
    if (variable.key == key) return arena + variable.offset;
  }
  l.static_bytes += bytes;
  if (l.static_bytes > kStaticSharedLimit || l.static_bytes + l.dynamic_bytes > kSharedLimit) {
    engine().raise(
        FaultKind::limit, site_id(where),
        fmt::format("{} brings shared memory to {} static and {} dynamic bytes; {} static and {} together are allowed",
                    name, l.static_bytes, l.dynamic_bytes, kStaticSharedLimit, kSharedLimit));
  }
  const Engine::Aside aside(engine());
  return place(key, name, bytes, alignment);
}

void* dynamic_shared_memory() {
  return arena + (layout().dynamic_bytes > 0 ? layout().variables.front().offset : 1024);
}

bool is_shared_address(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(arena) < kArenaBytes;
}

unsigned offset_in_shared_memory(const void* address) {
  return static_cast<unsigned>(static_cast<const char*>(address) - arena);
}

char* at_shared_offset(unsigned offset) { return arena + offset; }

std::string describe_shared(std::uintptr_t address) {
  const auto offset = static_cast<std::ptrdiff_t>(address - reinterpret_cast<std::uintptr_t>(arena));
  const Variable* nearest = nullptr;
  for (const Variable& variable : layout().variables) {
    if (static_cast<std::ptrdiff_t>(variable.offset) <= offset + static_cast<std::ptrdiff_t>(kRedZone) &&
        (nearest == nullptr || variable.offset > nearest->offset))
      nearest = &variable;
  }
  if (nearest == nullptr) return fmt::format("shared memory, {} bytes before the first variable", offset);
  return fmt::format("{}{:+} (shared, {} bytes)", nearest->name, offset - static_cast<std::ptrdiff_t>(nearest->offset),
                     nearest->bytes);
}

void forget_order_of_shared_memory() {
  for (const Variable& variable : layout().variables)
    shared_shadow().forget_order(reinterpret_cast<std::uintptr_t>(arena + variable.offset), variable.bytes);
}

}  // namespace tandem::simulator
