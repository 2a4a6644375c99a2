"""Activations, arithmetic with broadcasting, reductions, the loss, casts, views."""

import math

import numpy as np
import torch
from torch.nn import functional

from case import f32_values
from op_case import OpSpec, exact, make_cases, multilinear
from tracked import Tracked

BROADCASTS = {
    "same": ((3, 4, 5), (3, 4, 5)),
    "channels": ((2, 6, 5, 3), (1, 6, 1, 1)),
    "row": ((7, 9), (9,)),
    "column": ((7, 1), (1, 5)),
    "scalar": ((4, 3), ()),
    "both_sides": ((3, 1, 4), (2, 1)),
}


def gelu_bound(inputs, grad, result):
    x = Tracked(inputs["x"])
    phi = 0.5 * (1.0 + (x * math.sqrt(0.5)).erf())
    density = (-0.5 * (x * x)).exp() * (1.0 / math.sqrt(2.0 * math.pi))
    return {"output": (x * phi).error, "grad.x": (Tracked(grad) * (phi + x * density)).error}


def silu_bound(inputs, grad, result):
    x = Tracked(inputs["x"])
    sigmoid = 1.0 / (1.0 + (-x).exp())
    return {"output": (x * sigmoid).error, "grad.x": (Tracked(grad) * (sigmoid * (1.0 + x * (1.0 - sigmoid)))).error}


def activation_specs(generator):
    # Ordinary values, and some far out where exp and erf saturate. Never 0, where ReLU's slope is a convention.
    x = np.concatenate([f32_values(generator, 400, low=-5, high=5), f32_values(generator, 56, low=-60, high=60)])
    x = np.where(x == 0, 1.0, x).reshape(2, 12, 19)
    yield OpSpec("relu", "relu", {"x": x}, lambda t: torch.relu(t["x"]), exact)
    yield OpSpec("relu.at_zero", "relu", {"x": np.zeros((3, 5))}, lambda t: torch.relu(t["x"]), exact)
    yield OpSpec("gelu", "gelu", {"x": x}, lambda t: functional.gelu(t["x"]), gelu_bound)
    yield OpSpec("silu", "silu", {"x": x}, lambda t: functional.silu(t["x"]), silu_bound)
    yield OpSpec("dropout.p0", "dropout", {"x": x}, lambda t: t["x"] * 1.0, exact, {"p": 0.0, "seed": 3, "step": 5})


def arithmetic_specs(generator):
    for name, (a_shape, b_shape) in BROADCASTS.items():
        inputs = {"a": f32_values(generator, *a_shape), "b": f32_values(generator, *b_shape)}
        size = int(np.prod(np.broadcast_shapes(a_shape, b_shape)))
        # A gradient summed over all broadcast elements adds at most `size` terms.
        terms = {
            "output": 2,
            "grad.a": size // max(int(np.prod(a_shape)), 1),
            "grad.b": size // max(int(np.prod(b_shape)), 1),
        }
        for op, function in (("add", lambda t: t["a"] + t["b"]), ("mul", lambda t: t["a"] * t["b"])):
            yield OpSpec(f"{op}.{name}", op, inputs, function, multilinear(function, terms))
    x = f32_values(generator, 5, 6, 7)
    size = x.size
    for op, function, terms, options in (
        ("scale", lambda t: t["x"] * -0.3, {}, {"factor": -0.3}),
        ("sum", lambda t: t["x"].sum(), {"output": size}, {}),
        ("mean", lambda t: t["x"].mean(), {"output": size}, {}),
    ):
        yield OpSpec(op, op, {"x": x}, function, absolute(multilinear(function, terms)), options)
    for dims in ((0,), (-1,), (0, 2), (2, 0, 1)):
        terms = {"output": 1 + int(np.prod([x.shape[dim] for dim in dims]))}
        for keepdim in (False, True):
            for op in ("sum", "mean"):
                function = lambda t, op=op, dims=dims, keepdim=keepdim: getattr(t["x"], op)(dims, keepdim=keepdim)
                name = f"{op}.dims{'_'.join(map(str, dims))}{'.kept' if keepdim else ''}"
                bound = absolute(multilinear(function, terms))
                yield OpSpec(name, f"{op}_along", {"x": x}, function, bound, {"dims": list(dims), "keepdim": keepdim})


