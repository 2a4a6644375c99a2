// Planted faults: copies of tiles and products of warpgroups that are not waited for, and barriers used wrongly.
#include "tandem/core/cuda/launch.h"
#include "tandem/core/half.h"
#include "tandem/kernels/device/mbarrier.h"
#include "tandem/kernels/device/named_barrier.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/device/wgmma.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/planted_fault.h"
#include "tests/simulator/tile_map.h"

namespace tandem::test {
namespace {

using device::Lines;
using simulator::FaultKind;

constexpr int kStages = 2, kTiles = 3, kLines = 128, kThreads = 160;
constexpr unsigned kBytes = kLines * device::kLineBytes;

constexpr Lines kLinesAre = Lines::along_depth;

enum class Mistake {
  no_wait,
  no_room,
  too_many_bytes,
  too_few_bytes,
  no_barrier,
  not_initialised,
  nobody_waits,
  too_many_arrivals,
  signals_early,
  products_not_waited_for,
  few_at_named_barrier,
};

/// One thread fetches tiles, a warpgroup adds up their numbers, and multiplies each by itself.
template <Mistake kMistake>
__global__ void use_tiles(const __grid_constant__ CUtensorMap map, float* out) {
  TANDEM_DYNAMIC_SHARED(unsigned char, shared);
  TANDEM_SHARED(device::Mbarrier, full, [kStages]);
  TANDEM_SHARED(device::Mbarrier, used_up, [kStages]);
  unsigned char* const tiles = shared + device::padding_to_swizzle(device::shared_address(shared));
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      if (kMistake != Mistake::not_initialised) full[i].init(1);
      used_up[i].init(4);
    }
    device::publish_mbarriers();
  }
  if (kMistake != Mistake::no_barrier) __syncthreads();

  if (threadIdx.x >= 128) {
    if (threadIdx.x > 128) return;
    for (int i = 0; i < kTiles; ++i) {
      const int stage = i % kStages;
      if (kMistake == Mistake::no_barrier) {
        used_up[stage].wait(1);  // fault: mbarrier used before others may see it
      } else if (kMistake != Mistake::no_room) {
        used_up[stage].wait(i / kStages % 2 == 0 ? 1 : 0);
      }
      unsigned char* const tile = tiles + static_cast<unsigned>(stage) * kBytes;
      if (kMistake == Mistake::not_initialised) {
        full[stage].arrive_and_expect(kBytes);  // fault: mbarrier that nobody initialised
      } else {
        full[stage].arrive_and_expect(kMistake == Mistake::too_few_bytes ? 2 * kBytes : kBytes);
      }
      if (kMistake == Mistake::too_many_arrivals) {
        full[stage].arrive();  // fault: more arrivals than the mbarrier is for
      } else if (kMistake == Mistake::too_many_bytes) {
        full[stage].copy_tile(tile, &map, 0, 0, 0, i);
        full[stage].copy_tile(tile, &map, 0, 0, 0, i);  // fault: more bytes than were announced
      } else if (kMistake == Mistake::nobody_waits) {
        full[stage].copy_tile(tile, &map, 0, 0, 0, i);  // fault: tile that nobody waits for
        return;
      } else {
        full[stage].copy_tile(tile, &map, 0, 0, 0, i);
      }
    }
    return;
  }

