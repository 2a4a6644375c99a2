// Normalisation of rows on the GPU against the reference: long rows, many rows, parameters of several parts.
#include "tandem/kernels/norm/row_norm.h"
#include "tandem/kernels/norm/row_norm_implementations.h"
#include "tests/kernels/cuda_compare.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::test;
using kernels::RowNormOptions;

namespace {

constexpr double kU = 0x1p-24;

struct Results {
  Tensor y, mean, inverse_std, grad_x, grad_weight, grad_bias;
};

/// Forward and backward; outputs are of these dtypes and places.
Results run(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& grad_y,
            const RowNormOptions& options, Place place = Place::dense) {
  const Device device = x.device();
  const DType statistics = kernels::row_norm_statistics_dtype(x.dtype());
  const auto fresh = [&](const Shape& shape, DType dtype) { return empty_at(place, shape, dtype, device); };
  const Results r{fresh(x.shape(), x.dtype()),           fresh({x.size(0)}, statistics),
                  fresh({x.size(0)}, statistics),        fresh(x.shape(), x.dtype()),
                  fresh(weight.shape(), weight.dtype()), fresh(bias.shape(), bias.dtype())};
  const bool reference = x.dtype() == DType::f64;
  const auto forward = reference ? kernels::reference::row_norm_forward : kernels::row_norm_forward;
  const auto backward = reference ? kernels::reference::row_norm_backward : kernels::row_norm_backward;
  forward("row_norm", x, weight, bias, options, Out(r.y), Out(r.mean), Out(r.inverse_std));
  backward("row_norm", x, weight, r.mean, r.inverse_std, options, grad_y, Out(r.grad_x), Out(r.grad_weight),
           Out(r.grad_bias));
  return r;
}

}  // namespace

TEST_CASE("normalisation of rows on the GPU agrees with the reference in f64", "[cuda][norm]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  struct Case {
    Shape shape;
    RowNormOptions options;
  };
  const Case cases[] = {{{300, 7}, {}},
                        {{5, 128}, {}},
                        {{3, 129}, {}},
                        {{2, 3000}, {}},
                        {{12, 10}, {.groups = 4}},
                        {{6, 2 * 40}, {.groups = 3, .repeats = 40}},
                        {{40, 3 * 5}, {.groups = 2, .repeats = 5}},
                        {{2, 16 * 70}, {.groups = 1, .repeats = 70}}};
  for (const Case& c : cases) {
    for (const DType dtype : kKernelDtypes) {
      for (const Place place : {Place::dense, Place::unaligned}) {
        if (place != Place::dense && dtype != DType::f32) continue;
        INFO(to_string(c.shape) << ", " << c.options.groups << " groups, " << c.options.repeats << " repeats, "
                                << name_of(dtype) << ", " << name_of(place));
        const std::int64_t parameters = c.options.groups * (c.shape[1] / c.options.repeats);
        const Tensor x = values_of(c.shape, dtype, false, 1, 2.0, 1.0), grad = values_of(c.shape, dtype, false, 2);
        const Tensor weight = values_of({parameters}, DType::bf16, false, 3),
                     bias = values_of({parameters}, dtype, false, 4);
        const Results exact = run(wide(x), wide(weight), wide(bias), wide(grad), c.options);
        const Results result =
            run(put(x, place), put(weight, Place::gaps), put(bias), put(grad, place), c.options, place);
        // Every number on the way is below 20 (x, weight, gradient: normal), 1 / std about 1/2; each thread adds up
        // every 32nd element of a row or fewer.
        const double row = 20.0 * (16.0 + static_cast<double>(c.shape[1]) / 32.0) * kU;
        const auto within = [&](const Tensor& actual, const Tensor& expected, double absolute) {
          const std::vector<double> values = expected.to_vector<double>();
          return first_outside(actual, expected, [&](std::size_t i) {
            return absolute + roundoff(actual.dtype()) * std::abs(values[i]) + 0x1p-24;
          });
        };
        CHECK(within(result.y, exact.y, row) == "");
        CHECK(within(result.mean, exact.mean, row) == "");
        CHECK(within(result.inverse_std, exact.inverse_std, row) == "");
        CHECK(within(result.grad_x, exact.grad_x, row) == "");
        const double count = static_cast<double>(c.shape[0] * c.shape[1] / parameters);
        CHECK(within(result.grad_weight, exact.grad_weight, 20.0 * count * (8.0 + count / 8.0) * kU) == "");
        CHECK(within(result.grad_bias, exact.grad_bias, 5.0 * count * (8.0 + count / 8.0) * kU) == "");
      }
    }
  }
}

TEST_CASE("normalisation on the GPU: more rows than the grid takes at once", "[cuda][norm]") {
  if (!has_gpu()) return;
  // Each row is one 1 and zeros, and so are its gradients: a weight gets the same from each row.
  const std::int64_t columns = GENERATE(4, 160), rows = columns == 4 ? 132 * 8 * 8 + 3 : 132 * 8 + 3;
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(columns)) values[i] = 1.0f;
  const Tensor x = put(Tensor::from(values, {rows, columns})), ones = put(Tensor::full({columns}, 1.0));
  const Results result = run(x, ones, ones, x, {.eps = 0.0});
  const std::vector<float> y = result.y.to_vector<float>();
  const float first = y[0], last = y[1];
  CHECK(std::abs(first - last - 1.0f / std::sqrt(static_cast<float>(columns - 1)) * static_cast<float>(columns)) <=
        1e-4f);
  bool same = true;
  for (std::size_t i = 0; i < y.size(); ++i) same = same && y[i] == (values[i] == 1.0f ? first : last);
  CHECK(same);
  CHECK(result.grad_bias.to_vector<double>()[0] == static_cast<double>(rows));
  CHECK(result.grad_bias.to_vector<double>()[1] == 0.0);
}

TEST_CASE("normalisation on the GPU writes only the gradients that are asked for", "[cuda][norm]") {
  if (!has_gpu()) return;
  const Tensor x = put(values_of({4, 6}, DType::f32, false, 1)), weight = put(values_of({6}, DType::f32, false, 2));
  const Results all = run(x, weight, weight, x, {});
  const Tensor grad_x = empty_at(Place::dense, {4, 6}, DType::f32), grad_bias = empty_at(Place::dense, {6}, DType::f32);
  kernels::row_norm_backward("row_norm", x, weight, all.mean, all.inverse_std, {}, x, Out(grad_x), {}, {});
  kernels::row_norm_backward("row_norm", x, weight, all.mean, all.inverse_std, {}, x, {}, {}, Out(grad_bias));
  CHECK(same_values(grad_x, all.grad_x));
  CHECK(same_values(grad_bias, all.grad_bias));
}

TEST_CASE("normalisation on the GPU refuses f64 and mixed devices", "[cuda][norm]") {
  if (!has_gpu()) return;
  const auto call = [](const Tensor& x, const Tensor& weight) {
    return error_of([&] {
      const Tensor numbers = Tensor::zeros({2}, {.dtype = x.dtype(), .device = kGpu});
      kernels::row_norm_forward("row_norm", x, weight, {}, {}, Out(x.clone()), Out(numbers), Out(numbers));
    });
  };
  CHECK_THAT(call(Tensor::zeros({2, 3}, {.dtype = DType::f64, .device = kGpu}), {}),
             ContainsText("row_norm: CUDA kernels take f32, f16 and bf16, got f64"));
  CHECK_THAT(call(put(Tensor::zeros({2, 3})), Tensor::zeros({3})), ContainsText("move one of them"));
}
