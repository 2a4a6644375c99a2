// Convolution that leaves the moments of its result, and batch norm that takes them, against those of the result.
#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/conv/implicit_gemm/tile_shape.h"
#include "tandem/kernels/conv/operands.h"
#include "tandem/kernels/conv/plan.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tests/kernels/moments_support.h"
#include "tests/support/catch.h"

#include <tuple>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
namespace gemm = k::cuda::implicit_gemm;
namespace stationary = k::cuda::stationary;
using gemm::Tile;

k::ConvPlan moments_plan(const Tensor& x, const Tensor& w, const k::Conv2dOptions& options) {
  return k::plan_conv(x, w, options, {.forward = k::PassKind::forward_moments});
}

/// `run(g, x, w, bias, y, moments)` leaves the bits of y that `forward` leaves, and their moments.
template <typename Run, typename Forward>
void check_moments(const ConvCase& one, DType dtype, std::int64_t parts, double offset, Run&& run, Forward&& forward) {
  INFO(one.text() << " " << name_of(dtype) << " offset " << offset);
  const ConvInputs in(one, dtype, false);
  const Tensor x = on_gpu(in.x), w = on_gpu(in.w);
  const Tensor bias = Tensor::full({one.k}, offset, {.dtype = dtype, .device = kGpu});
  const Tensor y = poisoned_on_gpu(one.y(), dtype, kLast), expected = poisoned_on_gpu(one.y(), dtype, kLast);
  const Tensor moments = Tensor::full({3, parts, one.k}, -1.0, {.dtype = DType::f64, .device = kGpu});
  run(one.geometry(), x, w, bias, Out(y), Out(moments));
  forward(one.geometry(), x, w, k::cuda::Epilogue{.bias = bias}, Out(expected));
  CHECK(same_bits_on_gpu(y, expected));
  CHECK(moments_difference(moments, expected) == "");
}

}  // namespace

TEST_CASE("convolution leaves the moments of its result, by all tiles", "[cuda][conv]") {
  if (!has_gpu()) return;
  const k::Float32ProductsScope scope(k::Float32Products::tf32);
  for (const ConvCase& one : {square_case(2, 24, 5, 7, 72, 3, 1), square_case(3, 16, 9, 8, 136, 3, 1, 2),
                              square_case(1, 8, 12, 14, 40, 3, 1)}) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      for (const Tile tile : {Tile::wide, Tile::tall, Tile::small, Tile::narrow})
        check_moments(
            one, dtype, gemm::moment_parts_by(tile, one.geometry()), dtype == DType::f32 ? 1000.0 : 3.0,
            [&](auto&&... arguments) { gemm::forward_moments_by(tile, arguments...); },
            [&](auto&&... arguments) { gemm::forward_by(tile, arguments...); });
    }
    const k::Float32ProductsScope split(k::Float32Products::tf32x3);
    for (const Tile tile : {Tile::wide, Tile::tall, Tile::small, Tile::narrow})
      check_moments(
          one, DType::f32, gemm::moment_parts_by(tile, one.geometry()), 1000.0,
          [&](auto&&... arguments) { gemm::forward_moments_by(tile, arguments...); },
          [&](auto&&... arguments) { gemm::forward_by(tile, arguments...); });
  }
}

TEST_CASE("convolution with stationary weights leaves the moments of its result", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (const ConvCase& one :
       {square_case(2, 24, 5, 7, 72, 3, 1), square_case(1, 64, 18, 35, 64, 3, 1), square_case(1, 128, 9, 18, 40, 3, 1),
        square_case(290, 8, 3, 2, 8, 1, 0), square_case(1, 40, 9, 18, 24, 3, 1)}) {
    for (const DType dtype : {DType::f16, DType::bf16})
      check_moments(one, dtype, stationary::moment_parts(one.geometry()), 3.0, stationary::forward_moments,
                    stationary::forward);
  }
}

