// Products of warpgroups, whose operands lie in shared memory: PTX under nvcc for sm_90a, plain C++ in the simulator.
// (PTX ISA, "wgmma.mma_async"; layouts: warpgroup_layout.h)
#pragma once

#include "tandem/core/half.h"
#include "tandem/kernels/device/warpgroup_layout.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <source_location>
#include <type_traits>

#ifndef __CUDACC__
#include "tandem/simulator/shared_memory.h"
#include "tandem/simulator/warpgroup.h"
#endif

namespace tandem::device {

/// The address that descriptors and the swizzle go by.
__device__ inline unsigned shared_address(const void* shared) {
#ifdef __CUDACC__
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
#else
  return simulator::offset_in_shared_memory(shared);
#endif
}

/// Comes before the first product, and after the sums were touched by other instructions.
__device__ inline void wgmma_fence() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#endif
}

/// Closes the group of products since the last commit.
__device__ inline void wgmma_commit() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#elif !defined(__CUDACC__)
  simulator::commit_warpgroup_products();
#endif
}

/// Waits for all of this warpgroup's groups but the newest kPending: then sums may be read, and operands overwritten.
template <int kPending>
__device__ void wgmma_wait([[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
#elif !defined(__CUDACC__)
  simulator::wait_for_warpgroup_products(kPending, where);
#endif
}

/// Keeps the compiler from moving other uses of sums to where products are under way: before and after them.
template <int kBlocks>
__device__ void hold_sums([[maybe_unused]] float (&sums)[kBlocks][4]) {
#ifdef __CUDA_ARCH__
#pragma unroll
  for (int j = 0; j < kBlocks; ++j)
    asm volatile("" : "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])::"memory");
#endif
}

/// sums += a b for 64 x 16 times 16 x kColumns numbers, T is Half or BFloat16; a and b are descriptors. Of every 8
/// columns a lane has the four sums that mma_m16n8k16 gives it, its warp having 16 of the rows. All threads of the
/// warpgroup call it; it runs on until it is waited for.
template <typename T, int kColumns, Lines kA, Lines kB>
__device__ void wgmma(float (&sums)[kColumns / 8][4], std::uint64_t a, std::uint64_t b,
                      [[maybe_unused]] std::source_location where = std::source_location::current()) {
  static_assert(kColumns == 128 || kColumns == 256);
  [[maybe_unused]] constexpr int kTransposedA = kA == Lines::along_rows ? 1 : 0,
                                 kTransposedB = kB == Lines::along_rows ? 1 : 0;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TANDEM_SUMS(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
  // clang-format off
#define TANDEM_WGMMA_128(type) \
  asm volatile( \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63" \
      "}, %64, %65, adds, 1, 1, %66, %67;\n}\n" \
      : TANDEM_SUMS(0), TANDEM_SUMS(1), TANDEM_SUMS(2), TANDEM_SUMS(3), TANDEM_SUMS(4), TANDEM_SUMS(5), \
        TANDEM_SUMS(6), TANDEM_SUMS(7), TANDEM_SUMS(8), TANDEM_SUMS(9), TANDEM_SUMS(10), TANDEM_SUMS(11), \
        TANDEM_SUMS(12), TANDEM_SUMS(13), TANDEM_SUMS(14), TANDEM_SUMS(15) \
      : "l"(a), "l"(b), "n"(kTransposedA), "n"(kTransposedB))
#define TANDEM_WGMMA_256(type) \
  asm volatile( \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127" \
      "}, %128, %129, adds, 1, 1, %130, %131;\n}\n" \
      : TANDEM_SUMS(0), TANDEM_SUMS(1), TANDEM_SUMS(2), TANDEM_SUMS(3), TANDEM_SUMS(4), TANDEM_SUMS(5), \
        TANDEM_SUMS(6), TANDEM_SUMS(7), TANDEM_SUMS(8), TANDEM_SUMS(9), TANDEM_SUMS(10), TANDEM_SUMS(11), \
        TANDEM_SUMS(12), TANDEM_SUMS(13), TANDEM_SUMS(14), TANDEM_SUMS(15), TANDEM_SUMS(16), TANDEM_SUMS(17), \
        TANDEM_SUMS(18), TANDEM_SUMS(19), TANDEM_SUMS(20), TANDEM_SUMS(21), TANDEM_SUMS(22), TANDEM_SUMS(23), \
        TANDEM_SUMS(24), TANDEM_SUMS(25), TANDEM_SUMS(26), TANDEM_SUMS(27), TANDEM_SUMS(28), TANDEM_SUMS(29), \
        TANDEM_SUMS(30), TANDEM_SUMS(31) \
      : "l"(a), "l"(b), "n"(kTransposedA), "n"(kTransposedB))
  if constexpr (kColumns == 128) {
    if constexpr (std::is_same_v<T, Half>) TANDEM_WGMMA_128("f16"); else TANDEM_WGMMA_128("bf16");
  } else {
    if constexpr (std::is_same_v<T, Half>) TANDEM_WGMMA_256("f16"); else TANDEM_WGMMA_256("bf16");
  }
// clang-format on
#undef TANDEM_WGMMA_256
#undef TANDEM_WGMMA_128
#undef TANDEM_SUMS
#elif defined(__CUDACC__)
  __trap();  // kernels that call this are for sm_90a
#else
  constexpr auto kType = std::is_same_v<T, Half> ? simulator::MatrixType::f16 : simulator::MatrixType::bf16;
  simulator::multiply_warpgroup(&sums[0][0], {kType, kColumns, a, b, kTransposedA != 0, kTransposedB != 0}, where);
#endif
}

}  // namespace tandem::device
