// Pooling kernels on the GPU against the reference.
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/pool/avg_pool2d.h"
#include "tandem/kernels/pool/avg_pool2d_implementations.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/pool/global_avg_pool2d_implementations.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"
#include "tandem/kernels/reduce/sum_to.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"
#include "tests/kernels/cuda_compare.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;
using kernels::Pool2dOptions;

namespace {

const std::vector<Pool2dOptions> kOptions{
    {},
    {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
    {.kernel = {3, 2}, .stride = {1, 3}, .padding = {1, 1}, .ceil_mode = true, .count_include_pad = false},
    {.kernel = {2, 2}, .stride = {3, 3}, .ceil_mode = true},
    {.kernel = {3, 2}, .stride = {3, 2}},
    {.kernel = {2, 3}, .stride = {2, 3}, .ceil_mode = true},
};

// Nothing; one pixel each; odd sizes; vectors of channels; channels that are no multiple of a vector.
const std::vector<Shape> kShapes{{0, 3, 4, 4}, {3, 1, 3, 3}, {2, 3, 5, 7}, {2, 16, 6, 5}, {1, 33, 5, 4}};

struct Case {
  DType dtype;
  Place place;
};

/// Calls test(dtype, place) for all three dtypes, and f32 in all places.
template <typename Test>
void for_each_case(Test&& test) {
  for (const DType dtype : kKernelDtypes) {
    for (const Place place : {Place::dense, Place::unaligned, Place::gaps}) {
      if (dtype != DType::f32 && place == Place::gaps) continue;
      INFO(name_of(dtype) << ", " << name_of(place));
      test(dtype, place);
    }
  }
}

std::string text_of(const Shape& shape, const Pool2dOptions& options) {
  return fmt::format("x {}, kernel {}x{}, stride {}x{}", to_string(shape), options.kernel[0], options.kernel[1],
                     options.stride[0], options.stride[1]);
}

/// The same gradient with its sums over images and pixels: exact on whole numbers, and else within the bound of a sum.
void check_max_pool_sums(const Tensor& grad_y, const Tensor& positions, const Pool2dOptions& options, Place place,
                         const Tensor& grad_x, bool integers) {
  const Shape channels{grad_x.size(1)}, row{1, grad_x.size(1), 1, 1};
  const Tensor again = empty_at(place, grad_x.shape(), grad_x.dtype());
  const Tensor sums = empty_at(place == Place::gaps ? Place::dense : place, channels, grad_x.dtype());
  kernels::max_pool2d_backward(grad_y, positions, options, Out(again), Out(sums));
  CHECK(same_values(again, grad_x));
  const Tensor written = wide(grad_x), expected = Tensor::empty(channels, {.dtype = DType::f64});
  kernels::reference::sum_to(written, Out(expected.view(row)));
  if (integers) {
    const Tensor rounded = Tensor::empty(channels, {.dtype = grad_x.dtype()});
    kernels::cast(expected, Out(rounded));
    CHECK(first_difference(sums, rounded) == "");
    return;
  }
  const Tensor size = Tensor::empty(channels, {.dtype = DType::f64});
  for (std::int64_t i = 0; i < written.numel(); ++i)
    Out(written).data<double>()[i] = std::abs(written.data<double>()[i]);
  kernels::reference::sum_to(written, Out(size.view(row)));
  CHECK(outside_sum_bound(sums, expected, size, static_cast<double>(written.numel() / written.size(1))) == "");
}

/// Max pooling forward and backward on the GPU, in the dtype of x, against the reference.
void check_max_pool(const Tensor& x, const Pool2dOptions& options, Place place) {
  const PoisonScope poison;
  const Shape shape = kernels::pool2d_output_shape("test", x.shape(), options);
  const DType index_dtype = kernels::max_pool2d_index_dtype(options);
  const Tensor y = Tensor::empty(shape, {.dtype = x.dtype()}), indices = Tensor::empty(shape, {.dtype = index_dtype});
  kernels::reference::max_pool2d_forward(x, options, Out(y), Out(indices));
  const Tensor out = empty_at(place, shape, x.dtype()), positions = empty_at(place, shape, index_dtype);
  kernels::max_pool2d_forward(put(x, place), options, Out(out), Out(positions));
  CHECK(first_difference(out, y) == "");
  CHECK(first_difference(positions, indices) == "");
  const Tensor without = empty_at(place, shape, x.dtype());
  kernels::max_pool2d_forward(put(x, place), options, Out(without), {});
  CHECK(first_difference(without, y) == "");

  for (const bool integers : {true, false}) {
    const Tensor grad_y = values_of(shape, x.dtype(), integers, 5), expected = wide_like(x), size = wide_like(x);
    kernels::reference::max_pool2d_backward(wide(grad_y), indices, options, Out(expected));
    const Tensor grad_x = empty_at(place, x.shape(), x.dtype());
    kernels::max_pool2d_backward(put(grad_y, place), positions, options, Out(grad_x));
    check_max_pool_sums(put(grad_y, place), positions, options, place, grad_x, integers);
    if (integers) {
      CHECK(first_difference(grad_x, expected) == "");
      continue;
    }
    const Tensor absolute = wide(grad_y);
    for (std::int64_t i = 0; i < absolute.numel(); ++i)
      Out(absolute).data<double>()[i] = std::abs(absolute.data<double>()[i]);
    kernels::reference::max_pool2d_backward(absolute, indices, options, Out(size));
    CHECK(outside_sum_bound(grad_x, expected, size, static_cast<double>(options.kernel[0] * options.kernel[1])) == "");
  }
}

}  // namespace

TEST_CASE("max pooling on the GPU gives the reference's values and winners", "[cuda][pool]") {
  if (!has_gpu()) return;
  for (const Shape& shape : kShapes) {
    for (const Pool2dOptions& options : kOptions) {
      INFO(text_of(shape, options));
      for_each_case(
          [&](DType dtype, Place place) { check_max_pool(values_of(shape, dtype, true, 1), options, place); });
    }
  }
}

TEST_CASE("max pooling on the GPU: large windows, many rows, ties, NaN and infinities", "[cuda][pool]") {
  if (!has_gpu()) return;
  for (const DType dtype : kKernelDtypes) {
    INFO(name_of(dtype));
    // i32 indices: a window of more than 256 positions.
    const Pool2dOptions large{.kernel = {17, 16}, .stride = {2, 5}, .padding = {8, 2}};
    check_max_pool(values_of({1, 4, 20, 18}, dtype, false, 2), large, Place::dense);
    const Tensor odd = values_of({2, 8, 4, 4}, dtype, true, 3);
    odd.narrow(0, 0, 1).fill(-INFINITY);
    odd.narrow(2, 1, 2).narrow(3, 0, 1).fill(std::nan(""));
    check_max_pool(odd, {}, Place::dense);
  }
  // More vectors of channels than a block of sums has threads.
  check_max_pool(values_of({1, 8 * 256 + 24, 2, 2}, DType::f16, true, 4), {}, Place::dense);
  check_max_pool(values_of({1, 261, 3, 2}, DType::f32, true, 4), {}, Place::dense);
  // More rows than a grid has in y, and a row of more elements than a block takes at once.
  check_max_pool(values_of({2, 1, 4100, 2}, DType::f32, true, 4), {.kernel = {1, 2}, .stride = {1, 2}}, Place::dense);
  check_max_pool(values_of({1, 8, 2, 600}, DType::f32, true, 4), {}, Place::dense);
}

TEST_CASE("a window that no pixel won passes nothing on, also not to the sums", "[cuda][pool]") {
  if (!has_gpu()) return;
  // Windows side by side, and windows that overlap.
  for (const Pool2dOptions& options : {Pool2dOptions{}, Pool2dOptions{.kernel = {3, 3}, .stride = {2, 2}}}) {
    for (const DType dtype : kKernelDtypes) {
      INFO(name_of(dtype) << ", kernel " << options.kernel[0]);
      const Tensor x = values_of({2, 16, 7, 5}, dtype, true, 1);
      const Shape shape = kernels::pool2d_output_shape("test", x.shape(), options);
      const Tensor y = Tensor::empty(shape, {.dtype = dtype}), indices = Tensor::empty(shape, {.dtype = DType::u8});
      kernels::reference::max_pool2d_forward(x, options, Out(y), Out(indices));
      const Tensor grad_y = values_of(shape, dtype, true, 5), passed = wide(grad_y).contiguous(),
                   positions = indices.contiguous().clone();
      for (std::int64_t i = 0; i < positions.numel(); i += 3) {
        Out(positions).data<std::uint8_t>()[i] = kernels::kNoPosition;
        Out(passed).data<double>()[i] = 0.0;
      }
      const Tensor expected = wide_like(x), grad_x = empty_at(Place::dense, x.shape(), dtype);
      kernels::reference::max_pool2d_backward(passed, indices, options, Out(expected));
      const Tensor gradient = put(grad_y, Place::dense), winners = put(positions, Place::dense);
      kernels::max_pool2d_backward(gradient, winners, options, Out(grad_x));
      CHECK(first_difference(grad_x, expected) == "");
      check_max_pool_sums(gradient, winners, options, Place::dense, grad_x, true);
    }
  }
}

TEST_CASE("average pooling on the GPU agrees with the reference", "[cuda][pool]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  for (const Shape& shape : kShapes) {
    for (const Pool2dOptions& options : kOptions) {
      INFO(text_of(shape, options));
      const Shape pooled = kernels::pool2d_output_shape("test", shape, options);
      const double terms = static_cast<double>(options.kernel[0] * options.kernel[1]);
      for_each_case([&](DType dtype, Place place) {
        // 2x2 windows without padding divide by 4: exact.
        const bool exact = options.kernel == 2 && !options.ceil_mode;
        const Tensor x = values_of(shape, dtype, exact, 1), grad_y = values_of(pooled, dtype, exact, 2);
        const Tensor y = empty_at(place, pooled, dtype), grad_x = empty_at(place, shape, dtype);
        kernels::avg_pool2d_forward(put(x, place), options, Out(y));
        kernels::avg_pool2d_backward(put(grad_y, place), options, Out(grad_x));
        const Tensor expected = Tensor::empty(pooled, {.dtype = DType::f64}), expected_gradient = wide_like(x);
        kernels::reference::avg_pool2d_forward(wide(x), options, Out(expected));
        kernels::reference::avg_pool2d_backward(wide(grad_y), options, Out(expected_gradient));
        if (exact) {
          CHECK(first_difference(y, expected) == "");
          CHECK(first_difference(grad_x, expected_gradient) == "");
        } else {
          // |x| < 6: the mean of |x|, and the sum over windows of |grad_y| / divisor, where no pixel counts more than
          // its windows, are at most 6 and 6 * terms.
          CHECK(outside_sum_bound(y, expected, Tensor::full(pooled, 6.0), terms) == "");
          CHECK(outside_sum_bound(grad_x, expected_gradient, Tensor::full(shape, 6.0 * terms), terms) == "");
        }
      });
    }
  }
}

