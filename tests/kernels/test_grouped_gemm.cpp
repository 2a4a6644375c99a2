// grouped_gemm against plain loops in double: products of many sizes, what becomes of them, and what it refuses.
#include "tandem/kernels/gemm/grouped_gemm.h"

#include "tests/kernels/conv_support.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

#include <cmath>

namespace tandem::test {
namespace {

namespace k = tandem::kernels;
using k::Combination;
using k::GroupedProduct;

struct Size {
  std::int64_t batches, m, n, k;
};

/// In that dtype, rounded.
Tensor in(DType dtype, const Tensor& x) {
  const Tensor result = Tensor::empty(x.shape(), {.dtype = dtype});
  dispatch_floating(dtype, "in", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<float> values = x.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      Out(result).data<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(values[i]));
  });
  return result;
}

/// Every second operand is stored as its transpose, and every third product has nothing that is added.
GroupedProduct make(const Size& size, DType dtype, Device device, std::uint32_t number) {
  const bool turned = number % 2 == 1;
  const auto drawn = [&](std::int64_t rows, std::int64_t columns, std::uint32_t step) {
    const Tensor stored =
        in(dtype, turned ? normals({size.batches, columns, rows}, step) : normals({size.batches, rows, columns}, step))
            .to(device);
    return turned ? stored.transpose(1, 2) : stored;
  };
  const Shape shape{size.batches, size.m, size.n};
  GroupedProduct product{drawn(size.m, size.k, 3 * number), drawn(size.k, size.n, 3 * number + 1),
                         Out(Tensor::full(shape, std::nan(""), {.dtype = dtype, .device = device}))};
  if (number % 3 != 0) product.addend = in(dtype, normals(shape, 3 * number + 2)).to(device);
  return product;
}

/// Of each element: sums of `k` products have an error of k u of the sum of magnitudes, and what becomes of them three
/// roundings more. A half product may be rounded before that, and is behind it.
void check(const GroupedProduct& product, const Combination& of) {
  const std::int64_t n = product.c.size(2), m = product.c.size(1), depth = product.a.size(2);
  const std::vector<double> a = product.a.contiguous().to_vector<double>(),
                            b = product.b.contiguous().to_vector<double>(), c = product.c.tensor().to_vector<double>();
  std::vector<double> added(c.size(), 0.0);
  if (product.addend.defined()) added = product.addend.to_vector<double>();
  const DType dtype = product.c.dtype();
  const double unit = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  const double stored = dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0.0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t column = at % n, row = at / n % m, batch = at / (n * m);
    double sum = 0.0, magnitude = 0.0;
    for (std::int64_t d = 0; d < depth; ++d) {
      const double term = a[static_cast<std::size_t>((batch * m + row) * depth + d)] *
                          b[static_cast<std::size_t>((batch * depth + d) * n + column)];
      sum += term;
      magnitude += std::abs(term);
    }
    const double identity = row == column ? of.identity : 0.0;
    const double expected = of.product * sum + of.addend * added[i] + identity;
    const double all = std::abs(of.product) * magnitude + std::abs(of.addend * added[i]) + std::abs(identity);
    const double bound = (static_cast<double>(depth) + 4.0) * unit * all +
                         stored * (std::abs(expected) + std::abs(of.product * sum)) + 1e-7 * stored;
    INFO(describe(product.c.tensor()) << ", element " << i << ": " << c[i] << " vs " << expected);
    REQUIRE(std::abs(c[i] - expected) <= 1.01 * bound);
  }
}

}  // namespace

TEST_CASE("grouped_gemm multiplies matrices of all sizes in one call, on the CPU and on a GPU", "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  const Combination of = GENERATE(Combination{}, Combination{2.0315, -4.775, 3.4445}, Combination{.addend = -1.0});
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (dtype == DType::f64 && device == kGpu) continue;
    CAPTURE(name_of(device), name_of(dtype), of.product);
    const std::vector<Size> sizes{{1, 1, 1, 1}, {3, 7, 5, 9}, {2, 33, 40, 20}, {1, 64, 8, 36}, {2, 5, 70, 3}};
    std::vector<GroupedProduct> products;
    for (std::uint32_t i = 0; i < sizes.size(); ++i) products.push_back(make(sizes[i], dtype, device, i));
    k::grouped_gemm(products, of);
    for (const GroupedProduct& product : products) check(product, of);
  }
}

