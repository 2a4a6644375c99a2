// Random tensors, quickly.
#include "apps/conv_bench/workload.h"

#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/core/random.h"
#include "tandem/kernels/conv/implementations.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem::conv_bench {

namespace {

// Drawing each element would take longer than the measurement: a prime number of values is repeated, so that no two
// images, rows or tiles are the same.
constexpr std::size_t kDistinct = 1'048'573;

constexpr std::int64_t kGrain = 1 << 14;  // elements that are worth a thread

/// Values uniform in [-1, 1).
const std::vector<float>& random_values() {
  static const std::vector<float> values = [] {
    std::vector<float> drawn(kDistinct);
    const RandomKey key{.seed = 1, .stream = RandomStream::synthetic};
    for (std::size_t i = 0; i < kDistinct; ++i) drawn[i] = 2.0F * key.uniform(i) - 1.0F;
    return drawn;
  }();
  return values;
}

/// On the CPU, in memory order: from the `first`-th random value on, times `scale`.
Tensor random_tensor(const Shape& shape, DType dtype, std::size_t first, float scale = 1.0F) {
  const Tensor tensor = Tensor::empty(shape, {.dtype = dtype, .layout = Layout::channels_last});
  const std::vector<float>& values = random_values();
  dispatch_floating(dtype, "conv_bench", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const data = Out(tensor).data<T>();
    parallel_for(tensor.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::size_t at = (first + static_cast<std::size_t>(begin)) % kDistinct;
      for (std::int64_t i = begin; i < end; ++i) {
        data[i] = static_cast<T>(static_cast<compute_t<T>>(scale * values[at]));
        at = at + 1 == kDistinct ? 0 : at + 1;
      }
    });
  });
  return tensor;
}

constexpr std::size_t kFirstOfY = 500'000;

}  // namespace

Workload make_workload(const BenchLayer& layer, std::int64_t batch, DType dtype, Device device) {
  Workload made{.layer = layer, .batch = batch};
  const Shape y = kernels::conv2d_output_shape(layer.x(batch), layer.weight(), layer.options());
  const auto scale = static_cast<float>(std::sqrt(3.0 / static_cast<double>(layer.c * layer.r * layer.s)));
  made.x = random_tensor(layer.x(batch), dtype, 0).to(device);
  made.w = random_tensor(layer.weight(), dtype, 100'000, scale).to(device);
  made.bias = random_tensor({layer.k}, dtype, 200'000).to(device);
  made.grad_y = random_tensor(y, dtype, 300'000).to(device);
  made.y = Tensor::empty(y, {dtype, Layout::channels_last, device});
  made.mask = Tensor::empty(kernels::conv_mask_shape(y), {.dtype = DType::u8, .device = device});
  if (!layer.is_first) made.grad_x = empty_like(made.x);
  made.grad_w = empty_like(made.w);
  made.grad_bias = empty_like(made.bias);
  made.grad_z = empty_like(made.grad_y);
  const Tensor first_y = random_tensor(y, dtype, kFirstOfY);
  const Tensor first_mask = Tensor::empty(made.mask.shape(), {.dtype = DType::u8});
  sign_mask_by_threads(first_y, first_mask);
  made.first_y = first_y.to(device);
  made.first_mask = first_mask.to(device);
  restore_forward_results(made);
  return made;
}

void restore_forward_results(const Workload& workload) {
  workload.y.detach().copy_from(workload.first_y);  // it may be on the tape
  workload.mask.copy_from(workload.first_mask);
}

void sign_mask_by_threads(const Tensor& y, const Tensor& mask) {
  const Tensor flat = y.as_strided({y.numel()}, {1}, y.offset());
  parallel_for(mask.numel(), kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = 8 * begin, last = std::min(8 * end, y.numel());
    kernels::reference::sign_mask(flat.narrow(0, first, last - first), Out(mask.narrow(0, begin, end - begin)));
  });
}

}  // namespace tandem::conv_bench
