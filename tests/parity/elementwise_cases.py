"""Functions of each element: of one tensor, of two with broadcasting, of a tensor and a number."""

import math

import numpy as np
import torch
from torch.nn import functional

from case import f32_values
from op_case import OpSpec, exact, make_cases
from pointwise_cases import BROADCASTS
from tracked import Tracked


def unary(value, slope):
    """The bound of y = value(x) with grad_x = slope(x, y, grad), both in tracked arithmetic."""

    def bound(inputs, grad, result):
        x = Tracked(inputs["x"])
        y = value(x)
        return {"output": y.error, "grad.x": slope(x, y, Tracked(grad)).error}

    return bound


def sigmoid(x):
    return 1.0 / (1.0 + (-x).exp())


def celu_bound(alpha):
    """Four roundings of a value or a slope: alpha, the quotient and the product, and an exponential of two."""

    def bound(inputs, grad, result):
        quotient = 1.0 + np.abs(inputs["x"]) / alpha  # an error of which the exponential multiplies by
        return {name: 4.0 * quotient * np.abs(values) for name, values in result.items()}

    return bound


def softplus(x, beta):
    """log(1 + exp(beta x)) / beta by way of the greater of the two exponents."""
    scaled = x * beta
    positive = Tracked(np.maximum(scaled.value, 0), np.where(scaled.value > 0, scaled.error, 0.0))
    size = Tracked(np.abs(scaled.value), scaled.error)
    return (positive + (-size).exp().log1p()) / beta


def bounded(x):
    """Hardswish's factor, which is exact where it is cut off."""
    moved = x + 3.0
    inside = (moved.value > 0) & (moved.value < 6)
    return Tracked(np.clip(moved.value, 0, 6), np.where(inside, moved.error, 0.0)) / 6.0


def hardswish_slope(x, y, grad):
    del y
    inside = grad * (x / 3.0 + 0.5)
    return Tracked(inside.value, np.where(np.abs(x.value) < 3, inside.error, 0.0))


def unary_specs(generator):
    signed = f32_values(generator, 2, 12, 19, low=-5, high=5)
    signed = np.where(np.abs(signed) < 0.05, 1.0, signed)
    positive = np.abs(signed)
    for op, x, function, value, slope in (
        ("exp", signed * 8, torch.exp, lambda x: x.exp(), lambda x, y, g: g * y),
        ("expm1", signed, torch.expm1, lambda x: x.expm1(), lambda x, y, g: g * (y + 1.0)),
        ("log1p", positive, torch.log1p, lambda x: x.log1p(), lambda x, y, g: g / (x + 1.0)),
        ("log", positive, torch.log, lambda x: x.log(), lambda x, y, g: g / x),
        ("sqrt", positive, torch.sqrt, lambda x: x.sqrt(), lambda x, y, g: g / (2.0 * y)),
        ("rsqrt", positive, torch.rsqrt, lambda x: 1.0 / x.sqrt(), lambda x, y, g: -0.5 * g * (y * y * y)),
        ("reciprocal", signed, torch.reciprocal, lambda x: 1.0 / x, lambda x, y, g: -g * (y * y)),
        ("tanh", signed, torch.tanh, lambda x: x.tanh(), lambda x, y, g: g * (1.0 - y * y)),
        ("sigmoid", signed * 4, torch.sigmoid, sigmoid, lambda x, y, g: g * (1.0 - y) * y),
        ("hardswish", signed, functional.hardswish, lambda x: x * bounded(x), hardswish_slope),
    ):
        yield OpSpec(op, op, {"x": x}, lambda t, f=function: f(t["x"]), unary(value, slope))
    yield OpSpec("abs", "abs", {"x": signed}, lambda t: torch.abs(t["x"]), exact)
    yield OpSpec("abs.at_zero", "abs", {"x": np.zeros((3, 5))}, lambda t: torch.abs(t["x"]), exact)
    yield OpSpec("neg", "neg", {"x": signed}, lambda t: -t["x"], exact)
    # Not at the ends themselves, where PyTorch's gradient was 1 and is 0 in 2.15.
    inside = np.where((signed == -1.5) | (signed == 2.25), 1.0, signed)
    yield OpSpec(
        "clamp", "clamp", {"x": inside}, lambda t: torch.clamp(t["x"], -1.5, 2.25), exact, {"min": -1.5, "max": 2.25}
    )
    yield OpSpec(
        "leaky_relu",
        "leaky_relu",
        {"x": signed},
        lambda t: functional.leaky_relu(t["x"], 0.3),
        # The slope is rounded, and the product.
        lambda inputs, grad, result: {name: 2.0 * np.abs(values) for name, values in result.items()},
        {"negative_slope": 0.3},
    )
    for beta in (1.0, 2.5):
        yield OpSpec(
            f"softplus.{beta}",
            "softplus",
            {"x": signed},
            lambda t, b=beta: functional.softplus(t["x"], b),
            unary(lambda x, b=beta: softplus(x, b), lambda x, y, g, b=beta: g * sigmoid(x * b)),
            {"beta": beta},
        )
    for alpha in (1.0, 0.25):  # whose inverses f32 holds, which is what PyTorch's gradients take also in f64
        yield OpSpec(
            f"celu.{alpha}",
            "celu",
            {"x": signed},
            lambda t, a=alpha: functional.celu(t["x"], a),
            celu_bound(alpha),
            {"alpha": alpha},
        )
    yield OpSpec(
        "number_pow",
        "number_pow",
        {"x": signed},
        lambda t: torch.pow(1.75, t["x"]),
        unary(
            lambda x: (x * math.log(1.75)).exp().rounded(4.0),
            lambda x, y, g: g * ((x * math.log(1.75)).exp() * math.log(1.75)).rounded(4.0),
        ),
        {"base": 1.75},
    )
    for op, options in (("clamp_min", {"min": -1.5}), ("clamp_max", {"max": 2.25})):
        yield OpSpec(op, op, {"x": inside}, lambda t, o=options: torch.clamp(t["x"], **o), exact, options)
    for exponent in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.75, 2.0, 3.0):
        yield OpSpec(
            f"pow_number.{exponent}",
            "pow_number",
            {"x": positive},
            lambda t, e=exponent: torch.pow(t["x"], e),
            unary(
                lambda x, e=exponent: x.power(e),
                lambda x, y, g, e=exponent: g * (e * x.power(e - 1.0)).rounded(4.0),
            ),
            {"exponent": exponent},
        )


