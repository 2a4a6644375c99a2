// augment_images on CUDA: the whole way from stored bytes to normalised pixels in one kernel, one block per image.
#include "tandem/kernels/augment/augment_images_implementations.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/augment/augment_pixel.cuh"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/reduce.h"

#include <limits>

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = device::kThreadsPerBlock;

struct SourceImages {
  const std::uint8_t* bytes;
  int channels, height, width;
  BorderMode border;
};

template <typename T>
struct OutputImages {
  T* data;
  std::int64_t steps[4];

  __device__ T& at(int n, int c, int h, int w) const {
    return data[n * steps[0] + c * steps[1] + h * steps[2] + w * steps[3]];
  }
};

/// The mean grey of an image before its change of contrast; the same in all threads of the block.
template <bool kRgb>
__device__ float mean_grey(const AugmentedImage& image, int channels) {
  const int pixels = image.height * image.width;
  const float share = 1.0f / static_cast<float>(channels), units = detail::grey_units(pixels);
  long long sum = 0;
  for (int pixel = static_cast<int>(threadIdx.x); pixel < pixels; pixel += kThreads) {
    const int y = pixel / image.width, x = pixel - y * image.width;
    if constexpr (kRgb) {
      float rgb[3];
      for (int c = 0; c < 3; ++c) rgb[c] = image.sample(c, y, x);
      adjust_color(rgb, image.task, 0.0f, true);
      sum += detail::to_grey_units(grey(rgb), units);
    } else {
      float of_pixel = 0.0f;
      for (int c = 0; c < channels; ++c) {
        float value[1] = {image.sample(c, y, x)};
        adjust_color(value, image.task, 0.0f, true);
        of_pixel += value[0];
      }
      sum += detail::to_grey_units(of_pixel * share, units);
    }
  }
  return detail::mean_of_grey_units(device::block_sum<kThreads>(sum), units, pixels);
}

/// kValues neighbouring channels of one pixel, as they are written.
template <int kValues>
__device__ void compute(const AugmentedImage& image, const ChannelAffine* affines, float mean, int y, int x, int first,
                        float (&values)[kValues]) {
#pragma unroll
  for (int i = 0; i < kValues; ++i) values[i] = image.sample(first + i, y, x);
  if (image.task.changes_color) adjust_color(values, image.task, mean, false);
  const bool cut = image.is_cut(y, x);
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    const ChannelAffine affine = affines[first + i];
    const float normalised = values[i] * (image.mixes() ? affine.unit_scale : affine.byte_scale) + affine.bias;
    values[i] = cut ? 0.0f : (normalised + image.task.offset) * image.task.gain;
  }
}

/// A block reads pixels plane by plane, neighbouring threads neighbouring pixels, and writes them channel by channel:
/// the tile in shared memory turns one order into the other. Its planes are `pitch` apart so that both are free of bank
/// conflicts.
template <typename T, bool kRgb>
__global__ void augment(SourceImages source, const ImageTask* tasks, const ChannelAffine* affines,
                        OutputImages<T> out) {
  constexpr int kMostChannels = kRgb ? 3 : 8;
  TANDEM_SHARED(float, tile, [kMostChannels * (kThreads + device::kWarpThreads)]);
  const int n = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int pixels = source.height * source.width;
  AugmentedImage image{source.bytes, source.height, source.width, source.border, tasks[n]};
  image.bytes += image.task.index * source.channels * pixels;
  const float mean = image.task.contrast != 1.0f ? mean_grey<kRgb>(image, source.channels) : 0.0f;

  for (int start = 0; start < pixels; start += kThreads) {
    for (int first = 0; first < source.channels; first += kMostChannels) {
      const int channels = kRgb ? 3 : min(kMostChannels, source.channels - first);
      const int pitch = kThreads + (device::kWarpThreads + channels - 1) / channels;
      const int y = (start + thread) / source.width, x = start + thread - y * source.width;
      if (y < source.height) {
        if constexpr (kRgb) {
          float rgb[3];
          compute(image, affines, mean, y, x, 0, rgb);
          for (int c = 0; c < 3; ++c) tile[c * pitch + thread] = rgb[c];
        } else {
          for (int c = 0; c < channels; ++c) {
            float value[1];
            compute(image, affines, mean, y, x, first + c, value);
            tile[c * pitch + thread] = value[0];
          }
        }
      }
      __syncthreads();
      const int count = min(kThreads, pixels - start) * channels;
      for (int i = thread; i < count; i += kThreads) {
        const int pixel = i / channels, c = i - pixel * channels;
        const int row = (start + pixel) / source.width, column = start + pixel - row * source.width;
        out.at(n, first + c, row, column) = device::from_float<T>(tile[c * pitch + pixel]);
      }
      __syncthreads();
    }
  }
}

}  // namespace

PlannedImages plan_images(const Tensor& source, std::span<const std::int64_t> indices,
                          std::span<const ImageAugment> augments, const AugmentImagesOptions& options) {
  return {upload_tasks(indices, augments, options, source.device()), static_cast<std::int64_t>(indices.size()),
          options.border};
}

void make_images(const Tensor& source, const PlannedImages& plan, const Out& out) {
  const std::int64_t channels = source.size(1), pixels = source.size(2) * source.size(3);
  require(channels * pixels < std::numeric_limits<std::int32_t>::max() - kThreads,
          "augment_images: images of {} values are too large for a CUDA device", channels * pixels);
  const auto* const tasks = static_cast<const ImageTask*>(plan.memory.raw_data());
  const auto* const affines = reinterpret_cast<const ChannelAffine*>(tasks + plan.count);
  device::dispatch(out.dtype(), "augment_images", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const SourceImages images{source.data<std::uint8_t>(), static_cast<int>(channels), static_cast<int>(source.size(2)),
                              static_cast<int>(source.size(3)), plan.border};
    const OutputImages<T> to{out.data<T>(), {out.stride(0), out.stride(1), out.stride(2), out.stride(3)}};
    launch(channels == 3 ? augment<T, true> : augment<T, false>, {static_cast<unsigned>(plan.count), kThreads},
           tandem::cuda::current_stream(out), images, tasks, affines, to);
  });
}

void augment_images(const Tensor& source, std::span<const std::int64_t> indices, std::span<const ImageAugment> augments,
                    const AugmentImagesOptions& options, const Out& out) {
  cuda::make_images(source, cuda::plan_images(source, indices, augments, options), out);
}

}  // namespace tandem::kernels::cuda