TEST_CASE("grouped_gemm loads fours where all can be loaded so, and takes more products than one launch does",
          "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  const Combination of{0.5, 2.0, -1.0};
  CAPTURE(name_of(device));
  std::vector<GroupedProduct> products;
  for (std::uint32_t i = 0; i < 19; ++i)
    products.push_back(make({1 + i % 3, 4 + 4 * (i % 5), 8 + 4 * (i % 4), 4 + 4 * (i % 7)}, DType::f32, device, i));
  k::grouped_gemm(products, of);
  for (const GroupedProduct& product : products) check(product, of);
}

TEST_CASE("grouped_gemm stores single elements where rows do not come in fours", "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  const std::vector<GroupedProduct> products{make({2, 8, 6, 4}, DType::f32, device, 1)};  // operands come in fours
  k::grouped_gemm(products);
  check(products.front(), {});
}

// 17 x 16 tiles of 64 are more than 264.
TEST_CASE("grouped_gemm takes larger tiles where there is much to do", "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  const std::int64_t m = GENERATE(1088, 1087);  // by fours, and not
  CAPTURE(name_of(device), m);
  std::vector<GroupedProduct> products{make({1, m, 1024, 4}, DType::f32, device, 1),
                                       make({2, 8, 12, 4}, DType::f32, device, 2)};
  k::grouped_gemm(products, {0.5, 2.0, -1.0});
  for (const GroupedProduct& product : products) check(product, {0.5, 2.0, -1.0});
}

TEST_CASE("grouped_gemm of nothing does nothing, and sums of no products are zeros", "[cuda]") {
  const Device device = GENERATE(from_range(cpu_and_gpu()));
  CAPTURE(name_of(device));
  k::grouped_gemm({});
  const auto zeros = [&](const Shape& shape) { return Tensor::zeros(shape, {.device = device}); };
  const Tensor c = Tensor::full({1, 2, 3}, 7.0, {.device = device});
  k::grouped_gemm(std::vector<GroupedProduct>{{zeros({0, 2, 2}), zeros({0, 2, 2}), Out(zeros({0, 2, 2}))},
                                              {zeros({1, 2, 0}), zeros({1, 0, 3}), Out(c)}},
                  {.identity = 2.0});
  CHECK(c.to_vector<double>() == std::vector<double>{2, 0, 0, 0, 2, 0});
}

TEST_CASE("grouped_gemm refuses what is no group of products, in one line") {
  const Tensor x = Tensor::zeros({1, 2, 3}), y = Tensor::zeros({1, 3, 2}), c = Tensor::zeros({1, 2, 2});
  const auto refused = [](const GroupedProduct& product) {
    return error_of([&] { k::grouped_gemm(std::vector<GroupedProduct>{product}); });
  };
  CHECK(refused({x, y, Out(c)}) == "no error");
  CHECK_THAT(refused({x, Tensor(), Out(c)}), ContainsText("grouped_gemm: needs batches of matrices"));
  CHECK_THAT(refused({x, x, Out(c)}), ContainsText("grouped_gemm: shapes do not fit"));
  CHECK_THAT(refused({x, in(DType::f64, y), Out(c)}), ContainsText("must be of one floating dtype"));
  CHECK_THAT(refused({x, y, Out(c.transpose(1, 2))}), ContainsText("must be dense"));
  CHECK_THAT(refused({x, y, Out(c), c}), ContainsText("and not c itself"));
  CHECK_THAT(refused({c, c, Out(c)}), ContainsText("grouped_gemm: c f32[1, 2, 2] must not be a or b itself"));
  CHECK_THAT(refused({x, y, Out(c), x}), ContainsText("what is added must be a dense tensor like c"));
}

}  // namespace tandem::test
