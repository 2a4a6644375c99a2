// Comparisons and logical combinations of each element.
#include "tandem/autograd/functions/compare.h"

#include "tandem/autograd/functions/broadcast.h"
#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/elementwise/compare.h"

namespace tandem::autograd {

namespace {

using kernels::Comparison;

Tensor compare(std::string_view op, Comparison comparison, const Tensor& a, const Tensor& b) {
  return unrecorded([&] {
    const Broadcast operands = broadcast(op, a, b);
    const Tensor& model = operands.out;  // for its shape and strides
    Tensor out = Tensor::empty(model.shape(), {DType::u8, Layout::row_major, model.device()});
    if (model.numel() > 0) out = out.as_strided(model.shape(), model.strides(), 0);
    kernels::compare(op, comparison, operands.a, operands.b, Out(out));
    return out;
  });
}

Tensor compare(std::string_view op, Comparison comparison, const Tensor& x, double number) {
  return compare(op, comparison, x, unrecorded([&] { return number_beside(op, number, x); }));
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare("eq", Comparison::eq, a, b); }
Tensor eq(const Tensor& x, double number) { return compare("eq", Comparison::eq, x, number); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare("ne", Comparison::ne, a, b); }
Tensor ne(const Tensor& x, double number) { return compare("ne", Comparison::ne, x, number); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare("lt", Comparison::lt, a, b); }
Tensor lt(const Tensor& x, double number) { return compare("lt", Comparison::lt, x, number); }
Tensor le(const Tensor& a, const Tensor& b) { return compare("le", Comparison::le, a, b); }
Tensor le(const Tensor& x, double number) { return compare("le", Comparison::le, x, number); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare("gt", Comparison::gt, a, b); }
Tensor gt(const Tensor& x, double number) { return compare("gt", Comparison::gt, x, number); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare("ge", Comparison::ge, a, b); }
Tensor ge(const Tensor& x, double number) { return compare("ge", Comparison::ge, x, number); }

Tensor logical_and(const Tensor& a, const Tensor& b) { return compare("logical_and", Comparison::logical_and, a, b); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return compare("logical_or", Comparison::logical_or, a, b); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return compare("logical_xor", Comparison::logical_xor, a, b); }
Tensor logical_not(const Tensor& x) { return compare("logical_not", Comparison::eq, x, 0); }

}  // namespace tandem::autograd
