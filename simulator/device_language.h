// What kernels call: barriers, warp operations, atomics, shared memory. The functions behind the CUDA names.
#pragma once

#include "tandem/simulator/include/vector_types.h"

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace tandem::simulator {

using Where = std::source_location;

void sync_threads(Where where);
/// What __syncthreads_count, _and and _or are made of: a barrier, and the number of threads whose `predicate` holds.
int sync_threads_count(bool predicate, Where where);
void sync_warp(unsigned mask, Where where);

/// Exchanges up to 16 bytes: each lane brings `value` and gets that of lane `source` instead.
enum class Shuffle : std::uint8_t { index, up, down, exclusive_or };
void shuffle(Shuffle kind, unsigned mask, void* value, std::size_t bytes, unsigned operand, int width, Where where);

/// The lanes of the mask whose predicate holds.
unsigned ballot(unsigned mask, bool predicate, Where where);
/// The lanes of the mask with this lane's value.
unsigned match_any(unsigned mask, std::uint64_t value, Where where);
/// Those of the mask that have not left, if all of them have the same value; else 0.
unsigned match_all(unsigned mask, std::uint64_t value, Where where);

enum class Reduce : std::uint8_t { add, min_signed, max_signed, min_unsigned, max_unsigned, bit_and, bit_or, bit_xor };
unsigned reduce(Reduce kind, unsigned mask, unsigned value, Where where);

unsigned active_mask();

/// __threadfence_block().
void fence();
/// __threadfence() and __threadfence_system().
void device_fence();
/// __nanosleep(): others get their turn.
void pause(Where where);

/// Checks an atomic operation, which no instrumentation sees; aligned to its size.
void check_atomic(const void* address, std::size_t bytes, Where where);
/// Called when it is done: what changes nothing may be a wait for another thread.
void finish_atomic(const void* address, bool changed, Where where);

/// Checked accesses of up to 16 bytes that move them, too.
void read(void* to, const void* address, std::size_t bytes, Where where);
void write(void* address, const void* from, std::size_t bytes, Where where);
/// Moves bytes without a check, out of instrumented code's sight.
void move_bytes(void* to, const void* from, std::size_t bytes);

/// old = *address; *address = update(old); as one step.
template <typename T, typename Update>
T atomic_update(T* address, Where where, Update&& update) {
  check_atomic(address, sizeof(T), where);
  // Not through *address: the build that checks accesses would see a plain read and write here.
  T old;
  move_bytes(&old, address, sizeof(T));
  const T fresh = update(old);
  move_bytes(address, &fresh, sizeof(T));
  finish_atomic(address, __builtin_memcmp(&old, &fresh, sizeof(T)) != 0, where);
  return old;
}

}  // namespace tandem::simulator
