"""Losses of each element, the negative log likelihood, softmax and its logarithm."""

import numpy as np
import torch
from torch.nn import functional

from case import f32_values
from op_case import OpSpec, make_cases
from tracked import Tracked

REDUCTIONS = ("mean", "sum", "none")


def reduced(losses, reduction):
    return {"mean": losses.mean, "sum": losses.sum, "none": lambda: losses}[reduction]()


def of_each(grad, shape, reduction):
    """The gradient of each loss."""
    everywhere = Tracked(np.broadcast_to(grad, shape))
    return everywhere / float(np.prod(shape)) if reduction == "mean" else everywhere


def squares(x, target, grad):
    difference = x - target
    slope = 2.0 * difference * grad
    return difference * difference, {"grad.x": slope, "grad.target": -slope}


def distances(x, target, grad):
    difference = x - target
    slope = Tracked(np.sign(difference.value) * grad.value, grad.error)
    return Tracked(np.abs(difference.value), difference.error), {"grad.x": slope, "grad.target": -slope}


def softplus(x):
    """log(1 + exp(x)), and its slope."""
    small = Tracked(-np.abs(x.value), x.error).exp()
    above = Tracked(np.maximum(x.value, 0.0), x.error) + (1.0 + small).log()
    return above, Tracked(np.where(x.value < 0, small.value, 1.0), small.error) / (1.0 + small)


def binary_cross_entropy(x, target, grad):
    above, slope = softplus(x)
    return above - x * target, {"grad.x": (slope - target) * grad, "grad.target": -(x * grad)}


def weighted(x, target, weight, grad):
    """Of a weight per column."""
    above, slope = softplus(x)
    below, negative_slope = softplus(-x)
    positive = weight * target
    loss = positive * below + (1.0 - target) * above
    return loss, {
        "grad.x": ((1.0 - target) * slope - positive * negative_slope) * grad,
        "grad.target": (weight * below - above) * grad,
    }


def bound(formula, reduction):
    def errors(inputs, grad, result):
        operands = [Tracked(value) for value in inputs.values()]
        each = of_each(grad, inputs["x"].shape, reduction)
        losses, gradients = formula(*operands, each)
        return {"output": reduced(losses, reduction).error, **{name: g.error for name, g in gradients.items()}}

    return errors


def element_specs(generator):
    x, target = f32_values(generator, 4, 5, 3, low=-4, high=4), f32_values(generator, 4, 5, 3, low=-4, high=4)
    logits = np.concatenate([f32_values(generator, 5, 3, low=-4, high=4), f32_values(generator, 2, 3, low=-60, high=60)])
    shares, weights = f32_values(generator, 7, 3, low=0, high=1), f32_values(generator, 3, low=0.25, high=4)
    for reduction in REDUCTIONS:
        options = {"reduction": reduction}
        for op, function, formula in (
            ("mse_loss", functional.mse_loss, squares),
            ("l1_loss", functional.l1_loss, distances),
        ):
            yield OpSpec(
                f"{op}.{reduction}",
                op,
                {"x": x, "target": target},
                lambda t, f=function, r=reduction: f(t["x"], t["target"], reduction=r),
                bound(formula, reduction),
                options,
            )
        op = "binary_cross_entropy_with_logits"
        yield OpSpec(
            f"{op}.{reduction}",
            op,
            {"x": logits, "target": shares},
            lambda t, r=reduction: functional.binary_cross_entropy_with_logits(t["x"], t["target"], reduction=r),
            bound(binary_cross_entropy, reduction),
            options,
        )
        yield OpSpec(
            f"{op}.pos_weight.{reduction}",
            op,
            {"x": logits, "target": shares, "pos_weight": weights},
            lambda t, r=reduction: functional.binary_cross_entropy_with_logits(
                t["x"], t["target"], reduction=r, pos_weight=t["pos_weight"]
            ),
            bound(weighted, reduction),
            options,
            constant=("pos_weight",),  # PyTorch has no gradient for it
        )
    equal = generator.integers(-2, 3, (6, 7)).astype(np.float64)
    yield OpSpec(
        "l1_loss.equal",
        "l1_loss",
        {"x": equal, "target": equal[::-1].copy()},
        lambda t: functional.l1_loss(t["x"], t["target"], reduction="sum"),
        lambda inputs, grad, result: {name: 0.0 if name != "output" else 1.0 for name in result},
        {"reduction": "sum"},
    )


def nll_specs(generator):
    inputs = {"log_probabilities": f32_values(generator, 9, 6, low=-5, high=0), "labels": generator.integers(0, 6, 9)}

    for reduction in REDUCTIONS:

        def errors(values, grad, result, reduction=reduction):
            rows = np.arange(9)
            losses = Tracked(-values["log_probabilities"][rows, values["labels"]])
            gradients = np.zeros((9, 6))
            gradients[rows, values["labels"]] = of_each(grad, (9,), reduction).error
            return {"output": reduced(losses, reduction).error, "grad.log_probabilities": gradients}

        yield OpSpec(
            f"nll_loss.{reduction}",
            "nll_loss",
            inputs,
            lambda t, r=reduction: functional.nll_loss(t["log_probabilities"], t["labels"], reduction=r),
            errors,
            {"reduction": reduction},
        )


