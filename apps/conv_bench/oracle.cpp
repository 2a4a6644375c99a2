// The reference on parts of a batch, and bounds on errors.
#include "apps/conv_bench/oracle.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/core/error.h"
#include "tandem/core/out.h"
#include "tandem/core/parallel.h"
#include "tandem/kernels/conv/implementations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::conv_bench {

namespace {

using kernels::ConvGeometry;

constexpr double kQuick = 5e7;  // multiply-adds of the reference, a fraction of a second

/// All of [0, count), or three of them.
std::vector<Range> choose(std::int64_t count, double multiply_adds) {
  if (count <= 3 || multiply_adds <= kQuick) return {{0, count}};
  return {{0, 1}, {count / 3 + 1, 1}, {count - 1, 1}};
}

Tensor empty_wide(const Shape& shape) {
  return Tensor::empty(shape, {.dtype = DType::f64, .layout = Layout::channels_last});
}

constexpr std::int64_t kGrain = 1 << 14;

/// f64 on the CPU. Both are dense in channels_last.
Tensor wide(const Tensor& tensor) {
  const Tensor from = tensor.to(Device{});
  const Out result(empty_wide(tensor.shape()));
  dispatch_floating(tensor.dtype(), "conv_bench", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(from.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) result.data<double>()[i] = static_cast<double>(from.data<T>()[i]);
    });
  });
  return result;
}

Tensor absolute(const Tensor& tensor) {
  const Out result(empty_wide(tensor.shape()));
  parallel_for(tensor.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) result.data<double>()[i] = std::abs(tensor.data<double>()[i]);
  });
  return result;
}

Tensor images(const Tensor& tensor, Range range) { return tensor.narrow(0, range.first, range.count); }

/// A dense copy of some channels.
Tensor channels(const Tensor& tensor, Range range) {
  return tensor.narrow(1, range.first, range.count).contiguous(Layout::channels_last);
}

/// The parts of a result, [.., channels, .., ..] each: compute(part, some of the channels) for all of them, in slices
/// where there are more threads than parts. No sum depends on these slices.
template <typename Compute>
std::vector<Tensor> in_slices(std::size_t parts, std::int64_t channels, Compute&& compute) {
  constexpr std::int64_t kLeastChannels = 16;  // with fewer, the loops inside are slow
  const auto count = static_cast<std::int64_t>(parts), wanted = (2 * num_threads() + count - 1) / count;
  const std::int64_t each = std::clamp<std::int64_t>(channels / kLeastChannels, 1, wanted);
  const auto slice = [&](std::int64_t i) {
    const std::int64_t first = channels * i / each;
    return Range{first, channels * (i + 1) / each - first};
  };
  std::vector<Tensor> done(static_cast<std::size_t>(count * each));
  parallel_for(count * each, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      done[static_cast<std::size_t>(i)] = compute(static_cast<std::size_t>(i / each), slice(i % each));
  });
  if (each == 1) return done;
  std::vector<Tensor> joined;
  for (std::int64_t part = 0; part < count; ++part) {
    Shape shape = done[static_cast<std::size_t>(part * each)].shape();
    shape[1] = channels;
    joined.push_back(empty_wide(shape));
    for (std::int64_t i = 0; i < each; ++i)
      joined.back()
          .narrow(1, slice(i).first, slice(i).count)
          .copy_from(done[static_cast<std::size_t>(part * each + i)]);
  }
  return joined;
}

/// The sum of tensors of one shape, in their order; in the first one.
Tensor sum_of(const std::vector<Tensor>& parts) {
  double* const sums = Out(parts.front()).data<double>();
  for (std::size_t i = 1; i < parts.size(); ++i)
    for (std::int64_t at = 0; at < parts[0].numel(); ++at) sums[at] += parts[i].data<double>()[at];
  return parts.front();
}

/// A batch in chunks, whose number does not depend on that of threads.
std::vector<Range> chunks_of(std::int64_t images) {
  constexpr std::int64_t kMostChunks = 64;
  const std::int64_t chunks = std::min(images, kMostChunks);
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < chunks; ++i)
    ranges.push_back({images * i / chunks, images * (i + 1) / chunks - images * i / chunks});
  return ranges;
}

