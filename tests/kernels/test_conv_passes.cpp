// Every f32 convolution implementation against the reference: exact on whole numbers, bounded on random ones.
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/conv/families.h"
#include "tests/kernels/conv_support.h"
#include "tests/support/forked.h"

#include <algorithm>
#include <filesystem>

#ifdef __linux__
#endif

namespace tandem::test {
namespace {

namespace k = tandem::kernels;

/// A family for the CPU, and what it is tested with.
struct Implementation {
  k::cpu::ConvFamily<float> passes;
  std::vector<ConvCase> cases;
};

std::vector<ConvCase> cases_of(const k::cpu::ConvFamily<float>& family) {
  if (family.name == "winograd") return winograd_cases();
  std::vector<ConvCase> cases;
  for (const ConvCase& one : direct_cases())
    if (family.supports(one.geometry())) cases.push_back(one);
  if (family.is_ours) return cases;
  // What oneDNN 3 packs into blocks unlike ours.
  cases.push_back(square_case(2, 256, 7, 7, 512, 1, 0, 2));
  cases.push_back(square_case(2, 64, 5, 4, 192, 3, 1));
  // Alike in all sizes, but for the dilation of one dimension: a plan of one must not serve another.
  for (const HeightWidth dilation : {HeightWidth(1), {1, 2}, {2, 1}})
    cases.push_back({2, 8, 9, 9, 16, 2, 2, {{2, 2}, {0, 0}, dilation, 1}});
  return cases;
}

std::vector<Implementation> implementations() {
  std::vector<Implementation> all;
  for (const k::cpu::ConvFamily<float>& family : k::cpu::conv_families<float>())
    all.push_back({family, cases_of(family)});
  return all;
}

/// The three results of one implementation, and of the reference in exact sums.
struct Results {
  Tensor y, grad_x, grad_w, grad_bias, mask;
};

Results run(const Implementation& impl, const ConvCase& one, const Tensor& x, const Tensor& w, const Tensor& bias,
            const Tensor& grad_y, const Tensor& used_mask) {
  const k::ConvGeometry g = one.geometry();
  Results out{poisoned(one.y()), poisoned(one.x()), poisoned(one.weight()), poisoned({one.k}),
              Tensor::full(k::conv_mask_shape(one.y()), 170, {DType::u8, Layout::row_major, {}})};
  impl.passes.forward(g, x.data<float>(), w.data<float>(),
                      {.bias = bias.data<float>(), .relu = true, .mask = Out(out.mask).data<std::uint8_t>()},
                      Out(out.y).data<float>());
  const k::MaskedGradient<float> gradient{grad_y.data<float>(), used_mask.data<std::uint8_t>()};
  impl.passes.backward_input(g, gradient, w.data<float>(), Out(out.grad_x).data<float>());
  impl.passes.backward_weight(g, x.data<float>(), gradient, Out(out.grad_w).data<float>(),
                              Out(out.grad_bias).data<float>());
  return out;
}

Results run_reference(const ConvCase& one, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& grad_y,
                      const Tensor& used_mask, bool relu) {
  const k::ConvGeometry g = one.geometry();
  Results out{poisoned(one.y()), poisoned(one.x()), poisoned(one.weight()), poisoned({one.k}), {}};
  const Tensor gradient = masked(grad_y, used_mask);
  k::reference::conv2d_forward(x, w, bias, g, relu, Out(out.y));
  k::reference::conv2d_backward_input(gradient, w, g, Out(out.grad_x));
  k::reference::conv2d_backward_weight(x, gradient, g, Out(out.grad_w));
  k::reference::conv2d_backward_bias(gradient, Out(out.grad_bias));
  return out;
}

Tensor random_mask(const Shape& y, unsigned seed) {
  std::mt19937 generator(seed);
  const Tensor mask = Tensor::empty(k::conv_mask_shape(y), {DType::u8, Layout::row_major, {}});
  for (std::int64_t i = 0; i < mask.numel(); ++i)
    Out(mask).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(generator() & 0xff);
  return mask;
}

/// A tensor of this shape filled with the largest element of `x`.
Tensor all_largest(const Tensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  return Tensor::full(x.shape(), static_cast<double>(*std::max_element(values.begin(), values.end())), channels_last());
}

bool mask_matches(const Tensor& y, const Tensor& mask) {
  const Tensor expected = Tensor::empty(mask.shape(), {DType::u8, Layout::row_major, {}});
  k::reference::sign_mask(y, Out(expected));
  for (std::int64_t i = 0; i < mask.numel(); ++i)
    if (mask.data<std::uint8_t>()[i] != expected.data<std::uint8_t>()[i]) return false;
  return true;
}

}  // namespace

namespace {

void check_exact_on_whole_numbers(const std::vector<Implementation>& tried) {
  for (const Implementation& impl : tried)
    for (const ConvCase& one : impl.cases) {
      INFO(impl.passes.name << ": " << one.text());
      const k::ConvGeometry g = one.geometry();
      // F(4x4,3x3) divides by odd numbers and rounds; F(2x2,3x3) divides by 4, which multiples of 4 survive.
      const bool exact = impl.passes.name != "winograd" || std::max({g.p, g.q, g.h, g.w}) <= 2;
      if (!exact) continue;
      const Tensor x = integers(one.x(), 1), w = integers(one.weight(), 2, 4.0f), bias = integers({one.k}, 3);
      const Tensor grad_y = integers(one.y(), 4, 4.0f), mask = random_mask(one.y(), 5);
      const Results got = run(impl, one, x, w, bias, grad_y, mask);
      const Results expected = run_reference(one, x, w, bias, grad_y, mask, true);
      CHECK(equal(got.y, expected.y));
      CHECK(equal(got.grad_x, expected.grad_x));
      CHECK(equal(got.grad_w, expected.grad_w));
      CHECK(equal(got.grad_bias, expected.grad_bias));
      CHECK(mask_matches(expected.y, got.mask));
    }
}

}  // namespace

TEST_CASE("convolution passes are exact on whole numbers") { check_exact_on_whole_numbers(implementations()); }

#if TANDEM_HAS_ONEDNN
namespace {

Implementation onednn() {
  for (const Implementation& impl : implementations())
    if (impl.passes.name == "onednn") return impl;
  fail("this build has no oneDNN");
}

/// All three passes on ones.
void run_on_ones(const Implementation& impl, const ConvCase& one) {
  const auto ones = [](const Shape& shape) { return Tensor::full(shape, 1.0, channels_last()); };
  run(impl, one, ones(one.x()), ones(one.weight()), ones({one.k}), ones(one.y()), random_mask(one.y(), 1));
}

}  // namespace

// With many threads all cases have fewer images than that, so that rows are dealt out.
TEST_CASE("oneDNN's passes are exact for any number of threads") {
  const int before = num_threads();
  for (const int threads : {1, 2, 5, 64}) {
    INFO(threads << " threads");
    set_num_threads(threads);
    check_exact_on_whole_numbers({onednn()});
  }
  set_num_threads(before);
}

#ifdef __linux__
TEST_CASE("oneDNN takes no threads but ours") {
  const auto threads_here = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const int before = num_threads();
  set_num_threads(64);
  parallel_for(64, 1, [](std::int64_t, std::int64_t) {});  // starts them
  const auto ours = threads_here();
  run_on_ones(onednn(), square_case(1, 16, 8, 8, 16, 3, 1));
  run_on_ones(onednn(), square_case(63, 16, 2, 2, 16, 3, 1));
  CHECK(threads_here() == ours);
  set_num_threads(before);
}

#ifndef __SANITIZE_THREAD__  // the sanitizer ends a child that starts threads
TEST_CASE("oneDNN convolves in a process made by fork") {
  const int before = num_threads();
  set_num_threads(2);
  const ConvCase one = square_case(1, 16, 8, 8, 16, 3, 1);
  run_on_ones(onednn(), one);
  const int code = exit_code_forked([&] {
    run_on_ones(onednn(), one);
    return 0;
  });
  CHECK(code == 0);
  set_num_threads(before);
}
#endif
#endif
#endif

// A sum of n rounded products in any order is off by at most n eps sum|a||b| (first order). The Winograd forms mix
// neighbours, so for them the largest such sum counts. Their worst case is larger, but with centred random data their
// error stays below the plain sum's bound plus a few roundings for the transforms, which is what users may rely on.
TEST_CASE("convolution passes stay within the bound of plain f32 sums") {
  for (const Implementation& impl : implementations())
    for (const ConvCase& one : impl.cases) {
      INFO(impl.passes.name << ": " << one.text());
      const k::ConvGeometry g = one.geometry();
      const Tensor x = normals(one.x(), 1), w = normals(one.weight(), 2), bias = normals({one.k}, 3);
      const Tensor grad_y = normals(one.y(), 4), mask = random_mask(one.y(), 5);
      const Results got = run(impl, one, x, w, bias, grad_y, mask);
      const Results expected = run_reference(one, x, w, bias, grad_y, mask, true);
      Results scale = run_reference(one, absolute(x), absolute(w), absolute(bias), absolute(grad_y), mask, false);
      if (impl.passes.name == "winograd")
        for (Tensor* sums : {&scale.y, &scale.grad_x, &scale.grad_w}) *sums = all_largest(*sums);
      const double transforms = impl.passes.name == "winograd" ? 40.0 : 2.0;
      const auto taps = static_cast<double>(g.r * g.s);
      CHECK(error_in_eps(got.y, expected.y, scale.y) <= taps * static_cast<double>(g.group_c()) + transforms);
      CHECK(error_in_eps(got.grad_x, expected.grad_x, scale.grad_x) <=
            taps * static_cast<double>(g.group_k()) + transforms);
      CHECK(error_in_eps(got.grad_w, expected.grad_w, scale.grad_w) <=
            static_cast<double>(g.n * g.p * g.q) + transforms);
      CHECK(error_in_eps(got.grad_bias, expected.grad_bias, scale.grad_bias) <=
            static_cast<double>(g.n * g.p * g.q) + 2.0);
      CHECK(mask_matches(got.y, got.mask));
    }
}

namespace {

/// Root mean square of the difference, over that of what is expected.
double relative_error(const Tensor& got, const Tensor& expected) {
  const std::vector<float> a = got.to_vector<float>();
  const std::vector<double> b = expected.to_vector<double>();
  double difference = 0.0, sum = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    sum += b[i] * b[i];
  }
  return std::sqrt(difference / sum);
}

struct RelativeErrors {
  double y, grad_x, grad_w;
};

RelativeErrors errors_of(k::ConvImpl impl, const ConvCase& one) {
  k::Conv2dOptions options = one.options;
  options.impl = impl;
  const Tensor x = normals(one.x(), 1), w = normals(one.weight(), 2), grad_y = normals(one.y(), 3);
  const auto made = [](const Shape& shape, DType dtype) {
    return Tensor::empty(shape, {dtype, Layout::channels_last, {}});
  };
  const auto run = [&](DType dtype) {
    const auto as = [&](const Tensor& tensor) {
      const Tensor copy = made(tensor.shape(), dtype);
      k::cast(tensor, Out(copy));
      return copy;
    };
    Results out;
    out.y = made(one.y(), dtype), out.grad_x = made(one.x(), dtype), out.grad_w = made(one.weight(), dtype);
    k::conv2d_forward(as(x), as(w), {}, options, Out(out.y));
    k::conv2d_backward_input(as(grad_y), as(w), options, Out(out.grad_x));
    k::conv2d_backward_weight(as(x), as(grad_y), options, Out(out.grad_w));
    return out;
  };
  const Results got = run(DType::f32);
  options.impl = k::ConvImpl::reference;
  const Results truth = run(DType::f64);
  return {relative_error(got.y, truth.y), relative_error(got.grad_x, truth.grad_x),
          relative_error(got.grad_w, truth.grad_w)};
}

}  // namespace

