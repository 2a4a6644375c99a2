// Every family of convolution kernels for a GPU, each with a shape that it takes: for what must hold of all.
#pragma once

#include "kernels/float32_products.h"
#include "tests/kernels/cuda_conv_support.h"

namespace tandem::test {

struct FamilyCase {
  ConvFamily family;
  ConvCase one;
  DType dtype;
  kernels::Float32Products products = kernels::Float32Products::full;

  std::string text() const { return family.name + " " + std::string(name_of(dtype)) + " " + one.text(); }
};

/// Small shapes with several tiles, parts and steps.
inline std::vector<FamilyCase> family_cases() {
  namespace cuda = kernels::cuda;
  const ConvCase small = square_case(2, 16, 9, 10, 24, 3, 1), strided = square_case(2, 8, 9, 8, 16, 3, 1, 2);
  const ConvCase first = square_case(3, 3, 9, 10, 16, 3, 1), deep = square_case(1, 72, 8, 9, 136, 3, 1);
  const ConvFamily naive{"naive", cuda::naive::forward, cuda::naive::backward_input, cuda::naive::backward_weight};
  const ConvFamily tile{"tile", cuda::tile::forward, cuda::tile::backward_input, cuda::tile::backward_weight};
  const ConvFamily few{"few channels", cuda::few_channels::forward, cuda::tile::backward_input,
                       cuda::few_channels::backward_weight};
  const ConvFamily gemm{"implicit product", cuda::implicit_gemm::forward, cuda::implicit_gemm::backward_input,
                        cuda::implicit_gemm::backward_weight};
  const ConvFamily stationary{"stationary weights", cuda::stationary::forward, cuda::stationary::backward_input,
                              cuda::stationary::backward_weight};
  std::vector<FamilyCase> cases;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    cases.push_back({naive, square_case(2, 8, 5, 6, 12, 3, 1, 1, 1, 2), dtype});
    cases.push_back({tile, strided, dtype});
    cases.push_back({tile, first, dtype});
  }
  for (const DType dtype : {DType::f16, DType::bf16}) {
    cases.push_back({few, first, dtype});
    cases.push_back({gemm, strided, dtype});
    cases.push_back({gemm, deep, dtype});
    cases.push_back({stationary, small, dtype});
  }
  for (const auto products : {kernels::Float32Products::tf32, kernels::Float32Products::tf32x3})
    cases.push_back({gemm, small, DType::f32, products});
  return cases;
}

/// The same for the kernels that only Hopper has; none where they do not run.
inline std::vector<FamilyCase> warpgroup_cases() {
  namespace warpgroup = kernels::cuda::warpgroup;
  const ConvFamily family{"warpgroups", warpgroup::forward, warpgroup::backward_input, warpgroup::backward_weight};
  std::vector<FamilyCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const ConvCase& one : {square_case(2, 16, 9, 10, 24, 3, 1), square_case(1, 72, 8, 9, 136, 3, 1)})
      if (warpgroup::obstacle(one.geometry(), dtype, {poisoned_on_gpu({8}, dtype)}).empty())
        cases.push_back({family, one, dtype});
  return cases;
}

/// What the passes of a case make of inputs on the GPU.
struct FamilyResults {
  Tensor y, grad_x, grad_w;

  FamilyResults(const FamilyCase& c, const Tensor& x, const Tensor& w, const Tensor& grad_y)
      : y(poisoned_on_gpu(c.one.y(), c.dtype, kLast)),
        grad_x(poisoned_on_gpu(c.one.x(), c.dtype, kLast)),
        grad_w(poisoned_on_gpu(c.one.weight(), c.dtype, kLast)) {
    const kernels::Float32ProductsScope scope(c.products);
    const kernels::ConvGeometry g = c.one.geometry();
    c.family.forward(g, x, w, {}, y);
    c.family.backward_input(g, grad_y, {}, w, grad_x);
    c.family.backward_weight(g, x, grad_y, {}, grad_w);
  }
};

}  // namespace tandem::test
