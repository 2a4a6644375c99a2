"""Pooling, batch norm, padding, cropping, flipping."""

import math

import numpy as np
import torch
from torch.nn import functional

from case import f32_values
from op_case import SAFETY, OpSpec, exact, make_cases, multilinear
from tracked import UNIT_ROUNDOFF, Tracked

# name: kernel, stride, padding, ceil_mode, count_include_pad
POOLS = {
    "2x2": ((2, 2), (2, 2), (0, 0), False, True),
    "3x3_stride2": ((3, 3), (2, 2), (1, 1), False, True),
    "3x3_overlapping": ((3, 3), (1, 1), (1, 1), False, True),
    "3x2": ((3, 2), (2, 1), (1, 0), False, True),
    "ceil": ((2, 2), (2, 2), (0, 0), True, True),
    "ceil_3x3": ((3, 3), (2, 2), (1, 1), True, True),
    "count_inside": ((3, 3), (2, 2), (1, 1), False, False),
    "ceil_count_inside": ((3, 3), (2, 2), (1, 1), True, False),
}
SHAPES = {"even": (2, 5, 8, 10), "odd": (2, 33, 9, 7)}


def pool_specs(generator):
    for shape_name, shape in SHAPES.items():
        x = f32_values(generator, *shape)
        ties = generator.integers(0, 3, shape).astype(np.float64)  # many equal maxima: the first one wins
        for name, (kernel, stride, padding, ceil, inside) in POOLS.items():
            arguments = dict(stride=stride, padding=padding, ceil_mode=ceil)
            options = dict(kernel=list(kernel), stride=list(stride), padding=list(padding), ceil_mode=ceil)
            windows = int(np.prod([-(-k // s) for k, s in zip(kernel, stride)]))  # that cover one pixel
            if inside:

                def largest(t, kernel=kernel, arguments=arguments):
                    return functional.max_pool2d(t["x"], kernel, **arguments)

                def max_bound(inputs, grad, result, function=largest, windows=windows):
                    sums = multilinear(function, {"grad.x": windows}, constant=("x",))(inputs, grad, result)
                    return {"output": 0.0, "grad.x": sums["grad.x"]}

                for suffix, values in (("", x), (".ties", ties)):
                    yield OpSpec(
                        f"max_pool2d.{name}.{shape_name}{suffix}",
                        "max_pool2d",
                        {"x": values},
                        largest,
                        max_bound,
                        options,
                    )

            def average(t, kernel=kernel, arguments=arguments, inside=inside):
                return functional.avg_pool2d(t["x"], kernel, count_include_pad=inside, **arguments)

            bound = multilinear(average, {"output": kernel[0] * kernel[1], "grad.x": windows})
            yield OpSpec(
                f"avg_pool2d.{name}.{shape_name}",
                "avg_pool2d",
                {"x": x},
                average,
                bound,
                {**options, "count_include_pad": inside},
            )

        def overall(t):
            return functional.adaptive_avg_pool2d(t["x"], 1)

        yield OpSpec(
            f"global_avg_pool2d.{shape_name}",
            "global_avg_pool2d",
            {"x": x},
            overall,
            multilinear(overall, {"output": shape[2] * shape[3]}),
        )


def batch_norm_value(inputs, training, eps):
    """Tracked mean, variance, 1/std, xhat and y."""
    x = Tracked(inputs["x"])
    axes = (0, *range(2, x.value.ndim))
    column = (1, -1) + (1,) * (x.value.ndim - 2)
    if training:
        mean = x.mean(axes, keepdims=True)
        # E[x^2] - E[x]^2, the rounder of the two common formulas, bounds both.
        variance = (x * x).mean(axes, keepdims=True) - mean * mean
    else:
        mean, variance = Tracked(inputs["running_mean"].reshape(column)), Tracked(inputs["running_var"].reshape(column))
    inverse_std = 1.0 / (variance + eps).sqrt()
    xhat = (x - mean) * inverse_std
    scale, bias = inverse_std * inputs["weight"].reshape(column), inputs["bias"].reshape(column)
    # PyTorch folds it all into one multiply-add, which is worse near the mean; others may not.
    folded = x * scale + (bias - mean * scale)
    y = xhat * inputs["weight"].reshape(column) + bias
    y = Tracked(y.value, np.maximum(y.error, folded.error))
    return axes, column, mean, variance, inverse_std, xhat, y


def activated(y, activation):
    """What stands behind batch norm, and its slope."""
    if activation == "gelu":
        phi = 0.5 * (1.0 + (y * math.sqrt(0.5)).erf())
        return y * phi, phi + y * ((-0.5 * (y * y)).exp() * (1.0 / math.sqrt(2.0 * math.pi)))
    if activation == "silu":
        sigmoid = 1.0 / (1.0 + (-y).exp())
        return y * sigmoid, sigmoid * (1.0 + y * (1.0 - sigmoid))
    return y, Tracked(np.where(y.value > 0, 1.0, 0.0) if activation == "relu" else 1.0)


def batch_norm_bound(training, momentum, eps, activation):
    def bound(inputs, grad, result):
        axes, column, mean, variance, inverse_std, xhat, y = batch_norm_value(inputs, training, eps)
        count = float(xhat.value.size // mean.value.size)
        y, slope = activated(y, activation)
        g = grad * slope
        grad_bias, grad_weight = g.sum(axes, keepdims=True), (g * xhat).sum(axes, keepdims=True)
        scaled = inverse_std * inputs["weight"].reshape(column)
        inner = g - grad_bias / count - xhat * grad_weight / count if training else g
        errors = {
            "output": y.error,
            "grad.x": (scaled * inner).error,
            "grad.weight": grad_weight.error.ravel(),
            "grad.bias": grad_bias.error.ravel(),
            "state.running_mean": 0.0,
            "state.running_var": 0.0,
        }
        if training:
            errors["state.running_mean"] = (
                Tracked(inputs["running_mean"]) * (1.0 - momentum) + mean.reshape(-1) * momentum
            ).error
            unbiased = variance.reshape(-1) * (count / (count - 1.0))
            errors["state.running_var"] = (
                Tracked(inputs["running_var"]) * (1.0 - momentum) + unbiased * momentum
            ).error
        return errors

    return bound


def batch_norm_specs(generator):
    shapes = {
        "image": (4, 6, 5, 7),
        "wide": (8, 64, 8, 8),
        "odd": (3, 33, 3, 5),
        "pixel": (6, 5, 1, 1),
        "matrix": (9, 13),
    }
    for name, shape in shapes.items():
        for training in (True, False):
            for activation in ("none", "relu", "gelu", "silu"):
                channels, momentum, eps = shape[1], 0.3, 1e-3 if name == "odd" else 1e-5
                inputs = {
                    "x": f32_values(generator, *shape, low=-1, high=2),
                    "weight": f32_values(generator, channels, low=0.5, high=1.5),
                    "bias": f32_values(generator, channels),
                    "running_mean": f32_values(generator, channels),
                    "running_var": f32_values(generator, channels, low=0.5, high=2),
                }

                def function(t, training=training, activation=activation, momentum=momentum, eps=eps):
                    y = functional.batch_norm(
                        t["x"], t["running_mean"], t["running_var"], t["weight"], t["bias"], training, momentum, eps
                    )
                    return y if activation == "none" else getattr(functional, activation)(y)

                def decided(inputs, grad, training=training, eps=eps):
                    y = batch_norm_value(inputs, training, eps)[-1]
                    return np.where(np.abs(y.value) <= 2 * SAFETY * UNIT_ROUNDOFF["f32"] * y.error, 0.0, grad)

                yield OpSpec(
                    f"batch_norm{'' if activation == 'none' else '_' + activation}.{name}.{'train' if training else 'eval'}",
                    "batch_norm",
                    inputs,
                    function,
                    batch_norm_bound(training, momentum, eps, activation),
                    {"training": training, "momentum": momentum, "eps": eps, "activation": activation},
                    state=("running_mean", "running_var"),
                    grad_filter=decided if activation == "relu" else None,
                )


def border_specs(generator):
    x = f32_values(generator, 2, 3, 6, 7)
    for mode, torch_mode in (("zero", "constant"), ("reflect", "reflect")):
        for padding in ((2, 2, 2, 2), (1, 3, 0, 2)):  # left, right, top, bottom

            def pad(t, padding=padding, torch_mode=torch_mode):
                return functional.pad(t["x"], padding, mode=torch_mode)

            bound = multilinear(pad, {"grad.x": 9})
            yield OpSpec(
                f"pad2d.{mode}.{'_'.join(map(str, padding))}",
                "pad2d",
                {"x": x},
                pad,
                lambda *args, bound=bound: {**bound(*args), "output": 0.0},
                {"padding": list(padding), "mode": mode},
            )
    yield OpSpec(
        "crop2d",
        "crop2d",
        {"x": x},
        lambda t: t["x"][:, :, 1:5, 2:7],
        exact,
        {"top": 1, "left": 2, "height": 4, "width": 5},
    )
    yield OpSpec("flip_horizontal", "flip_horizontal", {"x": x}, lambda t: t["x"].flip(3), exact)


def cases():
    generator = np.random.default_rng(3)
    specs = [*pool_specs(generator), *batch_norm_specs(generator), *border_specs(generator)]
    for number, spec in enumerate(specs):
        yield from make_cases(spec, 2000 + number)
