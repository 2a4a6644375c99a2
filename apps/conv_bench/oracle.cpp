// The reference on parts of a batch, and bounds on errors.
#include "apps/conv_bench/oracle.h"

#include "autograd/grad_mode.h"
#include "core/error.h"
#include "core/parallel.h"
#include "kernels/conv/implementations.h"

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
  const Tensor result = empty_wide(tensor.shape());
  dispatch_floating(tensor.dtype(), "conv_bench", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(from.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) result.data<double>()[i] = static_cast<double>(from.data<T>()[i]);
    });
  });
  return result;
}

Tensor absolute(const Tensor& tensor) {
  const Tensor result = empty_wide(tensor.shape());
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

/// Puts compute(range) for each range into `parts`, ranges beside each other.
template <typename Part, typename Compute>
void for_each_range(const std::vector<Range>& ranges, std::vector<Part>& parts, Compute&& compute) {
  parts.resize(ranges.size());
  parallel_for(static_cast<std::int64_t>(ranges.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      parts[static_cast<std::size_t>(i)] = compute(ranges[static_cast<std::size_t>(i)]);
  });
}

/// Sums over a batch, cut into chunks of images whose sums are added in order, whatever the number of threads:
/// sum_up(images, to) leaves the sums of a range of images in `to`.
template <typename SumUp>
Tensor sum_over_images(std::int64_t count, const Shape& shape, SumUp&& sum_up) {
  constexpr std::int64_t kMostChunks = 64;
  const std::int64_t chunks = std::min(count, kMostChunks);
  std::vector<Tensor> parts(static_cast<std::size_t>(chunks));
  parallel_for(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = count * i / chunks, last = count * (i + 1) / chunks;
      Tensor& part = parts[static_cast<std::size_t>(i)];
      part = empty_wide(shape);
      sum_up(Range{first, last - first}, part);
    }
  });
  for (std::size_t i = 1; i < parts.size(); ++i)
    for (std::int64_t at = 0; at < parts[0].numel(); ++at) parts[0].data<double>()[at] += parts[i].data<double>()[at];
  return parts[0];
}

/// reference::apply_mask, in place and by all threads.
void mask_by_threads(const Tensor& tensor, const std::vector<std::uint8_t>& bytes) {
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
  for_each_range(images_, y_, [&](Range range) {
    const Tensor x = images(x_, range);
    const ConvGeometry g = kernels::make_geometry(x.shape(), w_.shape(), options_);
    const Expected part{range, empty_wide({g.n, g.k, g.p, g.q}), empty_wide({g.n, g.k, g.p, g.q})};
    kernels::reference::conv2d_forward(x, w_, bias_, g, true, part.values);
    kernels::reference::conv2d_forward(absolute(x), absolute(w_), absolute(bias_), g, false, part.sizes);
    return part;
  });
}

void Oracle::expect_backward(const Tensor& mask) {
  gradients_ = {};
  gradients_.mask = bytes_of(mask);
  const Tensor grad_z = grad_y_.clone();
  mask_by_threads(grad_z, gradients_.mask);
  if (wants_grad_x_) {
    for_each_range(images_, gradients_.grad_x, [&](Range range) {
      const Shape shape = images(x_, range).shape();
      const ConvGeometry g = kernels::make_geometry(shape, w_.shape(), options_);
      const Expected part{range, empty_wide(shape), empty_wide(shape)};
      kernels::reference::conv2d_backward_input(images(grad_z, range), w_, g, part.values);
      kernels::reference::conv2d_backward_input(absolute(images(grad_z, range)), absolute(w_), g, part.sizes);
      return part;
    });
  }
  const Tensor absolute_x = absolute(x_), absolute_z = absolute(grad_z);
  const auto bias_sums = [&](const Tensor& z) {
    return sum_over_images(geometry_.n, {geometry_.k}, [&](Range some, const Tensor& to) {
      kernels::reference::conv2d_backward_bias(images(z, some), to);
    });
  };
  gradients_.grad_bias = {{0, geometry_.k}, bias_sums(grad_z), bias_sums(absolute_z)};
  for (const Range range : channels_) {
    const Shape shape{range.count, w_.size(1), w_.size(2), w_.size(3)};
    const auto weight_sums = [&](const Tensor& x, const Tensor& z) {
      return sum_over_images(geometry_.n, shape, [&](Range some, const Tensor& to) {
        const Tensor part = images(x, some);
        const ConvGeometry g = kernels::make_geometry(part.shape(), shape, options_);
        kernels::reference::conv2d_backward_weight(part, channels(images(z, some), range), g, to);
      });
    };
    gradients_.grad_w.push_back({range, weight_sums(x_, grad_z), weight_sums(absolute_x, absolute_z)});
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
  return bytes_of(signs) == bytes_of(done.mask) ? "" : "the mask does not tell where y is positive";
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
