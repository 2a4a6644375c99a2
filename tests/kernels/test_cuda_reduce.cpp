// Sums on CUDA against the references in f64.
#include "tandem/kernels/reduce/add_rows.h"
#include "tandem/kernels/reduce/add_rows_implementations.h"
#include "tandem/kernels/reduce/sum.h"
#include "tandem/kernels/reduce/sum_implementations.h"
#include "tandem/kernels/reduce/sum_to.h"
#include "tandem/kernels/reduce/sum_to_implementations.h"
#include "tests/kernels/cuda_support.h"
#include "tests/support/catch.h"
#include "tests/support/whole_numbers.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Reduce = void (*)(const Tensor& x, const Out& out);

/// What is wrong with reduce(x) on the device, or nothing. Sums are added up in f64, so that what is left is one
/// rounding to f32 beside that of storing.
std::string check(Reduce reduce, Reduce reference, const Tensor& x, const Shape& shape, bool exact) {
  const Tensor out = poisoned_on_gpu(shape, x.dtype());
  reduce(view_on_gpu(x), Out(out));
  const Tensor expected = Tensor::empty(shape, {.dtype = DType::f64, .layout = Layout::channels_last});
  reference(wide(x), Out(expected));
  if (exact) {
    const Tensor rounded = Tensor::empty(shape, {.dtype = x.dtype()});
    kernels::reference::cast(expected, Out(rounded));
    return first_difference(out, rounded);
  }
  const std::vector<double> values = expected.to_vector<double>();
  const double rest =
      0x1p-40 * static_cast<double>(x.numel());  // sums that cancel: f64's own rounding, many times over
  return first_outside(out, expected, [&](std::size_t i) { return 0x1p-24 * std::abs(values[i]) + rest; });
}

struct SumShapes {
  Shape x, out;
};

// Rows that a warp and that a block adds up, columns of 1 to 32 and more lanes; terms in one part and in several.
const SumShapes kSums[] = {
    {{}, {}},
    {{7}, {}},
    {{2, 3, 4, 5}, {2, 3, 4, 5}},
    {{2, 3, 4, 5}, {}},
    {{2, 3, 4, 5}, {5}},
    {{2, 33, 3, 5}, {1, 33, 1, 1}},
    {{2, 33, 3, 5}, {2, 1, 3, 5}},
    {{2, 3, 4, 5}, {3, 1, 5}},
    {{4, 5, 9, 7}, {4, 1, 1, 1}},
    {{0, 3, 2, 2}, {1, 3, 1, 1}},
    {{0, 3}, {0, 1}},
    {{3, 1500}, {3, 1}},
    {{3, 1032}, {3, 1}},
    {{9003}, {1}},
    {{700, 33}, {33}},
    {{5000, 3}, {3}},
    {{9, 70}, {70}},
};

}  // namespace

TEST_CASE("sums over dimensions on CUDA equal the reference", "[cuda][reduce]") {
  if (!has_gpu()) return;
  for (const DType dtype : kKernelDTypes) {
    for (const SumShapes& shapes : kSums) {
      for (const bool integers : {true, false}) {
        INFO(tandem::name_of(dtype) << ' ' << to_string(shapes.x) << " to " << to_string(shapes.out)
                                    << (integers ? " integers" : ""));
        const Tensor x = random_values(shapes.x, dtype, integers, 1);
        CHECK(check(kernels::sum_to, kernels::reference::sum_to, x, shapes.out, integers) == "");
        CHECK(check(kernels::sum, kernels::reference::sum, x, {}, integers) == "");
        CHECK(check(kernels::mean, kernels::reference::mean, x, {}, false) == "");
      }
    }
  }
}

TEST_CASE("sums on CUDA take any strides", "[cuda][reduce]") {
  if (!has_gpu()) return;
  for (const DType dtype : kKernelDTypes) {
    for (const Kind kind : kKinds) {
      const Tensor small = random_view(kind, {3, 5, 4, 7}, dtype, true, 2);
      const Tensor large = random_view(kind, {2, 1100}, dtype, true, 3);
      INFO(tandem::name_of(dtype) << ' ' << name_of(kind));
      CHECK(check(kernels::sum, kernels::reference::sum, small, {}, true) == "");
      CHECK(check(kernels::sum, kernels::reference::sum, large, {}, true) == "");
      CHECK(check(kernels::sum_to, kernels::reference::sum_to, large, {2, 1}, true) == "");
      CHECK(check(kernels::sum_to, kernels::reference::sum_to, large, {1100}, true) == "");
      for (const Shape& out : {Shape{5, 1, 1}, Shape{3, 1, 4, 7}, Shape{7}, Shape{3, 5, 4, 1}, Shape{3, 1, 4, 1}}) {
        INFO("to " << to_string(out));
        CHECK(check(kernels::sum_to, kernels::reference::sum_to, small, out, true) == "");
      }
    }
  }
}

