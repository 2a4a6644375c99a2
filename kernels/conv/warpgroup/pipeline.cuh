// Steps of operands on their way from one thread that fetches to two warpgroups that multiply: a ring of stages, each
// with a barrier that it is full, and one that it is used up.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/main_loop.cuh"
#include "tandem/kernels/conv/warpgroup/plan.h"
#include "tandem/kernels/device/mbarrier.h"
#include "tandem/kernels/device/wgmma.h"

namespace tandem::kernels::cuda::warpgroup {

using device::Lines;
using device::Mbarrier;
using implicit_gemm::Accumulators;
using implicit_gemm::WarpPlace;

/// 64 rows of an operand at 64 depths, whichever of them are lines.
constexpr int kChunkBytes = device::kLineHalves * device::kLineBytes;

/// Registers of threads that fetch and that multiply: together what 384 threads of 168 have.
constexpr int kFetchRegisters = 40, kMultiplyRegisters = 232;

/// Where in the ring a thread is.
template <typename Shape>
struct Turn {
  int stage = 0;
  unsigned round = 0;  // its lowest bit is the parity of the phase

  __device__ void advance() {
    if (++stage < Shape::kStages) return;
    stage = 0;
    round ^= 1;
  }
};

/// A block's shared memory.
template <typename Shape>
class Pipeline {
 public:
  /// All threads of the block call it with the whole of dynamic shared memory, and the maps that the fetching thread
  /// will copy by.
  __device__ Pipeline(unsigned char* shared, const CUtensorMap& left, const CUtensorMap& right)
      : stages_(shared + device::padding_to_swizzle(device::shared_address(shared))) {
    if (threadIdx.x == Shape::kThreads) {
      device::prefetch_tensor_map(&left);
      device::prefetch_tensor_map(&right);
    }
    if (threadIdx.x == 0) {
      for (int i = 0; i < Shape::kStages; ++i) {
        full(i).init(1);
        used_up(i).init(Shape::kThreads / device::kWarpThreads);
      }
      device::publish_mbarriers();
    }
    __syncthreads();
  }

  __device__ unsigned char* left(int stage) const { return stages_ + stage * Shape::kStageBytes; }
  __device__ unsigned char* right(int stage) const { return left(stage) + Shape::kLeftBytes; }
  /// For store_tile().
  __device__ unsigned char* staged() const { return stages_ + Shape::kStages * Shape::kStageBytes; }
  __device__ Mbarrier& full(int stage) const { return barriers()[stage]; }
  __device__ Mbarrier& used_up(int stage) const { return barriers()[Shape::kStages + stage]; }

  /// Waits for room for a step, and announces its bytes; the copies arrive at the barrier that is returned.
  __device__ Mbarrier& begin_step(const Turn<Shape>& turn) const {
    used_up(turn.stage).wait(turn.round ^ 1);
    full(turn.stage).arrive_and_expect(Shape::kStageBytes);
    return full(turn.stage);
  }

 private:
  __device__ Mbarrier* barriers() const { return reinterpret_cast<Mbarrier*>(staged() + Shape::kSharedBytes); }

  unsigned char* stages_;
};

/// Adds up `steps` steps, for this warpgroup's 64 rows. The products of a step run while the next one is waited for.
template <typename T, typename Shape, Lines kLeft, Lines kRight>
__device__ void run_main_loop(const Pipeline<Shape>& pipeline, Turn<Shape>& turn, int steps,
                              Accumulators<Shape>& accumulators) {
  const int group = static_cast<int>(threadIdx.x) / device::kWarpgroupThreads;
  const bool signals = threadIdx.x % device::kWarpThreads == 0;
  const std::uint64_t left =
      device::operand_descriptor(kLeft, device::shared_address(pipeline.left(0) + group * kChunkBytes), kChunkBytes);
  const std::uint64_t right =
      device::operand_descriptor(kRight, device::shared_address(pipeline.right(0)), kChunkBytes);
  int used = -1;
  device::hold_sums(accumulators.value[0]);
  for (int step = 0; step < steps; ++step) {
    pipeline.full(turn.stage).wait(turn.round);
    const unsigned stage = static_cast<unsigned>(turn.stage * Shape::kStageBytes);
    device::wgmma_fence();
#pragma unroll
    for (unsigned i = 0; i < device::kLineHalves / device::kProductDepth; ++i)
      device::wgmma<T, Shape::kColumns, kLeft, kRight>(accumulators.value[0],
                                                       device::advanced(left, stage + i * device::depth_step(kLeft)),
                                                       device::advanced(right, stage + i * device::depth_step(kRight)));
    device::wgmma_commit();
    device::wgmma_wait<1>();
    if (signals && used >= 0) pipeline.used_up(used).arrive();
    used = turn.stage;
    turn.advance();
  }
  device::wgmma_wait<0>();
  device::hold_sums(accumulators.value[0]);
  if (signals && used >= 0) pipeline.used_up(used).arrive();
}

}  // namespace tandem::kernels::cuda::warpgroup
