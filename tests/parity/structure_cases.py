"""Matrix products of batches; parts of tensors, and tensors joined; comparisons; the largest elements."""

import numpy as np
import torch

from case import f32_values
from op_case import OpSpec, exact, make_cases, multilinear

PRODUCTS = {
    "matrices": ((7, 5), (5, 9)),
    "batch": ((3, 7, 5), (3, 5, 9)),
    "batches_of_batches": ((2, 3, 4, 5), (2, 3, 5, 6)),
    "one_on_the_right": ((4, 3, 7, 5), (5, 9)),
    "one_on_the_left": ((7, 5), (4, 3, 5, 9)),
    "both_broadcast": ((2, 1, 7, 5), (3, 5, 9)),
    "row": ((5,), (4, 5, 9)),
    "column": ((4, 7, 5), (5,)),
    "dot": ((300,), (300,)),
    "deep": ((2, 3, 300), (2, 300, 40)),
    "wide": ((2, 70, 33), (2, 33, 130)),
}


def matmul_specs(generator):
    for name, (a_shape, b_shape) in PRODUCTS.items():
        inputs = {"a": f32_values(generator, *a_shape), "b": f32_values(generator, *b_shape)}
        m, n = a_shape[-2] if len(a_shape) > 1 else 1, b_shape[-1] if len(b_shape) > 1 else 1
        depth, batches = a_shape[-1], int(np.prod(np.broadcast_shapes(a_shape[:-2], b_shape[:-2])))
        terms = {"output": depth, "grad.a": n * batches, "grad.b": m * batches}

        def function(tensors):
            return torch.matmul(tensors["a"], tensors["b"])

        bound = multilinear(function, terms)
        yield OpSpec(f"matmul.{name}", "matmul", inputs, function, lambda *args, b=bound: absolute(b(*args)))


def absolute(errors):
    return {name: np.abs(error) for name, error in errors.items()}


def part_specs(generator):
    x = f32_values(generator, 3, 4, 5, 2)
    for name, function, options in (
        ("from_ends", lambda t: t["x"][:, 1:-1], {"dim": 1, "start": 1, "end": -1}),
        ("cut_off", lambda t: t["x"][:, :, -100:3], {"dim": 2, "start": -100, "end": 3}),
        ("steps", lambda t: t["x"][:, :, -4:100:3], {"dim": -2, "start": -4, "end": 100, "step": 3}),
        ("nothing", lambda t: t["x"][3:1], {"dim": 0, "start": 3, "end": 1}),
    ):
        yield OpSpec(f"slice.{name}", "slice", {"x": x}, function, exact, options)
    yield OpSpec(
        "split.by_size",
        "split_by_size",
        {"x": x},
        lambda t: torch.cat(torch.split(t["x"], 3, dim=1)[::-1], dim=1),
        exact,
        {"size": 3, "dim": 1},
    )
    yield OpSpec(
        "split.into_sizes",
        "split_into_sizes",
        {"x": x},
        lambda t: torch.cat(torch.split(t["x"], [1, 0, 4], dim=2)[::-1], dim=2),
        exact,
        {"sizes": [1, 0, 4], "dim": 2},
    )
    a, b = f32_values(generator, 3, 2, 5), f32_values(generator, 3, 4, 5)
    yield OpSpec("concat", "concat", {"a": a, "b": b}, lambda t: torch.cat((t["a"], t["b"]), 1), exact, {"dim": 1})
    for dim in (0, 2, -1):
        yield OpSpec(
            f"stack.{dim}",
            "stack",
            {"a": a, "b": 2.0 * a},
            lambda t, d=dim: torch.stack((t["a"], t["b"]), d),
            exact,
            {"dim": dim},
        )


def topk_specs(generator):
    x = generator.permutation(3 * 7 * 10).reshape(3, 7, 10).astype(np.float64) - 100.0
    for k, dim, largest in ((1, -1, True), (4, -1, True), (10, -1, False), (3, 1, True), (2, 0, False)):
        yield OpSpec(
            f"topk.{k}_along_{dim}_{'largest' if largest else 'least'}",
            "topk",
            {"x": x},
            lambda t, k=k, d=dim, g=largest: torch.topk(t["x"], k, d, g).values,
            exact,
            {"k": k, "dim": dim, "largest": largest},
        )


def counted(result, tensors):
    """A result without a gradient, as numbers: the gradient of 0 is that of the anchor."""
    return result.to(tensors["anchor"].dtype) + 0.0 * tensors["anchor"]


def comparison_specs(generator):
    # Few different numbers, so that many are equal; signed zeros, infinities and NaN among them.
    values = np.array([-np.inf, -1.5, -0.0, 0.0, 0.25, 2.0, np.inf, np.nan])
    a, b, row = (values[generator.integers(0, len(values), shape)] for shape in ((6, 4, 5), (6, 4, 5), (5,)))
    anchor = np.zeros(())
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        function = getattr(torch, name)
        for other, operand in (("", b), (".broadcast", row)):
            yield OpSpec(
                f"{name}{other}",
                "compare",
                {"a": a, "b": operand, "anchor": anchor},
                lambda t, f=function: counted(f(t["a"], t["b"]), t),
                exact,
                {"comparison": name},
                constant=("a", "b"),
            )
        yield OpSpec(
            f"{name}.number",
            "compare",
            {"a": a, "anchor": anchor},
            lambda t, f=function: counted(f(t["a"], 0.25), t),
            exact,
            {"comparison": name, "number": 0.25},
            constant=("a",),
        )


def argmax_specs(generator):
    distinct = generator.permutation(3 * 7 * 10).reshape(3, 7, 10).astype(np.float64) - 100.0
    special = f32_values(generator, 4, 6)
    special[0, 3], special[1, 5], special[2, 0], special[3, :] = np.nan, np.inf, -np.inf, -np.inf
    special[3, 2] = -7.0
    for name, x, dim, keepdim in (
        ("last", distinct, -1, False),
        ("middle", distinct, 1, True),
        ("first", distinct, 0, False),
        ("special", special, 1, False),
    ):
        yield OpSpec(
            f"argmax.{name}",
            "argmax",
            {"x": x, "anchor": np.zeros(())},
            lambda t, d=dim, k=keepdim: counted(torch.argmax(t["x"], d, k), t),
            exact,
            {"dim": dim, "keepdim": keepdim},
            constant=("x",),
        )


def cases():
    generator = np.random.default_rng(11)
    specs = [*matmul_specs(generator), *part_specs(generator), *topk_specs(generator)]
    specs += [*comparison_specs(generator), *argmax_specs(generator)]
    for number, spec in enumerate(specs):
        yield from make_cases(spec, 4000 + number)