def weighted_specs(generator):
    """Class weights and an ignored label, of log probabilities and of logits."""
    rows, classes, ignored = 11, 5, -100
    labels = generator.integers(0, classes, rows)
    labels[[2, 7]] = ignored
    weight = f32_values(generator, classes, low=0.25, high=4)
    log_p = f32_values(generator, rows, classes, low=-5, high=0)
    logits = f32_values(generator, rows, classes, low=-9, high=9)
    chosen = np.maximum(labels, 0)  # of an ignored row, any
    counts = np.where(labels == ignored, 0.0, weight[chosen])

    for reduction in REDUCTIONS:

        def nll_errors(values, grad, result, reduction=reduction):
            # Each loss is a product, the mean a sum of 11 of them over a sum of 11 weights.
            count = counts.sum() if reduction == "mean" else 1.0
            losses = counts * np.abs(values["log_probabilities"][np.arange(rows), chosen])
            size = losses if reduction == "none" else losses.sum() / count
            gradient = np.broadcast_to((counts * np.abs(grad) / count)[:, None], (rows, classes))
            return {"output": (2 * rows + 3) * size, "grad.log_probabilities": (rows + 4) * gradient}

        yield OpSpec(
            f"nll_loss.weighted.{reduction}",
            "weighted_nll_loss",
            {"log_probabilities": log_p, "labels": labels, "weight": weight},
            lambda t, r=reduction: functional.nll_loss(
                t["log_probabilities"], t["labels"], t["weight"], ignore_index=ignored, reduction=r
            ),
            nll_errors,
            {"reduction": reduction, "ignore_index": ignored},
            constant=("weight",),
        )
        for smoothing in (0.0, 0.2):

            def errors(values, grad, result, reduction=reduction, smoothing=smoothing):
                x = Tracked(values["logits"])
                shifted = x - x.value.max(axis=1, keepdims=True)
                p = shifted.exp() / shifted.exp().sum(axis=1, keepdims=True)
                log_error = (shifted - shifted.exp().sum(axis=1, keepdims=True).log()).error
                kept = (labels != ignored)[:, None]
                count = counts.sum() if reduction == "mean" else 1.0
                # How much each log p counts in its row's loss, and how much that is at most.
                share = smoothing * weight[None, :] / classes * kept
                share[np.arange(rows), chosen] += (1.0 - smoothing) * counts
                size = np.abs(shifted.value - np.log(np.exp(shifted.value).sum(axis=1, keepdims=True)))
                of_rows = (share * (log_error + (classes + 5) * size)).sum(axis=1)
                total = of_rows if reduction == "none" else of_rows.sum() / count + (2 * rows + 3) * (
                    (share * size).sum() / count
                )
                scaled = np.broadcast_to(np.abs(grad), (rows,))[:, None] / count
                whole = share.sum(axis=1, keepdims=True)
                slope = scaled * (share * (rows + 6) + whole * (p.error + (classes + rows + 6) * p.value))
                return {"output": total, "grad.logits": slope}

            yield OpSpec(
                f"cross_entropy.weighted.{reduction}.{smoothing}",
                "weighted_cross_entropy",
                {"logits": logits, "labels": labels, "weight": weight},
                lambda t, r=reduction, s=smoothing: functional.cross_entropy(
                    t["logits"], t["labels"], t["weight"], ignore_index=ignored, reduction=r, label_smoothing=s
                ),
                errors,
                {"reduction": reduction, "ignore_index": ignored, "label_smoothing": smoothing},
                constant=("weight",),
            )


def softmax_bound(dim, logarithm):
    def errors(inputs, grad, result):
        x, g = Tracked(inputs["x"]), Tracked(grad)
        shifted = x - x.value.max(axis=dim, keepdims=True)
        exponentials = shifted.exp()
        total = exponentials.sum(axis=dim, keepdims=True)
        p, log_p = exponentials / total, shifted - total.log()
        if logarithm:
            # exp of what was rounded.
            return {"output": log_p.error, "grad.x": (g - log_p.exp() * g.sum(axis=dim, keepdims=True)).error}
        return {"output": p.error, "grad.x": (p * (g - (p * g).sum(axis=dim, keepdims=True))).error}

    return errors


def softmax_specs(generator):
    shapes = {
        "rows": ((7, 10), 1),
        "columns": ((9, 4), 0),
        "channels": ((2, 6, 5, 3), 1),
        "last": ((2, 3, 4, 33), 3),
        "wide": ((3, 1500), 1),
        "one": ((4, 1), 1),
    }
    for name, (shape, dim) in shapes.items():
        x = f32_values(generator, *shape, low=-9, high=9)
        for op, function in (("softmax", functional.softmax), ("log_softmax", functional.log_softmax)):
            yield OpSpec(
                f"{op}.{name}",
                op,
                {"x": x},
                lambda t, f=function, d=dim: f(t["x"], d),
                softmax_bound(dim, op == "log_softmax"),
                {"dim": dim},
            )
    # -inf is a masked element; rows of them, of inf and of NaN are NaN.
    special = f32_values(generator, 5, 6)
    special[0, :3], special[1, :], special[2, 4], special[3, 5] = -np.inf, -np.inf, np.inf, np.nan
    special = special.astype(np.float32).astype(np.float64)
    for op, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):

        def generous(inputs, grad, result):
            return {name: 32.0 + np.zeros(value.shape) for name, value in result.items()}

        yield OpSpec(f"{op}.special", op, {"x": special}, lambda t, f=function: f(t["x"], 1), generous, {"dim": 1})


def cases():
    generator = np.random.default_rng(8)
    specs = [*element_specs(generator), *nll_specs(generator), *softmax_specs(generator), *weighted_specs(generator)]
    for number, spec in enumerate(specs):
        yield from make_cases(spec, 5000 + number)
