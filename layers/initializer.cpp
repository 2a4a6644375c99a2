// Drawing parameters.
#include "tandem/layers/initializer.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/describe.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"

#include <algorithm>
#include <cmath>

namespace tandem::layers {

namespace {

Tensor as_parameter(const Tensor& values) {
  const MemoryTagScope scope(MemoryTag::parameters);
  const Tensor parameter = values.rank() == 4 ? values.contiguous(Layout::channels_last) : values;
  parameter.storage()->set_tag(MemoryTag::parameters);
  return autograd::set_requires_grad(parameter);
}

}  // namespace

Tensor Initializer::uniform(const Shape& shape, double bound) {
  const RandomKey key{seed_, RandomStream::initialization, drawn_++};
  const MemoryTagScope scope(MemoryTag::parameters);
  const Tensor values = Tensor::empty(shape);
  float* const to = Out(values).data<float>();
  const std::int64_t count = values.numel();
  constexpr std::int64_t kGrain = 1 << 14;
  parallel_for((count + 3) / 4, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const auto words = key.block(static_cast<std::uint64_t>(block));
      for (std::int64_t i = 4 * block; i < std::min(4 * block + 4, count); ++i) {
        const double unit = RandomKey::to_uniform(words[static_cast<std::size_t>(i % 4)]);
        to[i] = static_cast<float>((2.0 * unit - 1.0) * bound);
      }
    }
  });
  return as_parameter(values);
}

Tensor Initializer::normal(const Shape& shape, double deviation) {
  const RandomKey key{seed_, RandomStream::initialization, drawn_++};
  const MemoryTagScope scope(MemoryTag::parameters);
  const Tensor values = Tensor::empty(shape);
  float* const to = Out(values).data<float>();
  constexpr std::int64_t kGrain = 1 << 12;
  parallel_for(values.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double normal = static_cast<double>(key.normal(static_cast<std::uint64_t>(i)));
      to[i] = static_cast<float>(normal * deviation);
    }
  });
  return as_parameter(values);
}

Tensor Initializer::kaiming_uniform(const Shape& shape, std::int64_t fan_in) {
  return uniform(shape, fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.0);
}

Tensor Initializer::constant(const Shape& shape, double value) { return as_parameter(Tensor::full(shape, value)); }

void set_identity_filters(const Tensor& weight) {
  require(weight.defined() && weight.rank() == 4,
          "set_identity_filters: needs the weight [K, C, R, S] of a convolution, got {}", weight);
  const std::int64_t filters = std::min(weight.size(0), weight.size(1));
  const Tensor plain = weight.detach();
  plain.narrow(0, 0, filters).zero();
  for (std::int64_t i = 0; i < filters; ++i)
    plain.select(0, i).select(0, i).select(0, weight.size(2) / 2).select(0, weight.size(3) / 2).fill(1.0);
}

void set_unit_deviation(const Tensor& weight) {
  require(weight.defined() && is_floating(weight.dtype()) && weight.numel() >= 2,
          "set_unit_deviation: needs a floating weight of two elements or more, got {}", describe(weight));
  const std::vector<double> values = weight.detach().to_vector<double>();
  const auto count = static_cast<double>(values.size());
  double mean = 0.0, squares = 0.0;
  for (const double value : values) mean += value / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (count - 1.0));
  require(std::isfinite(deviation) && deviation > 0.0,
          "set_unit_deviation: the standard deviation of {} is {}; draw the weight first", describe(weight), deviation);
  const autograd::NoGrad no_grad;
  weight.detach().copy_from(autograd::scale(weight.detach(), 1.0 / deviation));
}

Tensor Initializer::buffer(const Shape& shape, double value, DType dtype) {
  const MemoryTagScope scope(MemoryTag::parameters);
  return Tensor::full(shape, value, {.dtype = dtype});
}

}  // namespace tandem::layers
