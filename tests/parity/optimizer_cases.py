"""Optimizers, schedules and gradient clipping on given gradients: 20 steps against PyTorch in f64.

The bound is a running error analysis of PyTorch's own formulas over all steps (tracked.py).
"""

import numpy as np
import torch

import torch_muon
from case import Case, f32_values, share_used
from op_case import NUMPY, SAFETY, UNDERFLOW
from torch_training import clip, learning_rates, make_optimizer
from tracked import UNIT_ROUNDOFF, Tracked

STEPS = 20
OPTIMIZERS = {
    "sgd": dict(name="sgd", lr=0.1),
    "sgd_weight_decay": dict(name="sgd", lr=0.1, weight_decay=0.05),
    "momentum": dict(name="sgd", lr=0.05, momentum=0.9),
    "momentum_dampening": dict(name="sgd", lr=0.05, momentum=0.9, dampening=0.3),
    "nesterov": dict(name="sgd", lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": dict(name="adam", lr=1e-2),
    "adam_weight_decay": dict(name="adam", lr=1e-2, weight_decay=0.1),
    "adam_amsgrad": dict(name="adam", lr=1e-2, amsgrad=True, betas=[0.8, 0.95]),
    "adamw": dict(name="adamw", lr=1e-2, weight_decay=0.1),
    "rmsprop": dict(name="rmsprop", lr=1e-2),
    "rmsprop_momentum": dict(name="rmsprop", lr=1e-3, momentum=0.9, weight_decay=0.01),
    "rmsprop_centered": dict(name="rmsprop", lr=1e-3, centered=True, alpha=0.9),
}
# Of which no networks are trained here either, but in recipe_cases.py; of parameters some of which are filter banks, wide and tall. An eps
# of 7 is about the norm that it is added to.
MUON = {
    "muon": dict(name="muon", lr=0.05, aux_lr=0.02),
    "muon_weight_decay": dict(
        name="muon", lr=0.05, momentum=0.9, weight_decay=0.1, aux_lr=0.02, aux_momentum=0.5, aux_weight_decay=0.01, normalize=False
    ),
    "muon_eps": dict(name="muon", lr=0.05, aux_lr=0.02, eps=7.0),
}
# Two of four parameters: one in all that a group may say, frozen behind step 13; one by a schedule of its own.
GROUPS = [
    dict(parameters=[2], lr_factor=4.0, weight_decay=0.002, momentum=0.5, freeze_step=13),
    dict(parameters=[0], weight_decay=0.0, momentum=0.0, schedule=dict(name="cosine", duration=20, final_factor=0.2)),
]
SCHEDULES = {
    "constant": dict(name="constant"),
    "step": dict(name="step", period=6, gamma=0.5),
    "multi_step": dict(name="multi_step", milestones=[5, 11, 12], gamma=0.3),
    "cosine": dict(name="cosine", duration=STEPS, final_factor=0.01),
    "one_cycle": dict(name="one_cycle", total_steps=STEPS),
    "one_cycle_linear": dict(
        name="one_cycle", total_steps=STEPS, pct_start=0.4, div_factor=10.0, final_div_factor=100.0, linear=True
    ),
    "warmup_cosine": dict(name="warmup", duration=5, start_factor=0.2, next=dict(name="cosine", duration=STEPS - 5)),
}
# Of which no networks are trained as well: their seeds go by the number of a schedule in SCHEDULES.
LINEAR_SCHEDULES = {
    "linear": dict(name="linear", duration=STEPS - 3, final_factor=0.07),
    "warmup_linear": dict(
        name="warmup", duration=5, start_factor=0.2, next=dict(name="linear", duration=STEPS - 5, final_factor=0.07)
    ),
}


def constant(value):
    """A hyper-parameter, rounded to the dtype of the parameters."""
    return Tracked(value).rounded()


def sgd(p, g, state, step, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    if weight_decay:
        g = g + constant(weight_decay) * p
    if momentum:
        state["buffer"] = constant(momentum) * state["buffer"] + constant(1.0 - dampening) * g if step > 1 else g
        g = g + constant(momentum) * state["buffer"] if nesterov else state["buffer"]
    return p - constant(lr) * g


def adam(p, g, state, step, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, decoupled=False):
    if weight_decay and decoupled:
        p = p * constant(1.0 - lr * weight_decay)
    elif weight_decay:
        g = g + constant(weight_decay) * p
    state["m"] = constant(betas[0]) * state.get("m", 0.0) + constant(1.0 - betas[0]) * g
    state["v"] = constant(betas[1]) * state.get("v", 0.0) + constant(1.0 - betas[1]) * (g * g)
    v = state["v"]
    if amsgrad:
        old = state.get("max_v", v)
        larger = v.value >= old.value
        v = state["max_v"] = Tracked(np.where(larger, v.value, old.value), np.maximum(v.error, old.error))
    root = v.sqrt() * constant(1.0 / np.sqrt(1.0 - betas[1] ** step)) + constant(eps)
    return p - constant(lr / (1.0 - betas[0] ** step)) * state["m"] / root


def adamw(*args, weight_decay=1e-2, **options):
    return adam(*args, weight_decay=weight_decay, decoupled=True, **options)


def rmsprop(p, g, state, step, lr, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
    del step
    if weight_decay:
        g = g + constant(weight_decay) * p
    state["square"] = constant(alpha) * state.get("square", 0.0) + constant(1.0 - alpha) * (g * g)
    mean_square = state["square"]
    if centered:
        state["mean"] = constant(alpha) * state.get("mean", 0.0) + constant(1.0 - alpha) * g
        mean_square = mean_square - state["mean"] * state["mean"]
    update = g / (mean_square.sqrt() + constant(eps))
    if momentum:
        state["buffer"] = constant(momentum) * state.get("buffer", 0.0) + update
        update = state["buffer"]
    return p - constant(lr) * update


def newton_schulz_error(rows, columns, steps, error):
    """As newton_schulz_bound() of tests/optim/matrix_support.h, to first order in u: of the Frobenius norm, in units of u, from a matrix of
    norm 1 or less that is off by `error`."""
    a, b, c = np.abs(torch_muon.COEFFICIENTS)
    largest, rank, depth = 1.21, min(rows, columns), max(rows, columns)
    norm = largest * rank**0.5
    gram = (depth + 1) * norm**2
    factor = norm * (b * largest + c * largest**3)
    of_factor = (b + 2 * c * largest**2) * gram + c * (rank + 1) * largest**2 * norm**2 + 3 * factor
    fresh = largest * of_factor + (rank + 1) * (factor + a) * norm + 3 * (a * norm + largest * factor)
    for _ in range(steps):
        error = a * error + fresh
    return error


def muon(
    p,
    g,
    state,
    step,
    lr,
    base_lr,
    aux_lr,
    momentum=0.6,
    weight_decay=0.0,
    aux_momentum=0.85,
    aux_weight_decay=0.0,
    normalize=True,
    eps=1e-7,
):
    """Of filters, which have four dimensions, and by SGD of all else."""
    if p.value.ndim != 4:
        return sgd(p, g, state, step, lr / base_lr * aux_lr, aux_momentum, 0.0, aux_weight_decay, nesterov=True)
    # Errors are those of Frobenius norms: scaling to a norm leaves them as they are, but for the scale.
    state["buffer"] = constant(momentum) * state["buffer"] + g if step > 1 else g
    direction = g + constant(momentum) * state["buffer"]
    value, error, of_sums = p.value, state.get("error", 0.0), p.value.size / 2 + 4
    if normalize:
        scale = len(value) ** 0.5 / np.linalg.norm(value)
        value, error = scale * value, scale * error + of_sums * len(value) ** 0.5
    matrix = direction.value.reshape(len(value), -1)
    norm = np.linalg.norm(matrix) + eps
    update = torch_muon.newton_schulz(torch.from_numpy(matrix), eps=eps).numpy().reshape(value.shape)
    of_update = newton_schulz_error(*matrix.shape, 3, np.linalg.norm(direction.error) / norm + of_sums)
    value = value - lr * (update + weight_decay * value)
    error += lr * (of_update + 3 * np.linalg.norm(update)) + (1 + 3 * lr * weight_decay) * np.linalg.norm(value)
    state["error"] = error
    return Tracked(value, error)


class Lookahead:
    """The slow weights of airbench94 (legacy/airbench94.py, LookaheadState) in f64 and f32: lerp_ and copy_."""

    def __init__(self, tensors, every, decay, power):
        self.tensors, self.slow = tensors, [tensor.detach().clone() for tensor in tensors]
        self.every, self.decay, self.power = every, decay, power

    def after_step(self, step, steps):
        if step % self.every == 0:
            self.update(self.decay**self.every * (step / steps) ** self.power)

    def update(self, decay):
        with torch.no_grad():
            for slow, tensor in zip(self.slow, self.tensors):
                slow.lerp_(tensor, 1.0 - decay)
                tensor.copy_(slow)

    def finish(self):
        self.update(1.0)


UPDATES = {"sgd": sgd, "adam": adam, "adamw": adamw, "rmsprop": rmsprop, "muon": muon}


def without_momentum(groups):
    """For optimizers that have none."""
    return [{key: value for key, value in group.items() if key != "momentum"} for group in groups]


def group_of(optimizer, parameter):
    return next((group for group in optimizer.get("groups", []) if parameter in group["parameters"]), {})


def rates_of(optimizer, schedule, parameter):
    """Of each step until it is frozen."""
    group = group_of(optimizer, parameter)
    rates = learning_rates(
        {**optimizer, "lr": optimizer["lr"] * group.get("lr_factor", 1.0)}, group.get("schedule", schedule), STEPS
    )
    return rates[: group.get("freeze_step", STEPS)]


def error_bounds(parameters, gradients, schedule, optimizer, clip_norm):
    """Errors of the last parameters and of the gradient norms, in units of u."""
    common = {key: value for key, value in optimizer.items() if key not in ("name", "lr", "groups")}
    options, rates = [], []
    for i in range(len(parameters)):
        group = group_of(optimizer, i)
        of_group = {key: group[key] for key in ("weight_decay", "momentum") if key in group}
        if optimizer["name"] == "muon":  # a group's are those of filters and of others alike
            of_group.update({f"aux_{key}": value for key, value in of_group.items()}, base_lr=optimizer["lr"])
        options.append({**common, **of_group})
        rates.append(rates_of(optimizer, schedule, i))
    update = UPDATES[optimizer["name"]]
    tracked, states, norms = [Tracked(p) for p in parameters], [{} for _ in parameters], []
    for step in range(STEPS):
        grads = [Tracked(g[step]) for g in gradients]
        if clip_norm:
            squares = sum(((g * g).sum() for g in grads), Tracked(0.0))
            norm = squares.sqrt()
            norms.append(float(norm.error))
            if norm.value > clip_norm:
                grads = [g * (constant(clip_norm) / (norm + constant(1e-6))) for g in grads]
        for i, gradient in enumerate(grads):
            if step < len(rates[i]):
                tracked[i] = update(tracked[i], gradient, states[i], step + 1, rates[i][step], **options[i])
    return [p.error for p in tracked], np.array(norms)


def run_torch(parameters, gradients, optimizer, schedule, clip_norm, dtype):
    """The last parameters, and the gradient norms."""
    leaves = [torch.from_numpy(np.array(p)).to(dtype).requires_grad_() for p in parameters]
    stepper = make_optimizer(leaves, optimizer, schedule)
    norms = []
    rates = [rates_of(optimizer, schedule, i) for i in range(len(leaves))]
    groups = optimizer.get("groups", [])
    for step in range(STEPS):
        for i, (leaf, gradient) in enumerate(zip(leaves, gradients)):
            leaf.grad = torch.from_numpy(np.array(gradient[step])).to(dtype) if step < len(rates[i]) else None
        for number, group in enumerate(groups):
            if "schedule" in group:
                stepper.optimizer.param_groups[1 + number]["lr"] = rates[group["parameters"][0]][step]
        if clip_norm:
            norms.append(clip(leaves, clip_norm))
        stepper.step()
    return [leaf.detach().double().numpy() for leaf in leaves], np.array(norms)


LOOKAHEAD_STEPS = 28  # three behind the last move
LOOKAHEAD = {
    "airbench94": dict(every=5, decay=0.95, power=3.0),
    "constant": dict(every=5, decay=0.5**0.2, power=0.0),
}


def lookahead_bounds(parameters, gradients, statistics, optimizer, every, decay, power):
    """Errors of the last parameters and of the buffer, in units of u."""
    options = {key: value for key, value in optimizer.items() if key not in ("name", "lr")}
    tracked, states = [Tracked(p) for p in parameters], [{} for _ in parameters]
    fast = [*tracked, Tracked(statistics[0])]
    slow = list(fast)
    for step in range(1, LOOKAHEAD_STEPS + 1):
        for i, (gradient, state) in enumerate(zip(gradients, states)):
            fast[i] = UPDATES[optimizer["name"]](fast[i], Tracked(gradient[step - 1]), state, step, optimizer["lr"], **options)
        fast[-1] = Tracked(statistics[step])
        if step % every == 0:
            d = decay**every * (step / LOOKAHEAD_STEPS) ** power
            slow = [old - constant(1.0 - d) * (old - now) for old, now in zip(slow, fast)]
            fast = list(slow)
    return [value.error for value in slow]


def lookahead_torch(parameters, gradients, statistics, optimizer, options, dtype):
    leaves = [torch.from_numpy(np.array(p)).to(dtype).requires_grad_() for p in parameters]
    buffer = torch.from_numpy(np.array(statistics[0])).to(dtype)
    stepper = make_optimizer(leaves, optimizer, SCHEDULES["constant"])
    lookahead = Lookahead([*leaves, buffer], **options)
    for step in range(LOOKAHEAD_STEPS):
        for leaf, gradient in zip(leaves, gradients):
            leaf.grad = torch.from_numpy(np.array(gradient[step])).to(dtype)
        stepper.step()
        buffer.copy_(torch.from_numpy(np.array(statistics[step + 1])))
        lookahead.after_step(step + 1, LOOKAHEAD_STEPS)
    lookahead.finish()
    return [tensor.detach().double().numpy() for tensor in (*leaves, buffer)]


def lookahead_case(name, options, generator, dtype):
    shapes = ((7, 5), (33,), (4, 3, 2, 2))
    parameters = [f32_values(generator, *shape) for shape in shapes]
    gradients = [f32_values(generator, LOOKAHEAD_STEPS, *shape) for shape in shapes]
    statistics = f32_values(generator, LOOKAHEAD_STEPS + 1, 9)
    optimizer = OPTIMIZERS["nesterov"]
    truth = lookahead_torch(parameters, gradients, statistics, optimizer, options, torch.float64)
    peer = lookahead_torch(parameters, gradients, statistics, optimizer, options, torch.float32)
    errors = lookahead_bounds(parameters, gradients, statistics, optimizer, **options)
    factor = SAFETY * UNIT_ROUNDOFF[dtype] * (2.0 if dtype == "f64" else 1.0)
    names = [*(f"parameter.{i}" for i in range(len(shapes))), "buffer"]

    def expect(result):
        for what, value, other, error in zip(names, truth, peer, errors):
            limit = factor * error + UNDERFLOW
            yield what, share_used(result.tensors.get(what, np.nan), value, limit), (
                share_used(other, value, limit) if dtype == "f32" else None
            )

    tensors = {f"parameter.{i}": p.astype(NUMPY[dtype]) for i, p in enumerate(parameters)}
    tensors.update({f"gradient.{i}": g.astype(NUMPY[dtype]) for i, g in enumerate(gradients)})
    tensors["statistics"] = statistics.astype(NUMPY[dtype])
    description = {
        "kind": "optimizer",
        "optimizer": optimizer,
        "schedule": SCHEDULES["constant"],
        "steps": LOOKAHEAD_STEPS,
        "clip_norm": 0.0,
        "lookahead": options,
    }
    return Case(f"optimizer.lookahead_{name}.{dtype}", description, tensors, expect)


MUON_SHAPES = ((7, 5), (9, 2, 2, 2), (4, 3, 2, 2), (33,))


def make_case(name, optimizer, schedule, clip_norm, generator, dtype, shapes=((7, 5), (33,), (4, 3, 2, 2), ())):
    parameters = [f32_values(generator, *shape) for shape in shapes]
    gradients = [f32_values(generator, STEPS, *shape) for shape in shapes]
    rates = learning_rates(optimizer, schedule, STEPS)
    truth, norms = run_torch(parameters, gradients, optimizer, schedule, clip_norm, torch.float64)
    peer, _ = run_torch(parameters, gradients, optimizer, schedule, clip_norm, torch.float32)
    errors, norm_errors = error_bounds(parameters, gradients, schedule, optimizer, clip_norm)
    factor = SAFETY * UNIT_ROUNDOFF[dtype] * (2.0 if dtype == "f64" else 1.0)

    def expect(result):
        for i, value in enumerate(truth):
            limit = factor * errors[i] + UNDERFLOW
            yield f"parameter.{i}", share_used(result.tensors.get(f"parameter.{i}", np.nan), value, limit), (
                share_used(peer[i], value, limit) if dtype == "f32" else None
            )
        # Rates are doubles on both sides; PyTorch's recursive ones gather a few roundings per step.
        yield "lr", share_used(
            result.tensors.get("lr", np.nan), rates, 16 * STEPS * UNIT_ROUNDOFF["f64"] * optimizer["lr"]
        ), None
        if clip_norm:
            yield "norm", share_used(result.tensors.get("norm", np.nan), norms, factor * norm_errors), None

    tensors = {f"parameter.{i}": p.astype(NUMPY[dtype]) for i, p in enumerate(parameters)}
    tensors.update({f"gradient.{i}": g.astype(NUMPY[dtype]) for i, g in enumerate(gradients)})
    description = {
        "kind": "optimizer",
        "optimizer": optimizer,
        "schedule": schedule,
        "steps": STEPS,
        "clip_norm": clip_norm,
    }
    return Case(f"optimizer.{name}.{dtype}", description, tensors, expect)


def cases():
    generator = np.random.default_rng(4)
    for dtype in ("f64", "f32"):
        for name, optimizer in OPTIMIZERS.items():
            yield make_case(name, optimizer, SCHEDULES["constant"], 0.0, generator, dtype)
        for name in ("nesterov", "momentum_dampening", "adam_amsgrad", "adamw", "rmsprop_momentum", "rmsprop_centered"):
            has_momentum = OPTIMIZERS[name]["name"] in ("sgd", "rmsprop")
            grouped = {**OPTIMIZERS[name], "groups": GROUPS if has_momentum else without_momentum(GROUPS)}
            yield make_case(f"groups_{name}", grouped, SCHEDULES["step"], 0.0, generator, dtype)
        for name, schedule in {**SCHEDULES, **LINEAR_SCHEDULES}.items():
            yield make_case(f"schedule_{name}", OPTIMIZERS["momentum"], schedule, 0.0, generator, dtype)
        yield make_case("clip_grad_norm", OPTIMIZERS["momentum"], SCHEDULES["cosine"], 4.0, generator, dtype)
        yield make_case("clip_not_reached", OPTIMIZERS["sgd"], SCHEDULES["constant"], 1e3, generator, dtype)
        for name, options in LOOKAHEAD.items():
            yield lookahead_case(name, options, generator, dtype)
    for dtype in ("f64", "f32"):
        for name, optimizer in MUON.items():
            yield make_case(name, optimizer, SCHEDULES["cosine"], 0.0, generator, dtype, MUON_SHAPES)
        yield make_case("groups_muon", {**MUON["muon"], "groups": GROUPS}, SCHEDULES["step"], 0.0, generator, dtype, MUON_SHAPES)