  if (kMistake == Mistake::nobody_waits || kMistake == Mistake::no_barrier || kMistake == Mistake::not_initialised)
    return;
  float total = 0.0f;
  float sums[16][4] = {};
  for (int i = 0; i < kTiles; ++i) {
    const int stage = i % kStages;
    const unsigned char* const tile = tiles + static_cast<unsigned>(stage) * kBytes;
    if (kMistake == Mistake::no_wait) {
      total += tile[threadIdx.x];  // fault: tile read before it is there
    } else if (kMistake == Mistake::too_few_bytes) {
      full[stage].wait(0);  // fault: fewer bytes come than were announced
    } else {
      full[stage].wait(static_cast<unsigned>(i / kStages % 2));
    }
    if (kMistake == Mistake::no_room) {
      total += tile[threadIdx.x];  // fault: tile read that another one replaces
    } else if (kMistake != Mistake::no_wait) {
      total += tile[threadIdx.x];
    }
    const std::uint64_t operand =
        device::operand_descriptor(kLinesAre, device::shared_address(tiles) + static_cast<unsigned>(stage) * kBytes, 0);
    device::wgmma_fence();
    if (kMistake == Mistake::signals_early) {
      device::wgmma<Half, 128, kLinesAre, kLinesAre>(sums, operand, operand);  // fault: operands given up too early
    } else if (kMistake == Mistake::products_not_waited_for) {
      device::wgmma<Half, 128, kLinesAre, kLinesAre>(sums, operand, operand);  // fault: product that nobody waits for
      return;
    } else {
      device::wgmma<Half, 128, kLinesAre, kLinesAre>(sums, operand, operand);
    }
    device::wgmma_commit();
    if (kMistake != Mistake::signals_early || i == kTiles - 1) device::wgmma_wait<0>();
    __syncwarp();
    if (threadIdx.x % 32 == 0) used_up[stage].arrive();
  }
  if (kMistake == Mistake::few_at_named_barrier) {
    device::sync_named<160>(1);  // fault: named barrier for more threads than come
  }
  out[threadIdx.x] = total + sums[0][0];
}

constexpr unsigned kConsumers = 8;

/// Eight warps read what the ninth overwrites when all have given it up; one of them does so before it has read.
__global__ void gives_up_early(float* out) {
  TANDEM_SHARED(float, stage, [32]);
  TANDEM_SHARED(device::Mbarrier, used_up);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    used_up.init(kConsumers);
    device::publish_mbarriers();
  }
  if (warp == kConsumers) stage[lane] = static_cast<float>(lane);
  __syncthreads();
  if (warp == kConsumers) {
    used_up.wait(0);
    stage[lane] = 0.0f;
    return;
  }
  if (warp == 3 && lane == 0) used_up.arrive();
  out[threadIdx.x] = stage[lane];  // fault: stage given up before it is read
  __syncwarp();
  if (warp != 3 && lane == 0) used_up.arrive();
}

/// Barriers stand around the write, but they do not end the product that reads what is overwritten.
__global__ void overwrites_operand(float* out) {
  TANDEM_DYNAMIC_SHARED(unsigned char, shared);
  unsigned char* const tile = shared + device::padding_to_swizzle(device::shared_address(shared));
  for (unsigned at = threadIdx.x * 4; at < kBytes; at += 512) *reinterpret_cast<int*>(tile + at) = 0;
  __syncthreads();
  float sums[16][4] = {};
  const auto operand = device::operand_descriptor(kLinesAre, device::shared_address(tile), 0);
  device::wgmma_fence();
  device::wgmma<Half, 128, kLinesAre, kLinesAre>(sums, operand, operand);
  device::wgmma_commit();
  __syncthreads();
  reinterpret_cast<int*>(tile)[threadIdx.x] = 1;  // fault: operand overwritten between barriers
  __syncthreads();
  device::wgmma_wait<0>();
  out[threadIdx.x] = sums[0][0];
}

/// A thread that overwrites what its own product still reads: no other one reads this row.
__global__ void overwrites_own_operand(float* out) {
  TANDEM_DYNAMIC_SHARED(unsigned char, shared);
  unsigned char* const left = shared + device::padding_to_swizzle(device::shared_address(shared));
  unsigned char* const right = left + kBytes;
  for (unsigned at = threadIdx.x * 4; at < 2 * kBytes; at += 512) *reinterpret_cast<int*>(left + at) = 0;
  __syncthreads();
  float sums[16][4] = {};
  device::wgmma_fence();
  device::wgmma<Half, 128, kLinesAre, kLinesAre>(
      sums, device::operand_descriptor(kLinesAre, device::shared_address(left), 0),
      device::operand_descriptor(kLinesAre, device::shared_address(right), 0));
  device::wgmma_commit();
  if (threadIdx.x == 0) *reinterpret_cast<int*>(left) = 1;  // fault: own operand overwritten before the wait
  device::wgmma_wait<0>();
  out[threadIdx.x] = sums[0][0];
}