TEST_CASE("global average pooling on the GPU agrees with the reference", "[cuda][pool]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  // Also more channels than a block takes, and pixels that the slices do not share evenly.
  for (const Shape& shape : {Shape{0, 3, 2, 2}, Shape{3, 1, 1, 1}, Shape{2, 33, 3, 5}, Shape{2, 8, 4, 4},
                             Shape{2, 280, 2, 2}, Shape{1, 5, 16, 9}}) {
    INFO("x " << to_string(shape));
    const Shape pooled{shape[0], shape[1], 1, 1};
    const double pixels = static_cast<double>(shape[2] * shape[3]);
    for_each_case([&](DType dtype, Place place) {
      const bool exact = std::exp2(std::round(std::log2(pixels))) == pixels;
      const Tensor x = values_of(shape, dtype, exact, 1), grad_y = values_of(pooled, dtype, exact, 2);
      const Tensor y = empty_at(place, pooled, dtype), grad_x = empty_at(place, shape, dtype);
      kernels::global_avg_pool2d_forward(put(x, place), Out(y));
      kernels::global_avg_pool2d_backward(put(grad_y, place), Out(grad_x));
      const Tensor expected = Tensor::empty(pooled, {.dtype = DType::f64}), expected_gradient = wide_like(x);
      kernels::reference::global_avg_pool2d_forward(wide(x), Out(expected));
      kernels::reference::global_avg_pool2d_backward(wide(grad_y), Out(expected_gradient));
      // Sums of whole numbers over a power of two; rounded to the dtype once, in both.
      const auto bound = [&](std::size_t) { return 0.0; };
      if (exact && dtype == DType::f32) {
        CHECK(first_outside(y, expected, bound) == "");
        CHECK(first_outside(grad_x, expected_gradient, bound) == "");
      } else {
        CHECK(outside_sum_bound(y, expected, Tensor::full(pooled, 6.0), pixels) == "");
        CHECK(outside_sum_bound(grad_x, expected_gradient, Tensor::full(shape, 6.0 / pixels), 1.0) == "");
      }
    });
  }
  const Tensor many = values_of({4100, 1, 1, 2}, DType::f32, true, 3),
               y = empty_at(Place::dense, {4100, 1, 1, 1}, DType::f32),
               expected = Tensor::empty({4100, 1, 1, 1}, {.dtype = DType::f64});
  kernels::reference::global_avg_pool2d_forward(wide(many), Out(expected));
  kernels::global_avg_pool2d_forward(put(many), Out(y));
  CHECK(first_difference(y, expected) == "");
}

