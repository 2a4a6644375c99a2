// The instructions that kernels are built from: asynchronous copies to shared memory and tensor-core products. PTX
// under nvcc, plain C++ in the simulator. Layouts and rules: PTX ISA, "cp.async", "ldmatrix", "mma.sync"; the lanes'
// shares are spelled out in simulator/matrix.h.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <source_location>

#ifndef __CUDACC__
#include "tandem/simulator/async_copy.h"
#include "tandem/simulator/matrix.h"
#endif

namespace tandem::device {

/// Starts copying kBytes (4, 8 or 16, both addresses multiples of it) from global to shared memory; with
/// `source_bytes` < kBytes the rest becomes zero.
template <int kBytes>
__device__ void cp_async(void* shared, const void* global, int source_bytes = kBytes,
                         [[maybe_unused]] std::source_location where = std::source_location::current()) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
#ifdef __CUDACC__
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global), "r"(source_bytes));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(to), "l"(global), "n"(kBytes),
                 "r"(source_bytes));
  }
#else
  simulator::start_async_copy(shared, global, kBytes, static_cast<std::size_t>(source_bytes), where);
#endif
}

/// Closes the group of copies that this thread started since the last commit.
__device__ inline void cp_async_commit() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;\n" ::);
#else
  simulator::commit_async_copies();
#endif
}

/// Waits for all of this thread's groups but the newest kPending. Other threads' copies need a barrier after it.
template <int kPending>
__device__ void cp_async_wait() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");  // no read of what arrives comes before
#else
  simulator::wait_for_async_copies(kPending);
#endif
}

/// Four 8x8 matrices of halves: lane i gives the shared address of row i % 8 of matrix i / 8.
__device__ inline void ldmatrix_x4(std::uint32_t (&registers)[4], const void* row,
                                   [[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDACC__
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(address));
#else
  simulator::load_matrix(registers, 4, false, row, where);
#endif
}

/// The same, each matrix transposed.
__device__ inline void ldmatrix_x4_trans(
    std::uint32_t (&registers)[4], const void* row,
    [[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDACC__
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(address));
#else
  simulator::load_matrix(registers, 4, true, row, where);
#endif
}

/// Two matrices: lanes 0 to 15 give the rows.
__device__ inline void ldmatrix_x2(std::uint32_t (&registers)[2], const void* row,
                                   [[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDACC__
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\n"
               : "=r"(registers[0]), "=r"(registers[1])
               : "r"(address));
#else
  simulator::load_matrix(registers, 2, false, row, where);
#endif
}

/// d += a b for 16x16 times 16x8 halves, accumulated in f32.
__device__ inline void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                        [[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simulator::multiply_matrices(simulator::MatrixType::f16, d, a, b, d, where);
#endif
}

/// The same for bfloat16.
__device__ inline void mma_m16n8k16_bf16(
    float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
    [[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simulator::multiply_matrices(simulator::MatrixType::bf16, d, a, b, d, where);
#endif
}

/// The nearest float of 10 bits of mantissa, ties away from zero, as a tensor core takes it.
__device__ inline std::uint32_t round_to_tf32(float value) {
#ifdef __CUDACC__
  std::uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(rounded) : "f"(value));
  return rounded;
#else
  return simulator::round_to_tf32(value);
#endif
}

/// d += a b for 16x8 times 8x8 floats of which the tensor core reads 10 bits of mantissa.
__device__ inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                        [[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simulator::multiply_matrices(simulator::MatrixType::tf32, d, a, b, d, where);
#endif
}

}  // namespace tandem::device
