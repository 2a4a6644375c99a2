// The same with a planted race: the barrier of the loop is missing.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void block_sum(const float* in, float* out) {
  __shared__ float sums[128];
  const int t = threadIdx.x;
  sums[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  for (int distance = 64; distance > 0; distance /= 2) {
    if (t < distance) sums[t] += sums[t + distance];
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

int main() {
  float numbers[256], sums[2], *in, *out;
  for (int i = 0; i < 256; ++i) numbers[i] = i;
  cudaMalloc(&in, sizeof numbers);
  cudaMalloc(&out, sizeof sums);
  cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  block_sum<<<2, 128>>>(in, out);
  cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost);
  std::printf("%g %g\n", sums[0], sums[1]);
  return sums[0] == 8128 && sums[1] == 24512 ? 0 : 1;
}