/// reference::apply_mask, in place and by all threads.
void mask_by_threads(const Out& tensor, const std::vector<std::uint8_t>& bytes) {
  parallel_for(tensor.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if ((bytes[static_cast<std::size_t>(i / 8)] >> i % 8 & 1) == 0) tensor.data<double>()[i] = 0.0;
  });
}

double roundoff(DType dtype) { return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24; }
double smallest(DType dtype) { return dtype == DType::f16 ? 0x1p-24 : 0x1p-126; }

double largest(const Tensor& tensor) {
  return *std::max_element(tensor.data<double>(), tensor.data<double>() + tensor.numel());
}

/// Names the first element that is too far off.
std::string compare(std::string_view name, const Tensor& part, DType dtype, Range range, const Tensor& expected,
                    double largest_sum, double terms, double product_error) {
  const Tensor actual = wide(part);
  const double from_sums = ((8.0 * std::sqrt(terms) + 40.0) * 0x1p-23 + product_error) * largest_sum;
  for (std::int64_t i = 0; i < actual.numel(); ++i) {
    const double got = actual.data<double>()[i], wanted = expected.data<double>()[i];
    const double allowed = from_sums + 2.0 * roundoff(dtype) * (std::abs(wanted) + 1.0) + smallest(dtype);
    if (std::abs(got - wanted) <= allowed) continue;
    return fmt::format("{}: element {} from {} on is {:.6g}, expected {:.6g} within {:.2g}", name, i, range.first, got,
                       wanted, allowed);
  }
  return {};
}

std::vector<std::uint8_t> bytes_of(const Tensor& mask) { return mask.to_vector<std::uint8_t>(); }

}  // namespace

Oracle::Oracle(const Workload& workload)
    : geometry_(workload.geometry()),
      options_(workload.layer.options()),
      wants_grad_x_(!workload.layer.is_first),
      x_(wide(workload.x)),
      w_(wide(workload.w)),
      bias_(wide(workload.bias)),
      grad_y_(wide(workload.grad_y)) {
  const ConvGeometry& g = geometry_;
  const double multiply_adds = static_cast<double>(g.output_numel()) * static_cast<double>(g.c * g.r * g.s);
  images_ = choose(g.n, multiply_adds);
  channels_ = choose(g.k, multiply_adds);
}

void Oracle::expect_forward() {
  const auto forward = [&](const Tensor& x, const Tensor& w, const Tensor& bias, bool relu) {
    return in_slices(images_.size(), geometry_.k, [&](std::size_t part, Range outputs) {
      const Tensor some = images(x, images_[part]), weights = images(w, outputs);
      const ConvGeometry g = kernels::make_geometry(some.shape(), weights.shape(), options_);
      const Tensor y = empty_wide({g.n, g.k, g.p, g.q});
      kernels::reference::conv2d_forward(some, weights, bias.narrow(0, outputs.first, outputs.count), g, relu, Out(y));
      return y;
    });
  };
  const std::vector<Tensor> values = forward(x_, w_, bias_, true);
  const std::vector<Tensor> sizes = forward(absolute(x_), absolute(w_), absolute(bias_), false);
  for (std::size_t i = 0; i < images_.size(); ++i) y_.push_back({images_[i], values[i], sizes[i]});
}

