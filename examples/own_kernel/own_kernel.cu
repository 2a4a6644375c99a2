// A CUDA kernel of one's own, on the tape: each number becomes a weighted mean of itself and its two neighbours.
#include <cuda_runtime.h>
#include <tandem/tandem.h>
using namespace tandem;

constexpr int kThreads = 128;

/// y[i] = x[i-1] / 4 + x[i] / 2 + x[i+1] / 4, where x is 0 beyond its ends.
__global__ void smooth_kernel(const float* x, float* y, int count) {
  __shared__ float tile[kThreads + 2];  // what the block needs of x: one neighbour more at each end
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
  tile[t + 1] = i < count ? x[i] : 0;
  if (t == 0) tile[0] = i > 0 ? x[i - 1] : 0;
  if (t == kThreads - 1) tile[kThreads + 1] = i + 1 < count ? x[i + 1] : 0;
  __syncthreads();
  if (i < count) y[i] = tile[t] / 4 + tile[t + 1] / 2 + tile[t + 2] / 4;
}

Tensor launch(const Tensor& x) {
  const Tensor y = Tensor::empty(x.shape(), x.options());
  const int count = static_cast<int>(x.numel()), blocks = (count + kThreads - 1) / kThreads;
  const auto stream = static_cast<cudaStream_t>(current_stream(x.device()).native());
  smooth_kernel<<<blocks, kThreads, 0, stream>>>(x.data<float>(), Out(y).data<float>(), count);
  require(cudaGetLastError() == cudaSuccess, "smooth: the kernel was not launched");
  return y;
}

Tensor smooth(const Tensor& x) {
  require(x.device().type == DeviceType::cuda && x.is_dense(Layout::row_major), "smooth: needs dense CUDA x, got {}",
          x);
  const auto backward = [](const autograd::BackwardContext& context) {
    return std::vector<Tensor>{launch(context.grad_output().contiguous())};
  };
  return autograd::record("smooth", {x}, launch(x), backward);
}

int main() {
  std::vector<float> numbers(300), expected(300), slopes(300, 1.0f);
  for (int i = 0; i < 300; ++i) numbers[i] = static_cast<float>(i * i % 17);
  for (int i = 0; i < 300; ++i)
    expected[i] = (i > 0 ? numbers[i - 1] : 0) / 4 + numbers[i] / 2 + (i < 299 ? numbers[i + 1] : 0) / 4;
  slopes.front() = slopes.back() = 0.75f;  // every number counts 1/4 + 1/2 + 1/4 times, but at the ends

  const Tensor x = autograd::set_requires_grad(Tensor::from(numbers, {300}).to({DeviceType::cuda}));
  const Tensor y = smooth(x);
  autograd::backward(autograd::sum(y));
  const bool forward = y.to_vector<float>() == expected, backward = autograd::grad(x).to_vector<float>() == slopes;
  fmt::print("forward {}, backward {}\n", forward ? "right" : "wrong", backward ? "right" : "wrong");
  return forward && backward ? 0 : 1;
}