// A choice of interpolation points: with +-1 and +-2 in place of those that the transforms have, errors are 2.1 times
// as large, which is beyond each bound. A direct sum is the more exact one, or the names are mixed up.
TEST_CASE("errors of the code that convolves are those of its algorithm") {
  const ConvCase one = square_case(4, 128, 8, 8, 128, 3, 1);
  const RelativeErrors direct = errors_of(k::ConvImpl::direct, one), winograd = errors_of(k::ConvImpl::winograd, one);
  INFO("direct: y " << direct.y << ", grad_x " << direct.grad_x << ", grad_w " << direct.grad_w);
  INFO("winograd: y " << winograd.y << ", grad_x " << winograd.grad_x << ", grad_w " << winograd.grad_w);
  CHECK(direct.y < 6e-7);
  CHECK(winograd.y < 1.5e-6);
  CHECK(winograd.grad_x < 1.5e-6);
  CHECK(winograd.grad_w < 1.0e-6);
  CHECK(winograd.y > direct.y);
  CHECK(errors_of(k::ConvImpl::automatic, one).y == winograd.y);
  CHECK(errors_of(k::ConvImpl::fused, one).y == winograd.y);
  // Few channels: Winograd's algorithm does not pay there, but runs where it is asked for, and only there.
  const ConvCase few = square_case(2, 3, 8, 8, 8, 3, 1);
  CHECK(errors_of(k::ConvImpl::winograd, few).y > 2 * errors_of(k::ConvImpl::fused, few).y);
  // Where it is impossible the direct kernels run.
  const ConvCase strided = square_case(2, 16, 9, 9, 16, 3, 1, 2);
  CHECK(errors_of(k::ConvImpl::winograd, strided).y == errors_of(k::ConvImpl::direct, strided).y);
}