void Oracle::expect_backward(const Tensor& mask) {
  gradients_ = {};
  gradients_.mask = bytes_of(mask);
  const Tensor grad_z = grad_y_.clone();
  mask_by_threads(Out(grad_z), gradients_.mask);
  const Tensor absolute_x = absolute(x_), absolute_z = absolute(grad_z);
  if (wants_grad_x_) {
    const auto input_gradient = [&](const Tensor& z, const Tensor& w) {
      return in_slices(images_.size(), geometry_.c, [&](std::size_t part, Range inputs) {
        const Tensor grad_x = empty_wide({images_[part].count, inputs.count, geometry_.h, geometry_.w});
        const Tensor weights = channels(w, inputs);
        const ConvGeometry g = kernels::make_geometry(grad_x.shape(), weights.shape(), options_);
        kernels::reference::conv2d_backward_input(images(z, images_[part]), weights, g, Out(grad_x));
        return grad_x;
      });
    };
    const std::vector<Tensor> values = input_gradient(grad_z, w_), sizes = input_gradient(absolute_z, absolute(w_));
    for (std::size_t i = 0; i < images_.size(); ++i) gradients_.grad_x.push_back({images_[i], values[i], sizes[i]});
  }
  const std::vector<Range> chunks = chunks_of(geometry_.n);
  const auto bias_sums = [&](const Tensor& z) {
    std::vector<Tensor> parts(chunks.size());
    parallel_for(std::ssize(chunks), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        parts[i] = empty_wide({geometry_.k});
        kernels::reference::conv2d_backward_bias(images(z, chunks[i]), Out(parts[i]));
      }
    });
    return sum_of(parts);
  };
  gradients_.grad_bias = {{0, geometry_.k}, bias_sums(grad_z), bias_sums(absolute_z)};
  for (const Range outputs : channels_) {
    const auto weight_sums = [&](const Tensor& x, const Tensor& z) {
      return sum_of(in_slices(chunks.size(), geometry_.c, [&](std::size_t part, Range inputs) {
        const Tensor some = channels(images(x, chunks[part]), inputs);
        const Tensor grad_w = empty_wide({outputs.count, inputs.count, geometry_.r, geometry_.s});
        const ConvGeometry g = kernels::make_geometry(some.shape(), grad_w.shape(), options_);
        kernels::reference::conv2d_backward_weight(some, channels(images(z, chunks[part]), outputs), g, Out(grad_w));
        return grad_w;
      }));
    };
    gradients_.grad_w.push_back({outputs, weight_sums(x_, grad_z), weight_sums(absolute_x, absolute_z)});
  }
}

std::string Oracle::check_forward(const Workload& done, bool masked, double product_error) {
  if (y_.empty()) expect_forward();
  const ConvGeometry& g = geometry_;
  for (const Expected& part : y_) {
    const std::string wrong = compare("y", images(done.y, part.range), done.dtype(), part.range, part.values,
                                      largest(part.sizes), static_cast<double>(g.c * g.r * g.s), product_error);
    if (!wrong.empty()) return wrong;
  }
  if (!masked) return {};
  const Tensor signs = Tensor::empty(done.mask.shape(), {.dtype = DType::u8});
  sign_mask_by_threads(done.y.to(Device{}), signs);
  return bytes_of(signs) == bytes_of(done.mask) ? "" : "the mask does not show where y is positive";
}

std::string Oracle::check_backward(const Workload& done, double product_error) {
  const Tensor mask = done.mask.to(Device{});
  if (gradients_.mask != bytes_of(mask)) expect_backward(mask);
  const ConvGeometry& g = geometry_;
  const auto pixels = static_cast<double>(g.n * g.p * g.q);
  std::string wrong;
  const auto check = [&](std::string_view name, const Tensor& part, const Expected& expected, double terms,
                         double error) {
    if (wrong.empty())
      wrong = compare(name, part, done.dtype(), expected.range, expected.values, largest(expected.sizes), terms, error);
  };
  for (const Expected& part : gradients_.grad_x)
    check("grad_x", images(done.grad_x, part.range), part, static_cast<double>(g.k * g.r * g.s), product_error);
  for (const Expected& part : gradients_.grad_w)
    check("grad_w", done.grad_w.narrow(0, part.range.first, part.range.count), part, pixels, product_error);
  check("grad_bias", done.grad_bias, gradients_.grad_bias, pixels, 0.0);
  return wrong;
}

std::string verify(const Contestant& contestant, const Workload& workload, Oracle& oracle) {
  Workload own = workload;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  own.y.fill(nan);
  own.mask.fill(170);
  contestant.forward(own);
  const autograd::NoGrad reading;  // results that are on the tape are looked at, not computed with
  std::string wrong =
      oracle.check_forward(own, contestant.writes_mask && contestant.reads_mask, contestant.product_error);
  if (!wrong.empty()) return "forward, " + wrong;

  restore_forward_results(workload);
  if (!contestant.reads_mask) {  // its own is at work
    const Tensor mask = Tensor::empty(own.mask.shape(), {.dtype = DType::u8});
    sign_mask_by_threads(own.y.to(Device{}), mask);
    own.mask = mask;
  }
  for (const Tensor& gradient : {own.grad_x, own.grad_w, own.grad_bias}) {
    if (gradient.defined()) gradient.fill(nan);
  }
  contestant.backward(own);
  wrong = oracle.check_backward(own, contestant.product_error);
  return wrong.empty() ? wrong : "backward, " + wrong;
}

}  // namespace tandem::conv_bench