def number_specs(generator):
    x = f32_values(generator, 5, 6, 7, low=0.25, high=4)
    for op, function, value, slope in (
        ("add_number", lambda x: x + 0.75, lambda x: x + 0.75, lambda x, y, g: g),
        ("sub_number", lambda x: x - 0.75, lambda x: x - 0.75, lambda x, y, g: g),
        ("number_sub", lambda x: 0.75 - x, lambda x: 0.75 - x, lambda x, y, g: -g),
        ("div_number", lambda x: x / 0.75, lambda x: x / 0.75, lambda x, y, g: g / 0.75),
        ("number_div", lambda x: 0.75 / x, lambda x: 0.75 / x, lambda x, y, g: -g * (0.75 / x / x)),
    ):
        yield OpSpec(op, op, {"x": x}, lambda t, f=function: f(t["x"]), unary(value, slope), {"number": 0.75})


def binary(value, left, right):
    """The same of two tensors that broadcast."""

    def bound(inputs, grad, result):
        a, b = (Tracked(values) for values in np.broadcast_arrays(inputs["a"], inputs["b"]))
        gradients = {"a": left(a, b, Tracked(grad)), "b": right(a, b, Tracked(grad))}
        errors = {f"grad.{name}": gradient.sum_to(inputs[name].shape).error for name, gradient in gradients.items()}
        return {"output": value(a, b).error, **errors}

    return bound


def power(a, b):
    value = a.value**b.value
    return a.function(value, b.value * value / a.value)


def binary_specs(generator):
    for name, (a_shape, b_shape) in BROADCASTS.items():
        a = f32_values(generator, *a_shape, low=0.25, high=4)
        b = f32_values(generator, *b_shape, low=0.25, high=4)
        for op, function, bound in (
            ("sub", lambda a, b: a - b, binary(lambda a, b: a - b, lambda a, b, g: g, lambda a, b, g: -g)),
            (
                "div",
                lambda a, b: a / b,
                binary(lambda a, b: a / b, lambda a, b, g: g / b, lambda a, b, g: -g * (a / b / b)),
            ),
            (
                "pow",
                torch.pow,
                binary(
                    power,
                    lambda a, b, g: g * (b * power(a, b - 1.0)).rounded(4.0),
                    lambda a, b, g: g * (power(a, b) * a.log()),
                ),
            ),
        ):
            yield OpSpec(f"{op}.{name}", op, {"a": a, "b": b}, lambda t, f=function: f(t["a"], t["b"]), bound)
    # Whole numbers, many of them equal.
    a, b = (generator.integers(-2, 3, (6, 7)).astype(np.float64) for _ in range(2))
    for op, function in (("maximum", torch.maximum), ("minimum", torch.minimum)):
        yield OpSpec(op, op, {"a": a, "b": b}, lambda t, f=function: f(t["a"], t["b"]), exact)
    condition = generator.integers(0, 3, (6, 7)).astype(np.uint8)
    yield OpSpec(
        "where",
        "where",
        {"condition": condition, "a": a, "b": b},
        lambda t: torch.where(t["condition"].bool(), t["a"], t["b"]),
        exact,
    )


def cases():
    generator = np.random.default_rng(7)
    specs = [*unary_specs(generator), *number_specs(generator), *binary_specs(generator)]
    for number, spec in enumerate(specs):
        yield from make_cases(spec, 3000 + number)
