// Planted faults: wrong addresses, and memory that nobody wrote.
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/device/vector.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/planted_fault.h"

namespace tandem::test {
namespace {

using simulator::FaultKind;
constexpr int kThreads = 64;

__global__ void write_past_end(float* out, int count) {
  const int t = static_cast<int>(threadIdx.x);
  if (t <= count) out[t] = 1.0f;  // fault: write past the end
}

__global__ void read_before_start(const float* in, float* out) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = in[t - 1];  // fault: read before the start
}

__global__ void shared_past_end(float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  tile[t + 1] = 1.0f;  // fault: shared array too short
  __syncthreads();
  out[t] = tile[t];
}

__global__ void dynamic_shared_past_end() {
  TANDEM_DYNAMIC_SHARED(int, buffer);
  buffer[threadIdx.x] = 1;  // fault: dynamic shared memory too small
}

__global__ void read_one(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x];  // fault: freed memory is read
}

__global__ void use_host_pointer(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x];  // fault: host pointer
}

__global__ void pointer_to_local(int* out) {
  TANDEM_SHARED(int*, shared_pointer);
  int local = static_cast<int>(threadIdx.x);
  if (threadIdx.x == 0) shared_pointer = &local;
  __syncthreads();
  out[threadIdx.x] = *shared_pointer;  // fault: local variable of another thread
}

__global__ void uninitialised_global(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;  // fault: global memory nobody wrote
}

__global__ void uninitialised_shared(float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  if (t < kThreads - 1) tile[t] = 0.0f;
  __syncthreads();
  out[t] = tile[t];  // fault: shared memory nobody wrote
}

__global__ void left_from_last_block(float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0) tile[t] = 1.0f;
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = tile[t];  // fault: shared memory of another block
}

__global__ void misaligned_vector(const float* in, float* out) {
  const auto v = device::load_vector<4>(in + 1);  // fault: vector at an odd address
  out[threadIdx.x] = v[0];
}

#ifndef __SANITIZE_ADDRESS__  // UndefinedBehaviorSanitizer sees it first, and ends the program
__global__ void misaligned_cast(const float* in, float* out) {
  const float2 pair = reinterpret_cast<const float2*>(in + 1)[threadIdx.x];  // fault: cast to a wider type
  out[threadIdx.x] = pair.x + pair.y;
}
#endif

__global__ void misaligned_rows(const std::uint16_t* in, unsigned* out) {
  TANDEM_SHARED(std::uint16_t, tile, [32 * 9]);
  for (int i = static_cast<int>(threadIdx.x); i < 32 * 9; i += 32) tile[i] = in[i];
  __syncwarp();
  std::uint32_t registers[4];
  device::ldmatrix_x4(registers, &tile[threadIdx.x * 9]);  // fault: rows of 18 bytes
  out[threadIdx.x] = registers[0];
}

__global__ void atomic_past_end(int* count) {
  atomicAdd(count + threadIdx.x, 1);  // fault: atomic past the end
}

__global__ void memcpy_past_end(const float* in, float* out) {
  const int t = static_cast<int>(threadIdx.x);
  memcpy(out + t * 3, in + t * 3, 3 * sizeof(float));  // fault: memcpy past the end
}

__global__ void memcpy_uninitialised(const float* in, float* out, int bytes) {
  const int t = static_cast<int>(threadIdx.x);
  memcpy(out + t, in + t, static_cast<std::size_t>(bytes));  // fault: memcpy of what nobody wrote
}

struct Row {
  float numbers[12];
};

__global__ void struct_past_end(const Row* in, Row* out) {
  out[threadIdx.x] = in[threadIdx.x];  // fault: struct copied past the end
}

template <typename T>
PlantedFault fault(const char* name, FaultKind kind, void (*kernel)(T*), std::size_t elements, bool checked = true,
                   unsigned blocks = 1) {
  return {name, kind,
          [=] {
            const DeviceBuffer<T> out(elements);
            launch(kernel, {blocks, kThreads}, nullptr, out.data());
          },
          checked, __FILE__};
}

