// How batch normalisation turns x into y, per channel: forward and backward share it, so that they agree on the sign
// of y to the last bit.
#pragma once

#include "tandem/kernels/device/any_floats.h"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/norm/channel_grid.cuh"

namespace tandem::kernels::cuda {

/// The [C] tensors behind it; weight and bias may be absent.
struct ChannelParameters {
  device::AnyFloats mean, inverse_std, weight, bias;
};

/// y = (x - mean) * scale + bias for the channels of one thread; scale = weight * inverse_std.
template <int kWidth>
struct ChannelTransform {
  device::Vector<float, kWidth> mean, scale, bias;

  __device__ float operator()(float x, int v) const { return fmaf(x - mean[v], scale[v], bias[v]); }
};

/// Brings a value per channel to every thread: value_of(channel) is called once for each channel of the block's tile,
/// by neighbouring threads for neighbouring channels. All threads must call it; `tile` is shared memory.
template <int kWidth, typename ValueOf>
__device__ void stage_channels(const ChannelGrid& grid, const ChannelPlace& place,
                               device::Vector<float, kWidth> (&tile)[kMostLanes], ValueOf&& value_of) {
  const int first = place.tile * grid.lanes * kWidth;
  for (int i = static_cast<int>(threadIdx.x); i < grid.lanes * kWidth && first + i < grid.channels; i += kThreads) {
    tile[i / kWidth].values[i % kWidth] = value_of(first + i);
  }
}

/// The transform of this thread's channels. All threads must call it; it ends with a barrier.
template <int kWidth>
__device__ ChannelTransform<kWidth> load_transform(const ChannelGrid& grid, const ChannelPlace& place,
                                                   const ChannelParameters& parameters) {
  using Values = device::Vector<float, kWidth>;
  TANDEM_SHARED(Values, means, [kMostLanes]);
  TANDEM_SHARED(Values, scales, [kMostLanes]);
  TANDEM_SHARED(Values, biases, [kMostLanes]);
  stage_channels<kWidth>(grid, place, means, [&](int c) { return static_cast<float>(parameters.mean.load(c)); });
  stage_channels<kWidth>(grid, place, scales, [&](int c) {
    return static_cast<float>(parameters.weight.load(c, 1.0) * parameters.inverse_std.load(c));
  });
  stage_channels<kWidth>(grid, place, biases, [&](int c) { return static_cast<float>(parameters.bias.load(c)); });
  __syncthreads();
  if (place.channel >= grid.channels) return {};
  return {device::load_vector<kWidth>(means[place.lane].values), device::load_vector<kWidth>(scales[place.lane].values),
          device::load_vector<kWidth>(biases[place.lane].values)};
}

}  // namespace tandem::kernels::cuda
