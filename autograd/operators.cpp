// Operators of tensors.
#include "tandem/autograd/operators.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/functions/compare.h"

namespace tandem {

Tensor operator+(const Tensor& a, const Tensor& b) { return autograd::add(a, b); }
Tensor operator+(const Tensor& x, double number) { return autograd::add(x, number); }
Tensor operator+(double number, const Tensor& x) { return autograd::add(x, number); }

Tensor operator-(const Tensor& a, const Tensor& b) { return autograd::sub(a, b); }
Tensor operator-(const Tensor& x, double number) { return autograd::sub(x, number); }
Tensor operator-(double number, const Tensor& x) { return autograd::sub(number, x); }
Tensor operator-(const Tensor& x) { return autograd::neg(x); }

Tensor operator*(const Tensor& a, const Tensor& b) { return autograd::mul(a, b); }
Tensor operator*(const Tensor& x, double number) { return autograd::mul(x, number); }
Tensor operator*(double number, const Tensor& x) { return autograd::mul(x, number); }

Tensor operator/(const Tensor& a, const Tensor& b) { return autograd::div(a, b); }
Tensor operator/(const Tensor& x, double number) { return autograd::div(x, number); }
Tensor operator/(double number, const Tensor& x) { return autograd::div(number, x); }

Tensor operator<(const Tensor& a, const Tensor& b) { return autograd::lt(a, b); }
Tensor operator<(const Tensor& x, double number) { return autograd::lt(x, number); }
Tensor operator<(double number, const Tensor& x) { return autograd::gt(x, number); }

Tensor operator<=(const Tensor& a, const Tensor& b) { return autograd::le(a, b); }
Tensor operator<=(const Tensor& x, double number) { return autograd::le(x, number); }
Tensor operator<=(double number, const Tensor& x) { return autograd::ge(x, number); }

Tensor operator>(const Tensor& a, const Tensor& b) { return autograd::gt(a, b); }
Tensor operator>(const Tensor& x, double number) { return autograd::gt(x, number); }
Tensor operator>(double number, const Tensor& x) { return autograd::lt(x, number); }

Tensor operator>=(const Tensor& a, const Tensor& b) { return autograd::ge(a, b); }
Tensor operator>=(const Tensor& x, double number) { return autograd::ge(x, number); }
Tensor operator>=(double number, const Tensor& x) { return autograd::le(x, number); }

}  // namespace tandem