const PlantFault faults[] = {
    PlantFault({"write past the end", FaultKind::out_of_bounds,
                [] {
                  const DeviceBuffer<float> out(50);
                  launch(write_past_end, {1, kThreads}, nullptr, out.data(), 50);
                },
                true, __FILE__}),
    PlantFault({"read before the start", FaultKind::out_of_bounds,
                [] {
                  const DeviceBuffer<float> in(zeros<float>(kThreads)), out(kThreads);
                  launch(read_before_start, {1, kThreads}, nullptr, in.data(), out.data());
                },
                true, __FILE__}),
    PlantFault(fault("shared array too short", FaultKind::out_of_bounds, shared_past_end, kThreads)),
    PlantFault({"dynamic shared memory too small", FaultKind::out_of_bounds,
                [] { launch(dynamic_shared_past_end, {1, kThreads, 50 * sizeof(int)}, nullptr); }, true, __FILE__}),
    PlantFault({"freed memory is read", FaultKind::out_of_bounds,
                [] {
                  const DeviceBuffer<int> out(kThreads);
                  int* in = nullptr;
                  {
                    const DeviceBuffer<int> gone(std::vector<int>(kThreads, 1));
                    in = gone.data();
                  }
                  launch(read_one, {1, kThreads}, nullptr, in, out.data());
                },
                true, __FILE__}),
    PlantFault({"host pointer", FaultKind::host_pointer,
                [] {
                  const std::vector<int> in(kThreads);
                  const DeviceBuffer<int> out(kThreads);
                  launch(use_host_pointer, {1, kThreads}, nullptr, in.data(), out.data());
                },
                true, __FILE__}),
    PlantFault(fault("local variable of another thread", FaultKind::host_pointer, pointer_to_local, kThreads)),
    PlantFault({"global memory nobody wrote", FaultKind::uninitialised,
                [] {
                  const DeviceBuffer<int> in(kThreads), out(kThreads);
                  launch(uninitialised_global, {1, kThreads}, nullptr, in.data(), out.data());
                },
                true, __FILE__}),
    PlantFault(fault("shared memory nobody wrote", FaultKind::uninitialised, uninitialised_shared, kThreads)),
    PlantFault(
        fault("shared memory of another block", FaultKind::uninitialised, left_from_last_block, 2 * kThreads, true, 2)),
    PlantFault({"memcpy past the end", FaultKind::out_of_bounds,
                [] {
                  const DeviceBuffer<float> in(zeros<float>(3 * kThreads)), out(3 * kThreads - 1);
                  launch(memcpy_past_end, {1, kThreads}, nullptr, in.data(), out.data());
                },
                true, __FILE__}),
    PlantFault({"memcpy of what nobody wrote", FaultKind::uninitialised,
                [] {
                  const DeviceBuffer<float> in(kThreads), out(kThreads);
                  launch(memcpy_uninitialised, {1, kThreads}, nullptr, in.data(), out.data(), 4);
                },
                true, __FILE__}),
    PlantFault({"struct copied past the end", FaultKind::out_of_bounds,
                [] {
                  const DeviceBuffer<Row> in(zeros<Row>(kThreads)), out(kThreads - 1);
                  launch(struct_past_end, {1, kThreads}, nullptr, in.data(), out.data());
                },
                true, __FILE__}),
    PlantFault({"vector at an odd address", FaultKind::misaligned,
                [] {
                  const DeviceBuffer<float> in(zeros<float>(8)), out(kThreads);
                  launch(misaligned_vector, {1, kThreads}, nullptr, in.data(), out.data());
                },
                false, __FILE__}),
#ifndef __SANITIZE_ADDRESS__
    PlantFault({"cast to a wider type", FaultKind::misaligned,
                [] {
                  const DeviceBuffer<float> in(zeros<float>(2 * kThreads + 2)), out(kThreads);
                  launch(misaligned_cast, {1, kThreads}, nullptr, in.data(), out.data());
                },
                false, __FILE__}),
#endif
    PlantFault({"rows of 18 bytes", FaultKind::misaligned,
                [] {
                  const DeviceBuffer<std::uint16_t> in(zeros<std::uint16_t>(32 * 9));
                  const DeviceBuffer<unsigned> out(32);
                  launch(misaligned_rows, {1, 32}, nullptr, in.data(), out.data());
                },
                false, __FILE__}),
    PlantFault({"atomic past the end", FaultKind::out_of_bounds,
                [] {
                  const DeviceBuffer<int> count(zeros<int>(kThreads - 1));
                  launch(atomic_past_end, {1, kThreads}, nullptr, count.data());
                },
                true, __FILE__}),
    PlantFault({"copy past the end", FaultKind::out_of_bounds,
                [] {
                  const DeviceBuffer<int> in(kThreads);
                  const std::vector<int> values(kThreads + 1);
                  // fault: copy past the end
                  cudaMemcpy(in.data(), values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice);
                },
                false, __FILE__}),
    PlantFault({"copy of memory nobody wrote", FaultKind::uninitialised,
                [] {
                  const DeviceBuffer<int> out(kThreads);
                  std::vector<int> values(kThreads);
                  // fault: copy of memory nobody wrote
                  cudaMemcpy(values.data(), out.data(), kThreads * sizeof(int), cudaMemcpyDeviceToHost);
                },
                true, __FILE__}),
};

}  // namespace
}  // namespace tandem::test
