// Planted faults: threads that touch the same memory with nothing to order them.
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/shared.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/planted_fault.h"

namespace tandem::test {
namespace {

using simulator::FaultKind;
constexpr int kThreads = 64;

__global__ void read_after_write(float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = static_cast<float>(t);
  out[t] = tile[kThreads - 1 - t];  // fault: barrier missing before a read
}

__global__ void write_after_read(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int step = 0; step < 2; ++step) {
    tile[t] = in[step * kThreads + t];  // fault: barrier missing before the next write
    __syncthreads();
    sum += tile[kThreads - 1 - t];
  }
  out[t] = sum;
}

__global__ void write_after_write(int* out) {
  TANDEM_SHARED(int, last);
  last = static_cast<int>(threadIdx.x);  // fault: all threads write one variable
  __syncthreads();
  out[threadIdx.x] = last;
}

__global__ void missing_syncwarp(int* out) {
  TANDEM_SHARED(int, value);
  if (threadIdx.x == 0) value = 7;
  out[threadIdx.x] = value;  // fault: __syncwarp missing
}

__global__ void shuffle_is_no_fence(int* out) {
  TANDEM_SHARED(int, tile, [32]);
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = t;
  const int other = __shfl_xor_sync(0xffffffffu, t, 1);
  out[t] = tile[other];  // fault: a shuffle does not order memory
}

__global__ void partial_syncwarp(int* out) {
  TANDEM_SHARED(int, tile, [32]);
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = t;
  __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
  out[t] = tile[31 - t];  // fault: only half of the warp was synchronised
}

__global__ void lane_left_out(int* out) {
  TANDEM_SHARED(int, value);
  const unsigned t = threadIdx.x;
  if (t == 0) value = 5;
  __syncwarp();
  out[t] = value;
  if (t != 7) __syncwarp(~(1u << 7));
  if (t == 0) value = 6;  // fault: a lane that was not synchronised reads
}

__global__ void memset_without_barrier(int* out) {
  TANDEM_SHARED(int, tile, [kThreads * 3]);
  const int t = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 3; ++i) tile[i * kThreads + t] = 1;
  __syncthreads();
  memset(&tile[t * 3], 0, 3 * sizeof(int));
  out[t] = tile[(t * 3 + 3) % (kThreads * 3)];  // fault: barrier missing after memset
}

/// Overwrites what others still read; how many bytes, only the caller knows.
__global__ void memcpy_without_barrier(int* data, int bytes) {
  const int t = static_cast<int>(threadIdx.x);
  memcpy(data + t * 2, data + t * 2 + 2, static_cast<std::size_t>(bytes));  // fault: barrier missing between memcpys
}

__global__ void flag_without_fence(int* out) {
  TANDEM_SHARED(int, flag);
  TANDEM_SHARED(int, data);
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data = 42;
    atomicExch(&flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd(&flag, 0) == 0) {
    }
    __threadfence_block();
    *out = data;  // fault: fence missing before the flag
  }
}

__global__ void fence_of_another_lane(int* out) {
  TANDEM_SHARED(int, flag);
  TANDEM_SHARED(int, data);
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data = 42;
    __threadfence_block();
    atomicExch(&flag, 1);
  } else if (threadIdx.x >= 32) {
    if (threadIdx.x == 32) {
      while (atomicAdd(&flag, 0) == 0) {
      }
    }
    __syncwarp();
    if (threadIdx.x == 33) __threadfence_block();
    if (threadIdx.x == 34) *out = data;  // fault: only another lane has a fence behind the flag
  }
}

__global__ void two_blocks_one_cell(int* out) {
  if (threadIdx.x == 0) out[0] = static_cast<int>(blockIdx.x);  // fault: two blocks write one cell
}

__global__ void block_reads_block(int* out) {
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = 1;
  out[2 + blockIdx.x] = out[1 - blockIdx.x];  // fault: a block reads what another writes
}

__global__ void plain_read_of_atomic(int* count, int* out) {
  atomicAdd(count, 1);
  out[threadIdx.x] = *count;  // fault: plain read beside atomics
}