TEST_CASE("sums of integers on CUDA are those of the CPU, wrapped around where 64 bits are too few", "[cuda][reduce]") {
  if (!has_gpu()) return;
  const auto check_sums = [](const Tensor& x, const Shape& shape) {
    INFO(tandem::name_of(x.dtype()) << to_string(x.shape()) << " with strides " << to_string(x.strides()) << " to "
                                    << to_string(shape));
    const Tensor expected = Tensor::empty(shape, {.dtype = DType::i64, .layout = Layout::channels_last});
    const Tensor actual = poisoned_on_gpu(shape, DType::i64);
    kernels::reference::sum_to(x, Out(expected));
    kernels::sum_to(view_on_gpu(x), Out(actual));
    CHECK(equal_bits(actual, expected));
  };
  for (const DType dtype : {DType::i64, DType::i32, DType::u8}) {
    for (const SumShapes& shapes : kSums) check_sums(whole_numbers(shapes.x, dtype), shapes.out);
    check_sums(whole_numbers({5, 40, 33}, dtype).transpose(0, 2), {5});
    check_sums(whole_numbers({5, 40, 33}, dtype).narrow(2, 1, 16, 2), {5, 1, 1});
  }
}

TEST_CASE("the mean of nothing is NaN on CUDA, its sum 0", "[cuda][reduce]") {
  if (!has_gpu()) return;
  const Tensor x = Tensor::zeros({0, 3}, {.device = kGpu}), out = poisoned_on_gpu({}, DType::f32);
  kernels::sum(x, Out(out));
  CHECK(out.item() == 0.0);
  kernels::mean(x, Out(out));
  CHECK(std::isnan(out.item()));
}

TEST_CASE("sums on CUDA give the same bits twice", "[cuda][reduce]") {
  if (!has_gpu()) return;
  const Tensor x = random_values({3000, 3}, DType::f32, false, 5).to(kGpu);
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{3000, 1}}) {
    const Tensor first = poisoned_on_gpu(shape, DType::f32), second = poisoned_on_gpu(shape, DType::f32);
    kernels::sum_to(x, Out(first));
    kernels::sum_to(x, Out(second));
    CHECK(equal_bits(first, second));
  }
}

TEST_CASE("sums of rows on CUDA have the reference's bits", "[cuda][reduce]") {
  if (!has_gpu()) return;
  for (const DType dtype : kKernelDTypes) {
    for (const std::int64_t row_count : {1, 2, 3, 5, 8}) {
      for (const std::int64_t count : {0, 1, 7, 8, 1000, 2051}) {
        for (const bool off_by_one : {false, true}) {  // 1000 columns are whole vectors, where they begin at one
          INFO(tandem::name_of(dtype) << '[' << row_count << ", " << count << ']' << (off_by_one ? " off by one" : ""));
          const Tensor rows =
              random_view(off_by_one ? Kind::off_by_one : Kind::row_major, {row_count, count}, dtype, false, 6);
          const Tensor sum = poisoned_on_gpu({count}, dtype, Layout::row_major, off_by_one);
          kernels::add_rows(view_on_gpu(rows), 3.0, Out(sum));
          const Tensor expected = Tensor::empty({count}, {.dtype = dtype});
          kernels::reference::add_rows(rows, 3.0, Out(expected));
          CHECK(equal_bits(sum, expected));
        }
      }
    }
  }
}

TEST_CASE("sums on CUDA refuse f64 and mixed devices, and leave no workspace behind", "[cuda][reduce]") {
  if (!has_gpu()) return;
  const Tensor x = Tensor::zeros({30000}, {.device = kGpu}), out = Tensor::zeros({}, {.device = kGpu});
  const auto before = memory_stats(kGpu).current_of(MemoryTag::workspace);
  kernels::sum(x, Out(out));
  CHECK(memory_stats(kGpu).current_of(MemoryTag::workspace) == before);
  const Tensor wide_x = Tensor::zeros({3}, {.dtype = DType::f64, .device = kGpu});
  const Tensor wide_out = Tensor::zeros({}, {.dtype = DType::f64, .device = kGpu});
  CHECK_THAT(error_of([&] { kernels::sum(wide_x, Out(wide_out)); }),
             ContainsText("sum: CUDA kernels take f32, f16 and bf16"));
  CHECK_THAT(error_of([&] { kernels::sum_to(wide_x, Out(wide_out)); }), ContainsText("sum_to: CUDA kernels take"));
  const Tensor wide_rows = Tensor::zeros({1, 3}, {.dtype = DType::f64, .device = kGpu});
  CHECK_THAT(error_of([&] { kernels::add_rows(wide_rows, 1.0, Out(wide_x)); }),
             ContainsText("add_rows: CUDA kernels take"));
  CHECK_THAT(error_of([&] { kernels::add_rows(wide_rows, 1.0, Out(Tensor::zeros({3}, {.dtype = DType::f64}))); }),
             ContainsText("add_rows: f64[1, 3] is on cuda:0, but"));
  CHECK_THAT(error_of([&] { kernels::mean(x, Out(Tensor::zeros({}))); }), ContainsText("on cuda:0, got"));
  CHECK_THAT(error_of([&] { kernels::sum_to(Tensor::zeros({3}), Out(out)); }),
             ContainsText("sum_to: the output for f32[3] on cpu must be f32 there, got f32[] on cuda:0"));
}