TEST_CASE("pooling on the GPU gives the same bits twice", "[cuda][pool]") {
  if (!has_gpu()) return;
  const Pool2dOptions options{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}};
  const Tensor x = put(values_of({2, 12, 6, 6}, DType::f32, false, 1)),
               grad_y = put(values_of({2, 12, 6, 6}, DType::f32, false, 2));
  const auto run = [&] {
    const Tensor y = empty_like(x), positions = empty_at(Place::dense, x.shape(), DType::u8),
                 max_gradient = empty_like(x), avg_gradient = empty_like(x),
                 sums = empty_at(Place::dense, {12}, DType::f32);
    kernels::max_pool2d_forward(x, options, Out(y), Out(positions));
    kernels::max_pool2d_backward(grad_y, positions, options, Out(max_gradient), Out(sums));
    kernels::avg_pool2d_backward(grad_y, options, Out(avg_gradient));
    return std::vector{max_gradient, avg_gradient, sums};
  };
  const auto first = run(), second = run();
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(same_values(first[i], second[i]));
}

TEST_CASE("pooling on the GPU refuses f64 and mixed devices", "[cuda][pool]") {
  if (!has_gpu()) return;
  const Shape shape{1, 2, 4, 4}, pooled{1, 2, 2, 2}, single{1, 2, 1, 1};
  const auto on = [](const Shape& s, DType dtype, Device device) {
    return Tensor::zeros(s, {.dtype = dtype, .device = device});
  };
  const auto messages = [&](DType dtype, Device x_device, Device y_device) {
    const Tensor x = on(shape, dtype, x_device), y = on(pooled, dtype, y_device), mean = on(single, dtype, y_device),
                 indices = on(pooled, DType::u8, y_device);
    return std::vector<std::string>{error_of([&] { kernels::max_pool2d_forward(x, {}, Out(y), Out(indices)); }),
                                    error_of([&] { kernels::max_pool2d_backward(y, indices, {}, Out(x)); }),
                                    error_of([&] { kernels::avg_pool2d_forward(x, {}, Out(y)); }),
                                    error_of([&] { kernels::avg_pool2d_backward(y, {}, Out(x)); }),
                                    error_of([&] { kernels::global_avg_pool2d_forward(x, Out(mean)); }),
                                    error_of([&] { kernels::global_avg_pool2d_backward(mean, Out(x)); })};
  };
  for (const std::string& text : messages(DType::f64, kGpu, kGpu))
    CHECK_THAT(text, ContainsText("CUDA kernels take f32, f16 and bf16, got f64"));
  for (const std::string& text : messages(DType::f32, kGpu, Device{}))
    CHECK_THAT(text, ContainsText("move one of them"));
  for (const std::string& text : messages(DType::f32, Device{}, kGpu))
    CHECK_THAT(text, ContainsText("move one of them"));
}