TEST_CASE("entry points leave moments where kernels do, and say where not", "[cuda][conv]") {
  if (!has_gpu()) return;
  for (ConvCase one : {square_case(2, 24, 5, 7, 72, 3, 1), square_case(128, 8, 14, 13, 8, 2, 0)}) {
    one.options.impl = k::ConvImpl::fused;
    const Tensor x = poisoned_on_gpu(one.x(), DType::f16, kLast), w = poisoned_on_gpu(one.weight(), DType::f16, kLast);
    check_moments(
        one, DType::f16, moment_parts(x, w, one.options), 0.5,
        [&](const auto&, auto&&... tensors) {
          const auto& [used_x, used_w, bias, y, moments] = std::tie(tensors...);
          k::conv2d_forward_with_moments(moments_plan(used_x, used_w, one.options), used_x, used_w, bias, y, moments);
        },
        chosen_by(k::ConvImpl::fused).forward);
  }
  {  // a bias at an odd address does not matter
    ConvCase one = square_case(1, 8, 4, 4, 16, 3, 1);
    one.options.impl = k::ConvImpl::fused;
    const auto odd = [](const Tensor& bias) {
      const Tensor whole = Tensor::empty({bias.numel() + 1}, {.dtype = bias.dtype(), .device = kGpu});
      const Tensor part = whole.narrow(0, 1, bias.numel());
      part.copy_from(bias);
      return part;
    };
    check_moments(
        one, DType::f16, 1, 0.5,
        [&](const auto&, auto&&... tensors) {
          const auto& [x, w, bias, y, moments] = std::tie(tensors...);
          k::conv2d_forward_with_moments(moments_plan(x, w, one.options), x, w, odd(bias), y, moments);
        },
        chosen_by(k::ConvImpl::fused).forward);
    check_pooled(
        one, DType::f16, true,
        [&](const auto& g, const auto& x, const auto& w, const auto& bias, const auto& to) {
          pooled_by(k::ConvImpl::fused, one)(g, x, w, odd(bias), to);
        },
        gemm::forward);
  }
  const auto parts = [](const ConvCase& one, DType dtype, k::ConvImpl impl) {
    k::Conv2dOptions options = one.options;
    options.impl = impl;
    return moment_parts(poisoned_on_gpu(one.x(), dtype, kLast), poisoned_on_gpu(one.weight(), dtype, kLast), options);
  };
  const ConvCase one = square_case(1, 8, 4, 4, 16, 3, 1);
  CHECK(parts(one, DType::f16, k::ConvImpl::fused) == 1);
  CHECK(parts(one, DType::f32, k::ConvImpl::fused) == 0);
  CHECK(parts(one, DType::f16, k::ConvImpl::reference) == 0);
  CHECK(parts(square_case(1, 3, 4, 4, 16, 3, 1), DType::f16, k::ConvImpl::fused) == 0);
  const Tensor x = poisoned_on_gpu(one.x(), DType::f16, kLast), w = poisoned_on_gpu(one.weight(), DType::f16, kLast);
  const Tensor y = poisoned_on_gpu(one.y(), DType::f16, kLast);
  const Tensor whole = poisoned_on_gpu(one.x(), DType::f32, kLast);
  const Tensor wide = poisoned_on_gpu(one.weight(), DType::f32, kLast);
  const k::Conv2dOptions fused{.padding = {1, 1}, .impl = k::ConvImpl::fused};
  CHECK_THAT(error_of([&] { k::conv2d_forward_with_moments(moments_plan(x, w, fused), x, w, {}, Out(y), {}); }),
             ContainsText("moments must be f64 [3, 1, 16], got nothing"));
  CHECK_THAT(
      error_of([&] { k::conv2d_forward_with_moments(moments_plan(whole, wide, fused), whole, wide, {}, Out(y), {}); }),
      ContainsText("there are no kernels for f32[1, 8, 4, 4]"));
}

TEST_CASE("batch norm takes moments in few parts and in many", "[cuda][norm]") {
  if (!has_gpu()) return;
  for (const std::int64_t parts : {1, 37, 1000}) {
    constexpr std::int64_t kChannels = 20;
    INFO(parts << " parts");
    const Shape shape{parts, kChannels, 3, 1};  // a part is an image
    const Tensor x = drawn(shape, DType::f16, 11, false, kLast);
    const Tensor moments = Tensor::empty({3, parts, kChannels}, {.dtype = DType::f64});
    const std::vector<float> values = x.to_vector<float>();  // in the order of the shape
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const float* const three = values.data() + (part * kChannels + c) * 3;
        const double mean = (double{three[0]} + double{three[1]} + double{three[2]}) / 3;
        double squares = 0;
        for (int i = 0; i < 3; ++i) squares += (three[i] - mean) * (three[i] - mean);
        const double fields[] = {3, mean, squares};
        for (std::int64_t f = 0; f < 3; ++f)
          Out(moments).data<double>()[(f * parts + part) * kChannels + c] = fields[static_cast<std::size_t>(f)];
      }
    }
    const auto train = [&](const Tensor& known) {
      const Tensor there = on_gpu(x), y = poisoned_on_gpu(shape, DType::f16, kLast);
      const Tensor mean = poisoned_on_gpu({kChannels}, DType::f32), scale = poisoned_on_gpu({kChannels}, DType::f32);
      const Tensor running_mean = Tensor::zeros({kChannels}, {.device = kGpu});
      const Tensor running_var = Tensor::zeros({kChannels}, {.device = kGpu});
      if (known.defined()) {
        k::batch_norm_forward_from_moments(there, known, {}, {}, Out(running_mean), Out(running_var), {}, Out(y),
                                           Out(mean), Out(scale));
      } else {
        k::batch_norm_forward_train(there, {}, {}, Out(running_mean), Out(running_var), {}, Out(y), Out(mean),
                                    Out(scale));
      }
      std::vector<float> all;
      for (const Tensor& result : {mean, scale, running_mean, running_var})
        for (const float value : result.to(Device{}).to_vector<float>()) all.push_back(value);
      return all;
    };
    const std::vector<float> got = train(on_gpu(moments)), wanted = train({});
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-5).margin(1e-6));
  }
  const Tensor x = poisoned_on_gpu({2, 8, 2, 2}, DType::f16, kLast), of = poisoned_on_gpu({8}, DType::f32);
  CHECK_THAT(error_of([&] { k::batch_norm_forward_from_moments(x, of, {}, {}, {}, {}, {}, Out(x), Out(of), Out(of)); }),
             ContainsText("moments of an input f16[2, 8, 2, 2] must be f64 [3, parts, 8] and on a GPU"));
  const Tensor here = Tensor::zeros({2, 8, 2, 2}), mean = Tensor::zeros({8});
  const Tensor moments = Tensor::zeros({3, 1, 8}, {.dtype = DType::f64});
  CHECK_THAT(error_of([&] {
               k::batch_norm_forward_from_moments(here, moments, {}, {}, {}, {}, {}, Out(here), Out(mean), Out(mean));
             }),
             ContainsText("on a GPU"));
}

}  // namespace tandem::test
