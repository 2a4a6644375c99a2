"""Layer and group normalisation."""

import numpy as np
from torch.nn import functional

from case import f32_values
from op_case import OpSpec, make_cases
from tracked import Tracked


def row_norm_bound(columns, eps, parameter_of):
    """Of runs of `columns` elements; `parameter_of` gives the number of the weight of each element."""

    def bound(inputs, grad, result):
        x = Tracked(inputs["x"].reshape(-1, columns))
        numbers = parameter_of(np.arange(x.value.size)).reshape(x.value.shape)
        weight, bias = (
            inputs[name].ravel()[numbers] if name in inputs else np.full(numbers.shape, absent)
            for name, absent in (("weight", 1.0), ("bias", 0.0))
        )
        mean = x.mean(1, keepdims=True)
        # E[x^2] - E[x]^2, the rounder of the two common formulas, bounds both.
        inverse_std = 1.0 / ((x * x).mean(1, keepdims=True) - mean * mean + eps).sqrt()
        xhat = (x - mean) * inverse_std
        scale = inverse_std * weight
        # PyTorch may fold it all into one multiply-add, which is worse near the mean.
        y, folded = xhat * weight + bias, x * scale + (bias - mean * scale)
        g = Tracked(grad.reshape(-1, columns))
        scaled = g * weight
        sums = scaled.sum(1, keepdims=True), (scaled * xhat).sum(1, keepdims=True)
        grad_x = inverse_std * (scaled - sums[0] / float(columns) - xhat * (sums[1] / float(columns)))
        errors = {
            "output": np.maximum(y.error, folded.error).reshape(grad.shape),
            "grad.x": grad_x.error.reshape(grad.shape),
        }
        for name, terms in (("weight", g * xhat), ("bias", g)):
            if name in inputs:
                size = numbers.size // inputs[name].size
                each = terms.error + size * np.abs(terms.value)
                errors[f"grad.{name}"] = np.bincount(numbers.ravel(), each.ravel()).reshape(inputs[name].shape)
        return errors

    return bound


def parameters(generator, shape):
    return {"weight": f32_values(generator, *shape, low=0.5, high=1.5), "bias": f32_values(generator, *shape)}


def layer_norm_specs(generator):
    for name, shape, end, eps in (
        ("rows", (9, 13), (13,), 1e-5),
        ("tokens", (2, 7, 64), (64,), 1e-5),
        ("images", (3, 4, 5, 6), (4, 5, 6), 1e-3),
        ("wide", (4, 1536), (1536,), 1e-6),
    ):
        columns = int(np.prod(end))
        for affine in (True, False):
            inputs = {"x": f32_values(generator, *shape, low=-1, high=2)}
            if affine:
                inputs.update(parameters(generator, end))
            yield OpSpec(
                f"layer_norm.{name}{'' if affine else '.plain'}",
                "layer_norm",
                inputs,
                lambda t, e=end, p=eps: functional.layer_norm(t["x"], e, t.get("weight"), t.get("bias"), p),
                row_norm_bound(columns, eps, lambda i, c=columns: i % c),
                {"normalized_shape": list(end), "eps": eps},
            )


def group_norm_specs(generator):
    for name, shape, groups, eps in (
        ("image", (2, 6, 5, 7), 3, 1e-5),
        ("one_group", (3, 4, 3, 3), 1, 1e-5),
        ("instance", (2, 5, 6, 6), 5, 1e-3),
        ("sequence", (4, 8, 11), 2, 1e-5),
        ("matrix", (9, 12), 3, 1e-5),
        ("wide", (2, 32, 16, 16), 4, 1e-5),
    ):
        channels, pixels = shape[1], int(np.prod(shape[2:]))
        for affine in (True, False):
            inputs = {"x": f32_values(generator, *shape, low=-1, high=2)}
            if affine:
                inputs.update(parameters(generator, (channels,)))
            yield OpSpec(
                f"group_norm.{name}{'' if affine else '.plain'}",
                "group_norm",
                inputs,
                lambda t, g=groups, p=eps: functional.group_norm(t["x"], g, t.get("weight"), t.get("bias"), p),
                row_norm_bound(channels // groups * pixels, eps, lambda i, s=pixels, c=channels: i // s % c),
                {"groups": groups, "eps": eps},
            )


def cases():
    generator = np.random.default_rng(9)
    specs = [*layer_norm_specs(generator), *group_norm_specs(generator)]
    for number, spec in enumerate(specs):
        yield from make_cases(spec, 6000 + number)
