// Adds up eight numbers in one block, and prints each turn of a thread: what the picture of the turns is drawn from.
// With any argument the barrier of the loop is left out, and the simulator ends the launch.
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kThreads = 8;

/// "thread barrier action word": how many barriers the thread has passed, and which word of `sums` it reads or writes.
__device__ void note(int barrier, const char* action, int word) {
  std::printf("%d %d %s %d\n", static_cast<int>(threadIdx.x), barrier, action, word);
}

__global__ void block_sum(const float* in, float* out, bool has_barrier) {
  __shared__ float sums[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  int barrier = 0;
  note(barrier, "writes", t);
  sums[t] = in[t];
  __syncthreads();
  ++barrier;
  for (int distance = kThreads / 2; distance > 0; distance /= 2) {
    if (t < distance) {
      note(barrier, "reads", t + distance);
      const float other = sums[t + distance];
      note(barrier, "writes", t);
      sums[t] += other;
    }
    if (has_barrier) {  // for all threads or for none
      __syncthreads();
      ++barrier;
    }
  }
  if (t == 0) out[0] = sums[0];
}

int main(int argc, char**) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // a fault ends the process
  float numbers[kThreads], sum = 0.0f, *in = nullptr, *out = nullptr;
  for (int i = 0; i < kThreads; ++i) numbers[i] = static_cast<float>(i);
  cudaMalloc(&in, sizeof numbers);
  cudaMalloc(&out, sizeof sum);
  cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  block_sum<<<1, kThreads>>>(in, out, argc == 1);
  cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost);
  std::printf("sum %g\n", sum);
  return sum == 28.0f ? 0 : 1;
}