/// The thread that fetches a tile writes into it before it has arrived.
__global__ void writes_into_tile(const __grid_constant__ CUtensorMap map, float* out) {
  TANDEM_DYNAMIC_SHARED(unsigned char, shared);
  TANDEM_SHARED(device::Mbarrier, full);
  unsigned char* const tile = shared + device::padding_to_swizzle(device::shared_address(shared));
  if (threadIdx.x != 0) return;
  full.init(1);
  device::publish_mbarriers();
  full.arrive_and_expect(kBytes);
  full.copy_tile(tile, &map, 0, 0, 0, 0);
  tile[0] = 1;  // fault: tile written before it is there
  full.wait(0);
  *out = tile[0];
}

template <Mistake kMistake>
PlantedFault fault(const char* name, FaultKind kind, bool checked = true, bool may_read_too_early = false) {
  return {name,
          kind,
          [] {
            const DeviceBuffer<Half> in(zeros<Half>(kTiles * kLines * 64));
            const DeviceBuffer<float> out(128);
            launch(use_tiles<kMistake>, {1, kThreads, device::kSwizzledBytes + 2 * kStages * kBytes}, nullptr,
                   map_of_halves(in.data(), {64, kLines, 1, kTiles}, {64, kLines, 1, 1}), out.data());
          },
          checked,
          __FILE__,
          may_read_too_early};
}

const PlantFault faults[] = {
    PlantFault(fault<Mistake::no_wait>("tile read before it is there", FaultKind::async_copy, true, true)),
    PlantFault(fault<Mistake::no_room>("tile read that another one replaces", FaultKind::async_copy)),
    PlantFault(fault<Mistake::too_many_bytes>("more bytes than were announced", FaultKind::async_copy, false)),
    PlantFault(fault<Mistake::too_few_bytes>("fewer bytes come than were announced", FaultKind::deadlock, false)),
    PlantFault(fault<Mistake::no_barrier>("mbarrier used before others may see it", FaultKind::race, true, true)),
    PlantFault(fault<Mistake::not_initialised>("mbarrier that nobody initialised", FaultKind::uninitialised, false)),
    PlantFault(fault<Mistake::nobody_waits>("tile that nobody waits for", FaultKind::async_copy, false)),
    PlantFault(fault<Mistake::too_many_arrivals>("more arrivals than the mbarrier is for", FaultKind::barrier, false)),
    PlantFault(fault<Mistake::signals_early>("operands given up too early", FaultKind::race)),
    PlantFault(fault<Mistake::products_not_waited_for>("product that nobody waits for", FaultKind::async_copy, false)),
    PlantFault({"stage given up before it is read", FaultKind::race,
                [] {
                  const DeviceBuffer<float> out(32 * kConsumers);
                  launch(gives_up_early, {1, 32 * (kConsumers + 1)}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"operand overwritten between barriers", FaultKind::race,
                [] {
                  const DeviceBuffer<float> out(128);
                  launch(overwrites_operand, {1, 128, device::kSwizzledBytes + kBytes}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"own operand overwritten before the wait", FaultKind::race,
                [] {
                  const DeviceBuffer<float> out(128);
                  launch(overwrites_own_operand, {1, 128, device::kSwizzledBytes + 2 * kBytes}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"tile written before it is there", FaultKind::async_copy,
                [] {
                  const DeviceBuffer<Half> in(zeros<Half>(kTiles * kLines * 64));
                  const DeviceBuffer<float> out(128);
                  launch(writes_into_tile, {1, 32, device::kSwizzledBytes + kBytes}, nullptr,
                         map_of_halves(in.data(), {64, kLines, 1, kTiles}, {64, kLines, 1, 1}), out.data());
                },
                true, __FILE__}),
    PlantFault(
        fault<Mistake::few_at_named_barrier>("named barrier for more threads than come", FaultKind::deadlock, false)),
};

}  // namespace
}  // namespace tandem::test
