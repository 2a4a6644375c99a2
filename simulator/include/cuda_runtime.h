// The CUDA C++ language as far as plain C++ can have it, for kernels that run in the simulator. Found under the name of
// NVIDIA's header, so that the same .cu file compiles with and without nvcc.
//
// What plain C++ cannot have: <<<...>>> (use tandem::launch) and __shared__ (use TANDEM_SHARED and
// TANDEM_DYNAMIC_SHARED of kernels/device/shared.h).
#pragma once

#include "cuda_runtime_api.h"
#include "tandem/simulator/builtins.h"
#include "tandem/simulator/checked_memory.h"
#include "tandem/simulator/device_language.h"
#include "tandem/simulator/include/device_math.h"
#include "tandem/simulator/run.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__                                                                               \
  static_assert(false, "use TANDEM_SHARED or TANDEM_DYNAMIC_SHARED of kernels/device/shared.h"); \
  extern

inline constexpr int warpSize = 32;

inline void __syncthreads(tandem::simulator::Where where = tandem::simulator::Where::current()) {
  tandem::simulator::sync_threads(where);
}
inline int __syncthreads_count(int predicate, tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::sync_threads_count(predicate != 0, where);
}
inline int __syncthreads_and(int predicate, tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::sync_threads_count(predicate == 0, where) == 0;
}
inline int __syncthreads_or(int predicate, tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::sync_threads_count(predicate != 0, where) > 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu,
                       tandem::simulator::Where where = tandem::simulator::Where::current()) {
  tandem::simulator::sync_warp(mask, where);
}
inline void __threadfence() { tandem::simulator::device_fence(); }
inline void __threadfence_block() { tandem::simulator::fence(); }
inline void __threadfence_system() { tandem::simulator::device_fence(); }
inline void __nanosleep(unsigned, tandem::simulator::Where where = tandem::simulator::Where::current()) {
  tandem::simulator::pause(where);
}
inline unsigned __activemask() { return tandem::simulator::active_mask(); }

namespace tandem::simulator {

/// What CUDA's warp functions take. nvcc knows no others; here a template would.
template <typename T>
inline constexpr bool kShufflesType =
    std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, long> ||
    std::is_same_v<T, unsigned long> || std::is_same_v<T, long long> || std::is_same_v<T, unsigned long long> ||
    std::is_same_v<T, float> || std::is_same_v<T, double>;

template <typename T>
T shuffled(Shuffle kind, unsigned mask, T value, unsigned amount, int width, Where where) {
  static_assert(kShufflesType<T>,
                "__shfl_*sync() takes int, long, long long, unsigned ones of these, float or double: "
                "cast smaller numbers, and shuffle the members of a struct one by one");
  shuffle(kind, mask, &value, sizeof value, amount, width, where);
  return value;
}

}  // namespace tandem::simulator

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::shuffled(tandem::simulator::Shuffle::index, mask, value, static_cast<unsigned>(lane), width,
                                     where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::shuffled(tandem::simulator::Shuffle::up, mask, value, delta, width, where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::shuffled(tandem::simulator::Shuffle::down, mask, value, delta, width, where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::shuffled(tandem::simulator::Shuffle::exclusive_or, mask, value,
                                     static_cast<unsigned>(lanes), width, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate,
                      tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::ballot(mask, predicate != 0, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::ballot(mask, predicate == 0, where) == 0;
}
namespace tandem::simulator {

template <typename T>
std::uint64_t bits_to_match(T value) {
  static_assert(kShufflesType<T>,
                "__match_*_sync() takes int, long, long long, unsigned ones of these, float or double");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace tandem::simulator

template <typename T>
unsigned __match_any_sync(unsigned mask, T value,
                          tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::match_any(mask, tandem::simulator::bits_to_match(value), where);
}
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* all,
                          tandem::simulator::Where where = tandem::simulator::Where::current()) {
  const unsigned lanes = tandem::simulator::match_all(mask, tandem::simulator::bits_to_match(value), where);
  *all = lanes != 0;
  return lanes;
}

#define TANDEM_REDUCE(name, type, kind)                                                                               \
  inline type name(unsigned mask, type value, tandem::simulator::Where where = tandem::simulator::Where::current()) { \
    return static_cast<type>(                                                                                         \
        tandem::simulator::reduce(tandem::simulator::Reduce::kind, mask, static_cast<unsigned>(value), where));       \
  }
TANDEM_REDUCE(__reduce_add_sync, int, add)
TANDEM_REDUCE(__reduce_add_sync, unsigned, add)
TANDEM_REDUCE(__reduce_min_sync, int, min_signed)
TANDEM_REDUCE(__reduce_min_sync, unsigned, min_unsigned)
TANDEM_REDUCE(__reduce_max_sync, int, max_signed)
TANDEM_REDUCE(__reduce_max_sync, unsigned, max_unsigned)
TANDEM_REDUCE(__reduce_and_sync, unsigned, bit_and)
TANDEM_REDUCE(__reduce_or_sync, unsigned, bit_or)
TANDEM_REDUCE(__reduce_xor_sync, unsigned, bit_xor)
#undef TANDEM_REDUCE

template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value,
            tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T old) { return static_cast<T>(old + value); });
}
template <typename T>
T atomicSub(T* address, std::type_identity_t<T> value,
            tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T old) { return static_cast<T>(old - value); });
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value,
            tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T old) { return value < old ? value : old; });
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value,
            tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T old) { return old < value ? value : old; });
}
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value,
             tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T) { return value; });
}
template <typename T>
T atomicAnd(T* address, std::type_identity_t<T> value,
            tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T old) { return static_cast<T>(old & value); });
}
template <typename T>
T atomicOr(T* address, std::type_identity_t<T> value,
           tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T old) { return static_cast<T>(old | value); });
}
template <typename T>
T atomicXor(T* address, std::type_identity_t<T> value,
            tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T old) { return static_cast<T>(old ^ value); });
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value,
            tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](T old) { return old == expected ? value : old; });
}
inline unsigned atomicInc(unsigned* address, unsigned limit,
                          tandem::simulator::Where where = tandem::simulator::Where::current()) {
  return tandem::simulator::atomic_update(address, where, [=](unsigned old) { return old >= limit ? 0u : old + 1; });
}
