"""Arithmetic that carries a bound of its own rounding error: running error analysis.

A Tracked holds f64 values and, for each, an upper bound of how far a computation in floats of unit roundoff u may
be from it, in units of u and to first order in u: every operation passes on the errors of its operands and adds one
rounding of its result; a sum of n terms adds n - 1 roundings of the sum of magnitudes, which covers every order of
addition (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, sections 3.3 and 4.2). Writing an op once in
this arithmetic derives its bound.
"""

import math

import numpy as np

UNIT_ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
# Relative error, in units of u, granted to a library function (exp, log, erf): vectorised ones are good to 2 ulp = 4 u.
FUNCTION_ERROR = 4.0


class Tracked:
    __array_priority__ = 100.0  # numpy arrays on the left leave operators to us

    def __init__(self, value, error=0.0):
        self.value = np.asarray(value, np.float64)
        self.error = np.broadcast_to(np.asarray(error, np.float64), self.value.shape)

    @staticmethod
    def of(x):
        return x if isinstance(x, Tracked) else Tracked(x)

    def rounded(self, roundings=1.0):
        return Tracked(self.value, self.error + roundings * np.abs(self.value))

    def __add__(self, other):
        other = Tracked.of(other)
        return Tracked(self.value + other.value, self.error + other.error).rounded()

    def __neg__(self):
        return Tracked(-self.value, self.error)

    def __sub__(self, other):
        return self + -Tracked.of(other)

    def __rsub__(self, other):
        return Tracked.of(other) - self

    def __mul__(self, other):
        other = Tracked.of(other)
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error
        return Tracked(self.value * other.value, error).rounded()

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other):
        other = Tracked.of(other)
        quotient = self.value / other.value
        return Tracked(quotient, (self.error + np.abs(quotient) * other.error) / np.abs(other.value)).rounded()

    def __rtruediv__(self, other):
        return Tracked.of(other) / self

    def function(self, value, slope):
        """f(self), given f and |f'| at the value."""
        return Tracked(value, np.abs(slope) * self.error).rounded(FUNCTION_ERROR)

    def exp(self):
        value = np.exp(self.value)
        return self.function(value, value)

    def expm1(self):
        return self.function(np.expm1(self.value), np.exp(self.value)).rounded(4.0)  # good to 4 ulp

    def log(self):
        return self.function(np.log(self.value), 1.0 / self.value)

    def log1p(self):
        return self.function(np.log1p(self.value), 1.0 / (1.0 + self.value)).rounded(2.0)  # good to 3 ulp

    def sqrt(self):
        value = np.sqrt(self.value)
        # A square root of nearly nothing: the error itself bounds how far the root can move.
        slope_error = self.error / np.maximum(2.0 * value, 1e-300)
        return Tracked(value, np.where(self.value > 0, slope_error, 0.0)).rounded()

    def erf(self):
        value = np.vectorize(math.erf, otypes=[np.float64])(self.value)
        return self.function(value, 2.0 / math.sqrt(math.pi) * np.exp(-self.value**2))

    def tanh(self):
        value = np.tanh(self.value)
        return self.function(value, 1.0 - value**2)

    def power(self, exponent):
        """To the power of exact numbers, for positive values."""
        value = self.value**exponent
        return self.function(value, exponent * value / self.value)

    def sum_to(self, shape):
        """Summed over what broadcasting adds to a shape."""
        missing = self.value.ndim - len(shape)
        axes = tuple(range(missing)) + tuple(
            missing + axis for axis, size in enumerate(shape) if size == 1 and self.value.shape[missing + axis] != 1
        )
        return self.sum(axis=axes).reshape(shape) if axes else self

    def sum(self, axis=None, keepdims=False):
        value = self.value.sum(axis=axis, keepdims=keepdims)
        terms = self.value.size // max(value.size, 1)
        magnitude = np.abs(self.value).sum(axis=axis, keepdims=keepdims)
        return Tracked(value, self.error.sum(axis=axis, keepdims=keepdims) + max(terms - 1, 0) * magnitude)

    def mean(self, axis=None, keepdims=False):
        total = self.sum(axis, keepdims)
        return total / (self.value.size // max(total.value.size, 1))

    def reshape(self, *shape):
        return Tracked(self.value.reshape(*shape), self.error.reshape(*shape))