def absolute(bound):
    return lambda *args: {name: np.abs(error) for name, error in bound(*args).items()}


def view_specs(generator):
    x = f32_values(generator, 3, 4, 5, 2)
    for name, op, function, options in (
        ("reshape", "reshape", lambda t: t["x"].reshape(6, 20), {"shape": [6, 20]}),
        ("flatten", "flatten", lambda t: t["x"].flatten(1), {}),
        ("permute", "permute", lambda t: t["x"].permute(3, 1, 0, 2), {"order": [3, 1, 0, 2]}),
        ("narrow", "narrow", lambda t: t["x"].narrow(2, 1, 3), {"dim": 2, "start": 1, "length": 3}),
        ("narrow_step", "narrow", lambda t: t["x"][:, :, 1:5:2], {"dim": 2, "start": 1, "length": 2, "step": 2}),
        ("select", "select", lambda t: t["x"].select(1, 2), {"dim": 1, "index": 2}),
        ("transpose", "transpose", lambda t: t["x"].transpose(1, 3), {"a": 1, "b": 3}),
        ("unsqueeze", "unsqueeze", lambda t: t["x"].unsqueeze(2), {"dim": 2}),
        ("clone", "clone", lambda t: t["x"].clone(), {}),
    ):
        yield OpSpec(name, op, {"x": x}, function, exact, options)
    x = f32_values(generator, 3, 1, 5)
    yield OpSpec("squeeze", "squeeze", {"x": x}, lambda t: t["x"].squeeze(1), exact, {"dim": 1})

    def expanded(tensors):
        return tensors["x"].expand(2, 3, 4, 5)

    bound = absolute(multilinear(expanded, {"grad.x": 8}))  # the gradient of an element is a sum over its 8 copies
    yield OpSpec("expand", "expand", {"x": x}, expanded, bound, {"shape": [2, 3, 4, 5]})


def cross_entropy_bound(smoothing):
    def bound(inputs, grad, result):
        z, labels, g = Tracked(inputs["logits"]), inputs["labels"], Tracked(grad)
        rows, classes = z.value.shape
        shifted = z - z.value.max(axis=1, keepdims=True)
        exponentials = shifted.exp()
        total = exponentials.sum(axis=1, keepdims=True)
        log_p = shifted - total.log()
        target = np.full((rows, classes), smoothing / classes)
        target[np.arange(rows), labels] += 1.0 - smoothing
        target = Tracked(target).rounded(2.0)
        per_row = -(log_p * target).sum(axis=1)
        grad_logits = g * (exponentials / total - target) / float(rows)
        return {"output": per_row.mean().error, "grad.logits": grad_logits.error}

    return bound


def cross_entropy_specs(generator):
    for rows, classes, smoothing, spread in (
        (8, 10, 0.0, 3),
        (8, 10, 0.1, 3),
        (5, 100, 0.25, 8),
        (33, 7, 0.0, 40),
        (1, 1, 0.0, 1),
    ):
        inputs = {
            "logits": f32_values(generator, rows, classes, low=-spread, high=spread),
            "labels": generator.integers(0, classes, rows),
        }
        yield OpSpec(
            f"softmax_cross_entropy.{rows}x{classes}_smoothing{smoothing}",
            "softmax_cross_entropy",
            inputs,
            lambda t, s=smoothing: functional.cross_entropy(t["logits"], t["labels"], label_smoothing=s),
            cross_entropy_bound(smoothing),
            {"label_smoothing": smoothing},
        )


def cases():
    generator = np.random.default_rng(2)
    specs = [
        *activation_specs(generator),
        *arithmetic_specs(generator),
        *view_specs(generator),
        *cross_entropy_specs(generator),
    ]
    for number, spec in enumerate(specs):
        yield from make_cases(spec, 1000 + number)
