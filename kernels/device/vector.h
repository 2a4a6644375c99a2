// Wide loads and stores: several neighbouring elements in one access of 2 to 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <source_location>

namespace tandem::device {

/// N elements, aligned like one access of their size.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];

  __device__ T& operator[](int i) { return values[i]; }
  __device__ const T& operator[](int i) const { return values[i]; }
};

/// The most elements of T that one access moves.
template <typename T>
inline constexpr int kVectorWidth = 16 / static_cast<int>(sizeof(T));

/// True if addresses are multiples of 16 bytes, all of them.
template <typename... Pointers>
__host__ __device__ bool aligned_for_vectors(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

namespace detail {
template <int kBytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};
}  // namespace detail

/// The N elements at `address`, which must be a multiple of their size together.
template <int N, typename T>
__device__ Vector<T, N> load_vector(const T* address,
                                    [[maybe_unused]] std::source_location where = std::source_location::current()) {
  Vector<T, N> result;
#ifdef __CUDACC__
  using Word = typename detail::Word<sizeof(result)>::type;
  const Word word = *reinterpret_cast<const Word*>(address);
  memcpy(&result, &word, sizeof(result));
#else
  simulator::read(&result, address, sizeof result, where);
#endif
  return result;
}

template <int N, typename T>
__device__ void store_vector(T* address, const Vector<T, N>& vector,
                             [[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDACC__
  using Word = typename detail::Word<sizeof(vector)>::type;
  Word word;
  memcpy(&word, &vector, sizeof(vector));
  *reinterpret_cast<Word*>(address) = word;
#else
  simulator::write(address, &vector, sizeof vector, where);
#endif
}

}  // namespace tandem::device
