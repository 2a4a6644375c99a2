"""Convolution and linear layers, plain and fused with ReLU."""

import numpy as np
import torch
import winograd_bounds
from torch.nn import functional

from case import f32_values
from op_case import SAFETY, OpSpec, make_cases, multilinear
from tracked import UNIT_ROUNDOFF

# name: N, C, H, W, K, R, S, stride, padding, dilation, groups
GEOMETRIES = {
    "3x3_same": (2, 5, 9, 7, 33, 3, 3, (1, 1), (1, 1), (1, 1), 1),
    "3x3_first_layer": (2, 3, 32, 32, 32, 3, 3, (1, 1), (1, 1), (1, 1), 1),
    "3x3_wide": (2, 64, 16, 16, 128, 3, 3, (1, 1), (1, 1), (1, 1), 1),
    "3x3_deep": (2, 256, 8, 8, 256, 3, 3, (1, 1), (1, 1), (1, 1), 1),
    "3x3_odd_channels": (3, 33, 11, 13, 17, 3, 3, (1, 1), (1, 1), (1, 1), 1),
    "3x3_no_padding": (2, 16, 10, 9, 24, 3, 3, (1, 1), (0, 0), (1, 1), 1),
    "3x3_stride2": (2, 16, 13, 16, 32, 3, 3, (2, 2), (1, 1), (1, 1), 1),
    "stride_2x1_padding_0x2": (2, 6, 12, 11, 8, 3, 5, (2, 1), (0, 2), (1, 1), 1),
    "dilation2": (2, 8, 14, 12, 12, 3, 3, (1, 1), (2, 2), (2, 2), 1),
    "dilation_1x3_stride_3x2": (1, 4, 15, 17, 6, 2, 3, (3, 2), (1, 3), (1, 3), 1),
    "groups2": (2, 8, 9, 9, 12, 3, 3, (1, 1), (1, 1), (1, 1), 2),
    "depthwise": (2, 16, 10, 10, 16, 3, 3, (1, 1), (1, 1), (1, 1), 16),
    "depthwise_twice_stride2": (2, 6, 9, 9, 12, 3, 3, (2, 2), (1, 1), (1, 1), 6),
    "1x1": (3, 24, 7, 5, 40, 1, 1, (1, 1), (0, 0), (1, 1), 1),
    "1x1_stride2": (2, 24, 8, 8, 40, 1, 1, (2, 2), (0, 0), (1, 1), 1),
    "7x7_stride2": (1, 3, 21, 20, 16, 7, 7, (2, 2), (3, 3), (1, 1), 1),
    "whole_image": (4, 7, 4, 5, 3, 4, 5, (1, 1), (0, 0), (1, 1), 1),
    "one_of_all": (1, 1, 1, 1, 1, 1, 1, (1, 1), (0, 0), (1, 1), 1),
}
# name: N, C, H, W, K, R, S, stride, padding, output_padding, dilation, groups
TRANSPOSED_GEOMETRIES = {
    "3x3_same": (2, 5, 9, 7, 33, 3, 3, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "3x3_wide": (2, 64, 16, 16, 32, 3, 3, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "2x2_stride2": (2, 16, 7, 5, 8, 2, 2, (2, 2), (0, 0), (0, 0), (1, 1), 1),
    "4x4_stride2": (2, 6, 8, 8, 16, 4, 4, (2, 2), (1, 1), (0, 0), (1, 1), 1),
    "3x3_stride_2x3_output_padding_1x2": (2, 4, 5, 6, 7, 3, 3, (2, 3), (1, 0), (1, 2), (1, 1), 1),
    "dilation_1x2": (1, 3, 6, 6, 5, 3, 2, (1, 2), (0, 1), (0, 1), (1, 2), 1),
    "dilation_2x4_output_padding_1x3": (2, 3, 5, 4, 4, 3, 2, (1, 2), (1, 1), (1, 3), (2, 4), 1),
    "groups2": (2, 8, 5, 5, 12, 3, 3, (2, 2), (1, 1), (1, 1), (1, 1), 2),
    "1x1": (3, 24, 7, 5, 10, 1, 1, (1, 1), (0, 0), (0, 0), (1, 1), 1),
    "from_one_pixel": (4, 9, 1, 1, 3, 4, 5, (1, 1), (0, 0), (0, 0), (1, 1), 1),
}
LINEAR_SIZES = {"small": (3, 5, 7), "classifier": (16, 256, 10), "wide": (9, 1000, 33), "one": (1, 1, 1), "rank4": (2, 3, 4, 6, 5)}


def relu_spec(spec, plain, plain_bound):
    """The spec with a ReLU behind: it does not widen the bound, but gradients where the sign of its input is within
    rounding are left out on both sides."""

    def undecided(inputs):
        with torch.no_grad():
            value = plain({name: torch.from_numpy(array) for name, array in inputs.items()}).numpy()
        error = plain_bound(inputs, np.zeros_like(value), None)["output"]
        return np.abs(value) <= 2 * SAFETY * UNIT_ROUNDOFF["f32"] * error

    def bound(inputs, grad, result):
        with torch.no_grad():
            value = plain({name: torch.from_numpy(array) for name, array in inputs.items()}).numpy()
        return plain_bound(inputs, np.where(value > 0, grad, 0.0), result)

    spec.function = lambda t: torch.relu(plain(t))
    spec.bound = bound
    spec.grad_filter = lambda inputs, grad: np.where(undecided(inputs), 0.0, grad)
    return spec


def conv_specs(name, geometry, generator, impl="auto"):
    n, c, h, w, k, r, s, stride, padding, dilation, groups = geometry
    scale = 1.0 / np.sqrt(c // groups * r * s)
    inputs = {
        "x": f32_values(generator, n, c, h, w),
        "weight": f32_values(generator, k, c // groups, r, s, low=-scale, high=scale),
        "bias": f32_values(generator, k),
    }
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)

    def function(t):
        return functional.conv2d(t["x"], t["weight"], t.get("bias"), **options)

    out = functional.conv2d(torch.zeros(n, c, h, w), torch.zeros(k, c // groups, r, s), **options).shape
    pixels = n * out[2] * out[3]
    terms = {
        "output": c // groups * r * s + 1,
        "grad.x": k // groups * r * s,
        "grad.weight": pixels,
        "grad.bias": pixels,
    }
    bound = multilinear(function, terms)
    if impl == "auto" and winograd_bounds.applies(stride, dilation, groups, (r, s), (c, k)):
        bound = winograd_bound(bound, padding)
    sent = {"impl": impl, **{key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}}
    suffix = "" if impl == "auto" else f".{impl}"
    dtypes = ("f64", "f32") if impl == "auto" else ("f32",)
    yield OpSpec(f"conv2d.{name}{suffix}", "conv2d", inputs, function, bound, sent, dtypes=dtypes)
    yield relu_spec(
        OpSpec(f"conv_bias_relu.{name}{suffix}", "conv_bias_relu", inputs, None, None, sent, dtypes=dtypes),
        function,
        bound,
    )
    if name == "3x3_same":
        bare = {key: value for key, value in inputs.items() if key != "bias"}
        yield OpSpec(f"conv2d.{name}_no_bias{suffix}", "conv2d", bare, function, bound, sent, dtypes=dtypes)


def transposed_specs(name, geometry, generator, impl="auto"):
    n, c, h, w, k, r, s, stride, padding, output_padding, dilation, groups = geometry
    scale = 1.0 / np.sqrt(c // groups * r * s)
    inputs = {
        "x": f32_values(generator, n, c, h, w),
        "weight": f32_values(generator, c, k // groups, r, s, low=-scale, high=scale),
        "bias": f32_values(generator, k),
    }
    options = dict(
        stride=stride, padding=padding, output_padding=output_padding, dilation=dilation, groups=groups
    )

    def function(t):
        return functional.conv_transpose2d(t["x"], t["weight"], t.get("bias"), **options)

    out = function({key: torch.zeros(value.shape) for key, value in inputs.items()}).shape
    terms = {
        "output": c // groups * r * s + 1,
        "grad.x": k // groups * r * s,
        "grad.weight": n * h * w,
        "grad.bias": n * out[2] * out[3],
    }
    bound = multilinear(function, terms)
    if impl == "auto" and winograd_bounds.applies(stride, dilation, groups, (r, s), (c, k)):
        bound = winograd_bound(bound, padding, transposed=True)
    sent = {"impl": impl, **{key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}}
    suffix = "" if impl == "auto" else f".{impl}"
    dtypes = ("f64", "f32") if impl == "auto" else ("f32",)
    for bias in (True, False) if name == "groups2" else (True,):
        chosen = inputs if bias else {key: inputs[key] for key in ("x", "weight")}
        yield OpSpec(
            f"conv_transpose2d.{name}{'' if bias else '_no_bias'}{suffix}",
            "conv_transpose2d",
            chosen,
            function,
            bound,
            sent,
            dtypes=dtypes,
        )


def winograd_bound(direct, padding, transposed=False):
    """Whichever of the two algorithms runs. In a transposed convolution x is where a convolution has the gradient of its
    output, and the other way round."""
    of_images, of_outputs = ("output", "grad.x") if transposed else ("grad.x", "output")

    def bound(inputs, grad, result):
        errors = direct(inputs, grad, result)
        images, outputs = (grad, inputs["x"]) if transposed else (inputs["x"], grad)
        found = {
            of_outputs: winograd_bounds.forward_error(images, inputs["weight"], padding),
            of_images: winograd_bounds.input_gradient_error(outputs, inputs["weight"], padding),
            "grad.weight": winograd_bounds.weight_gradient_error(images, outputs, padding),
        }
        for name, error in found.items():
            errors[name] = np.maximum(errors[name], error)
        return errors

    return bound


def linear_specs(name, sizes, generator):
    *leading, inner, outer = sizes
    rows = int(np.prod(leading))
    scale = 1.0 / np.sqrt(inner)
    inputs = {
        "x": f32_values(generator, *leading, inner),
        "weight": f32_values(generator, outer, inner, low=-scale, high=scale),
        "bias": f32_values(generator, outer),
    }

    def function(t):
        return functional.linear(t["x"], t["weight"], t.get("bias"))

    bound = multilinear(function, {"output": inner + 1, "grad.x": outer, "grad.weight": rows, "grad.bias": rows})
    yield OpSpec(f"linear.{name}", "linear", inputs, function, bound)
    yield OpSpec(f"linear.{name}_no_bias", "linear", {key: inputs[key] for key in ("x", "weight")}, function, bound)
    yield relu_spec(OpSpec(f"linear_relu.{name}", "linear_relu", inputs, None, None), function, bound)


def cases():
    generator = np.random.default_rng(1)
    specs = []
    for impl in ("auto", "reference", "onednn"):
        for name, geometry in GEOMETRIES.items():
            specs += conv_specs(name, geometry, generator, impl)
        for name, geometry in TRANSPOSED_GEOMETRIES.items():
            specs += transposed_specs(name, geometry, generator, impl)
    for name, sizes in LINEAR_SIZES.items():
        specs += linear_specs(name, sizes, generator)
    for number, spec in enumerate(specs):
        yield from make_cases(spec, 100 + number)