__global__ void global_without_barrier(int* data) {
  const int t = static_cast<int>(threadIdx.x);
  data[t] = t;
  data[kThreads + t] = data[kThreads - 1 - t];  // fault: barrier missing in global memory
}

__global__ void half_words(unsigned short* data) {
  const int t = static_cast<int>(threadIdx.x);
  data[t / 2] = static_cast<unsigned short>(t);  // fault: two threads write one half word
}

__global__ void fill(int* data, int value) { data[threadIdx.x] = value; }
__global__ void add_one(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;  // fault: stream reads without an event
}
__global__ void add_two(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x] + 2; }
__global__ void add_three(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x] + 3;  // fault: a destroyed stream is taken for a finished one
}
__global__ void add_four(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x] + 4;  // fault: only the default stream waits for others
}
__global__ void overwrite(int* data) {
  data[threadIdx.x] = 0;  // fault: stream overwrites what one of three others reads
}

/// Three streams read; a fourth one writes when two of them are done.
void overwrite_after_two_of_three() {
  const DeviceBuffer<int> in(zeros<int>(kThreads)), out(3 * kThreads);
  cudaStream_t streams[4] = {};
  for (cudaStream_t& stream : streams) TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 3; ++i) {
    launch(add_two, {1, kThreads}, streams[i], in.data(), out.data() + i * kThreads);
    cudaEvent_t done = nullptr;
    TANDEM_CHECK_CUDA(cudaEventCreate(&done));
    TANDEM_CHECK_CUDA(cudaEventRecord(done, streams[i]));
    if (i != 1) TANDEM_CHECK_CUDA(cudaStreamWaitEvent(streams[3], done));
    TANDEM_CHECK_CUDA(cudaEventDestroy(done));
  }
  launch(overwrite, {1, kThreads}, streams[3], in.data());
  cudaDeviceSynchronize();
}

