// Every family of convolution kernels for a GPU, each with a shape that it takes: for what must hold of all.
#pragma once

#include "tandem/kernels/conv/geometry.h"
#include "tandem/kernels/float32_products.h"
#include "tests/kernels/cuda_conv_support.h"

namespace tandem::test {

struct FamilyCase {
  ConvFamily family;
  ConvCase one;
  DType dtype;
  kernels::Float32Products products = kernels::Float32Products::full;

  std::string text() const { return family.name + " " + std::string(name_of(dtype)) + " " + one.text(); }
};

/// What of these small shapes, with several tiles, parts and steps, each family takes, two of a dtype at most: of the
/// families that an implementation stands for, as for warpgroups, or of the others.
inline std::vector<FamilyCase> cases_of(bool have_implementation) {
  namespace cuda = kernels::cuda;
  using kernels::Float32Products;
  constexpr std::size_t kMost = 2;
  const std::vector<ConvCase> shapes{square_case(2, 8, 5, 6, 12, 3, 1, 1, 1, 2), square_case(3, 3, 9, 10, 16, 3, 1),
                                     square_case(2, 8, 9, 8, 16, 3, 1, 2), square_case(1, 72, 8, 9, 136, 3, 1),
                                     square_case(2, 16, 9, 10, 24, 3, 1)};
  const auto takes = [](const cuda::ConvFamily& family, const ConvCase& one, DType dtype, Float32Products products) {
    const kernels::Float32ProductsScope scope(products);
    for (const auto pass :
         {kernels::PassKind::forward, kernels::PassKind::backward_input, kernels::PassKind::backward_weight})
      if (!family.obstacle(pass, one.geometry(), {dtype, kGpu}).empty()) return false;
    return true;
  };
  std::vector<FamilyCase> cases;
  const auto add = [&](const cuda::ConvFamily& family, DType dtype, Float32Products products) {
    std::size_t added = 0;
    for (const ConvCase& one : shapes) {
      if (added == kMost || !takes(family, one, dtype, products)) continue;
      if (products != Float32Products::full && takes(family, one, dtype, Float32Products::full)) continue;
      cases.push_back({passes_of(family), one, dtype, products});
      ++added;
    }
  };
  for (const cuda::ConvFamily& family : cuda::conv_families()) {
    if (family.stands_for.has_value() != have_implementation) continue;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) add(family, dtype, Float32Products::full);
    for (const auto products : {Float32Products::tf32, Float32Products::tf32x3}) add(family, DType::f32, products);
  }
  return cases;
}

inline std::vector<FamilyCase> family_cases() { return cases_of(false); }

/// The same for the kernels that only Hopper has; none where they do not run.
inline std::vector<FamilyCase> warpgroup_cases() { return cases_of(true); }

/// What the passes of a case make of inputs on the GPU.
struct FamilyResults {
  Tensor y, grad_x, grad_w;

  FamilyResults(const FamilyCase& c, const Tensor& x, const Tensor& w, const Tensor& grad_y)
      : y(poisoned_on_gpu(c.one.y(), c.dtype, kLast)),
        grad_x(poisoned_on_gpu(c.one.x(), c.dtype, kLast)),
        grad_w(poisoned_on_gpu(c.one.weight(), c.dtype, kLast)) {
    const kernels::Float32ProductsScope scope(c.products);
    const kernels::ConvGeometry g = c.one.geometry();
    c.family.forward(g, x, w, {}, Out(y));
    c.family.backward_input(g, grad_y, {}, w, Out(grad_x));
    c.family.backward_weight(g, x, grad_y, {}, Out(grad_w));
  }
};

}  // namespace tandem::test