TEST_CASE("a table of errors: relative root mean squares against f64", "[.][conv-errors]") {
  fmt::print("{:<16}{:<10}{:>10}{:>10}{:>10}\n", "channels, image", "by", "y", "grad_x", "grad_w");
  for (const auto& [channels, size] : {std::pair{32, 32}, {64, 16}, {128, 16}, {256, 8}, {512, 4}}) {
    const ConvCase one = square_case(8, channels, size, size, channels, 3, 1);
    for (const auto impl : {k::ConvImpl::direct, k::ConvImpl::winograd}) {
      const RelativeErrors errors = errors_of(impl, one);
      fmt::print("{:<16}{:<10}{:10.2e}{:10.2e}{:10.2e}\n", fmt::format("{}, {}x{}", channels, size, size),
                 k::name_of(impl), errors.y, errors.grad_x, errors.grad_w);
    }
  }
}

TEST_CASE("convolution results do not depend on the number of threads") {
  const int before = num_threads();
  for (const Implementation& impl : implementations()) {
    if (impl.passes.name == "onednn") continue;
    for (const ConvCase& one :
         {square_case(20, 16, 8, 8, 33, 3, 1), square_case(3, 3, 16, 16, 32, 3, 1), square_case(40, 5, 7, 9, 4, 3, 1),
          square_case(32, 18, 16, 16, 66, 3, 1), square_case(19, 18, 8, 8, 80, 3, 1)}) {
      const Tensor x = normals(one.x(), 1), w = normals(one.weight(), 2), bias = normals({one.k}, 3);
      const Tensor grad_y = normals(one.y(), 4), mask = random_mask(one.y(), 5);
      set_num_threads(1);
      const Results single = run(impl, one, x, w, bias, grad_y, mask);
      for (const int threads : {2, 3, 5}) {
        INFO(impl.passes.name << ": " << one.text() << ", " << threads << " threads");
        set_num_threads(threads);
        const Results several = run(impl, one, x, w, bias, grad_y, mask);
        CHECK(equal(single.y, several.y));
        CHECK(equal(single.grad_x, several.grad_x));
        CHECK(equal(single.grad_w, several.grad_w));
        CHECK(equal(single.grad_bias, several.grad_bias));
      }
      set_num_threads(before);
    }
  }
}

}  // namespace tandem::test