const PlantFault faults[] = {
    PlantFault({"barrier missing before a read", FaultKind::race,
                [] {
                  const DeviceBuffer<float> out(kThreads);
                  launch(read_after_write, {1, kThreads}, nullptr, out.data());
                },
                true, __FILE__, true}),
    PlantFault({"barrier missing before the next write", FaultKind::race,
                [] {
                  const DeviceBuffer<float> in(std::vector<float>(2 * kThreads, 1.0f)), out(kThreads);
                  launch(write_after_read, {1, kThreads}, nullptr, in.data(), out.data());
                },
                true, __FILE__}),
    PlantFault({"all threads write one variable", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(kThreads);
                  launch(write_after_write, {1, kThreads}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"__syncwarp missing", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(32);
                  launch(missing_syncwarp, {1, 32}, nullptr, out.data());
                },
                true, __FILE__, true}),
    PlantFault({"a shuffle does not order memory", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(32);
                  launch(shuffle_is_no_fence, {1, 32}, nullptr, out.data());
                },
                true, __FILE__, true}),
    PlantFault({"only half of the warp was synchronised", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(32);
                  launch(partial_syncwarp, {1, 32}, nullptr, out.data());
                },
                true, __FILE__, true}),
    PlantFault({"a lane that was not synchronised reads", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(32);
                  launch(lane_left_out, {1, 32}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"barrier missing after memset", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(kThreads);
                  launch(memset_without_barrier, {1, kThreads}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"barrier missing between memcpys", FaultKind::race,
                [] {
                  const DeviceBuffer<int> data(zeros<int>(2 * kThreads + 2));
                  launch(memcpy_without_barrier, {1, kThreads}, nullptr, data.data(), 8);
                },
                true, __FILE__}),
    PlantFault({"fence missing before the flag", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(1);
                  launch(flag_without_fence, {1, kThreads}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"only another lane has a fence behind the flag", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(1);
                  launch(fence_of_another_lane, {1, 64}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"two blocks write one cell", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(1);
                  launch(two_blocks_one_cell, {2, 32}, nullptr, out.data());
                },
                true, __FILE__}),
    PlantFault({"a block reads what another writes", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(zeros<int>(4));
                  launch(block_reads_block, {2, 32}, nullptr, out.data());
                },
                true, __FILE__, true}),
    PlantFault({"plain read beside atomics", FaultKind::race,
                [] {
                  const DeviceBuffer<int> count(zeros<int>(1)), out(kThreads);
                  launch(plain_read_of_atomic, {1, kThreads}, nullptr, count.data(), out.data());
                },
                true, __FILE__}),
    PlantFault({"barrier missing in global memory", FaultKind::race,
                [] {
                  const DeviceBuffer<int> data(2 * kThreads);
                  launch(global_without_barrier, {1, kThreads}, nullptr, data.data());
                },
                true, __FILE__, true}),
    PlantFault({"two threads write one half word", FaultKind::race,
                [] {
                  const DeviceBuffer<unsigned short> data(kThreads);
                  launch(half_words, {1, kThreads}, nullptr, data.data());
                },
                true, __FILE__}),
    PlantFault({"stream reads without an event", FaultKind::race,
                [] {
                  const DeviceBuffer<int> in(kThreads), out(kThreads);
                  cudaStream_t first = nullptr, second = nullptr;
                  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
                  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
                  launch(fill, {1, kThreads}, first, in.data(), 3);
                  launch(add_one, {1, kThreads}, second, in.data(), out.data());
                  cudaDeviceSynchronize();
                },
                true, __FILE__, true}),
    PlantFault({"a destroyed stream is taken for a finished one", FaultKind::race,
                [] {
                  const DeviceBuffer<int> in(kThreads), out(kThreads);
                  cudaStream_t first = nullptr, second = nullptr;
                  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
                  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
                  launch(fill, {1, kThreads}, first, in.data(), 3);
                  TANDEM_CHECK_CUDA(cudaStreamDestroy(first));
                  launch(add_three, {1, kThreads}, second, in.data(), out.data());
                  cudaDeviceSynchronize();
                },
                true, __FILE__, true}),
    PlantFault({"only the default stream waits for others", FaultKind::race,
                [] {
                  const DeviceBuffer<int> in(kThreads), out(kThreads);
                  cudaStream_t first = nullptr, second = nullptr;
                  TANDEM_CHECK_CUDA(cudaStreamCreate(&first));
                  TANDEM_CHECK_CUDA(cudaStreamCreate(&second));
                  launch(fill, {1, kThreads}, first, in.data(), 3);
                  launch(add_four, {1, kThreads}, second, in.data(), out.data());
                  cudaDeviceSynchronize();
                },
                true, __FILE__, true}),
    PlantFault({"stream overwrites what one of three others reads", FaultKind::race, overwrite_after_two_of_three, true,
                __FILE__}),
    PlantFault({"copy overwrites what a kernel reads on another stream", FaultKind::race,
                [] {
                  const DeviceBuffer<int> in(zeros<int>(kThreads)), out(kThreads);
                  const std::vector<int> fresh(kThreads, 1);
                  cudaStream_t first = nullptr, second = nullptr;
                  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
                  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
                  launch(add_one, {1, kThreads}, first, in.data(), out.data());
                  // fault: copy overwrites what a kernel reads on another stream
                  cudaMemcpyAsync(in.data(), fresh.data(), kThreads * sizeof(int), cudaMemcpyHostToDevice, second);
                  cudaDeviceSynchronize();
                },
                true, __FILE__}),
    PlantFault({"memory is freed while another stream uses it", FaultKind::race,
                [] {
                  const DeviceBuffer<int> out(kThreads);
                  cudaStream_t first = nullptr, second = nullptr;
                  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
                  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
                  void* memory = nullptr;
                  TANDEM_CHECK_CUDA(cudaMallocAsync(&memory, kThreads * sizeof(int), first));
                  launch(fill, {1, kThreads}, first, static_cast<int*>(memory), 3);
                  cudaFreeAsync(memory, second);  // fault: memory is freed while another stream uses it
                  cudaDeviceSynchronize();
                },
                true, __FILE__}),
};

}  // namespace
}  // namespace tandem::test
