// What users read of functions that are not in the op table: comparisons, argmax, choices, functions of their own.
#include "tandem/autograd/elementwise.h"
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tests/errors/bad_calls.h"

#include <cmath>

using namespace tandem;
using namespace tandem::autograd;
using namespace tandem::test;

namespace {

const Tensor kX = Tensor::zeros({2, 3}), kWide = Tensor::zeros({2, 4}),
             kDouble = Tensor::zeros({2, 3}, {.dtype = DType::f64}),
             kIntegers = Tensor::zeros({2, 3}, {.dtype = DType::i32}),
             kMask = Tensor::zeros({2, 3}, {.dtype = DType::u8});

Tensor twice(const Tensor& x) {
  return elementwise("twice", x, [](auto v) { return v + v; }, [](auto, auto grad) { return grad + grad; });
}

Tensor leaf() { return set_requires_grad(Tensor::zeros({2, 3})); }

}  // namespace

TEST_CASE("errors of functions read as recorded", "[errors]") {
  check_errors("functions",
               {
                   {"eq, shapes", [] { eq(kX, kWide); }},
                   {"ne, dtypes", [] { ne(kX, kDouble); }},
                   {"lt, an undefined tensor", [] { lt(kX, Tensor()); }},
                   {"le, integers of two dtypes", [] { le(kIntegers, kMask); }},
                   {"gt, integers and a fraction", [] { gt(kIntegers, 0.5); }},
                   {"eq, a mask and a number beyond it", [] { eq(kMask, 256.0); }},
                   {"logical_and, dtypes", [] { logical_and(kMask, kX); }},
                   {"logical_or, shapes", [] { logical_or(kX, kWide); }},
                   {"logical_not, an undefined tensor", [] { logical_not(Tensor()); }},
                   {"ge, an undefined tensor and a number", [] { ge(Tensor(), 0.0); }},
                   {"argmax, an undefined tensor", [] { argmax(Tensor(), 0); }},
                   {"argmax, a number", [] { argmax(Tensor::full({}, 1.0), 0); }},
                   {"argmax, integers", [] { argmax(kIntegers, 1); }},
                   {"argmax, no such dimension", [] { argmax(kX, 2); }},
                   {"argmax, no elements", [] { argmax(Tensor::zeros({2, 0}), 1); }},
                   {"where, a floating condition", [] { where(kX, kX, kX); }},
                   {"where, no condition", [] { where(Tensor(), kX, kX); }},
                   {"where, shapes", [] { where(kMask, kX, kWide); }},
                   {"where, dtypes", [] { where(kMask, kX, kDouble); }},
                   {"where, an undefined tensor and a number", [] { where(kMask, Tensor(), 1.0); }},
                   {"where, a fraction and integers", [] { where(kMask, 0.5, kIntegers); }},
                   {"where, a number and a mask of another shape",
                    [] { where(Tensor::zeros({5}, {.dtype = DType::u8}), kX, 1.0); }},
                   {"elementwise, an undefined tensor", [] { twice(Tensor()); }},
                   {"elementwise, integers", [] { twice(kIntegers); }},
                   {"clamp, NaN", [] { clamp(kX, std::nan(""), 1.0); }},
                   {"pow, an undefined tensor", [] { pow(Tensor(), 2.0); }},
                   {"topk, k", [] { topk(kX, 4); }},
                   {"split, a size of 0", [] { split(kX, 0, 1); }},
                   {"reshape, another count", [] { reshape(kX, {4, 2}); }},
                   {"operator+, shapes", [] { kX + kWide; }},
                   {"operator/, dtypes", [] { kX / kDouble; }},
                   {"set_requires_grad, integers", [] { set_requires_grad(kIntegers); }},
                   {"set_grad, another shape", [] { set_grad(leaf(), kWide); }},
                   {"set_grad, another dtype", [] { set_grad(leaf(), kDouble); }},
                   {"set_grad, the leaf's own memory",
                    [] {
                      const Tensor w = leaf();
                      set_grad(w, w.detach());
                    }},
                   {"set_grad, an expanded gradient", [] { set_grad(leaf(), Tensor::zeros({1, 3}).expand({2, 3})); }},
                   {"set_grad, of a result", [] { set_grad(scale(leaf(), 2.0), kX); }},
                   {"backward, many elements", [] { backward(scale(leaf(), 2.0)); }},
                   {"backward, nothing recorded", [] { backward(sum(kX)); }},
                   {"backward, twice",
                    [] {
                      const Tensor y = sum(scale(leaf(), 2.0) * kX);
                      backward(y);
                      backward(y);
                    }},
                   {"a raw write to a leaf", [] { leaf().fill(1.0); }},
               });
}
