"""50 or 25 steps of the recipes of the CIFAR-10 speed run, with all that they have. airbench94: groups of parameters, one of which is frozen on the
way, warm-up and decay, Nesterov's momentum, label smoothing, Lookahead over weights and running statistics. muon: Newton-Schulz for filters,
SGD for all else, groups of which one has a schedule of its own. hiverge: the same with SiLU, coefficients of its own, weight decay of filters
and norms that are restored ever more seldom. bag_of_tricks: CELU, batch norm over parts of a batch, a rate that stays low in the end, and an
average of weights and running statistics.

Truth is PyTorch's f64 run. In f64 each loss must be within LOSS_LIMIT of it, relative to itself. In f32 such a run multiplies rounding by some
thousands on its way, in PyTorch as here, so that losses, weights and buffers are held to how far PyTorch's own f32 runs stray (model_cases.py).
Of muon and hiverge the first losses are held to FIRST_LIMIT as well; then turns of a quarter of a weight each part PyTorch's own runs in f32
by a tenth of the loss.
So 50 steps of each are also taken one by one, in f32: each begins with weights, buffers, momentum and slow weights of PyTorch's f64 run, and the
loss of the next batch behind it must be within STEP_LIMIT of PyTorch's, all but TURNS of them within MOST_STEPS_LIMIT. (Where rounding decides
which of a window's pixels is the largest, a gradient takes another way: one such turn moved a loss by 3e-5. The others are off by 1e-7 at most.)
Batches are of the classes of drawn patterns, so that losses fall. The schedules of 476, 200, 243 and 970 steps are done in so many.
"""

import copy
from dataclasses import dataclass
from typing import Callable

import numpy as np
import torch
from torch.nn import functional

from case import Case
from model_cases import NUMPY, state_arrays, stray_shares
from optimizer_cases import Lookahead
from torch_models import make_model
from torch_training import make_optimizer
from training_cases import TrainingCase, pooled

BATCH, LOSS_LIMIT = 64, 1e-10
FIRST_STEPS, FIRST_LIMIT = 5, 1e-5
STEP_LIMIT, MOST_STEPS_LIMIT, TURNS = 1e-4, 1e-6, 5
AIRBENCH = dict(name="airbench94", image_size=32, width=0.25)
UNIT_HEAD = dict(AIRBENCH, unit_head=True)
HIVERGE = dict(UNIT_HEAD, activation="silu", norm_momentum=0.4434)
BAG_OF_TRICKS = dict(name="bag_of_tricks", image_size=32, width=0.125, celu_alpha=0.3, ghost_batch=32)
FREEZE_STEP, HIVERGE_FREEZE_STEP = 15, 4
LOOKAHEAD = dict(every=5, decay=0.95, power=3.0)
EMA = dict(every=5, decay=0.99, warms_up=False)


@dataclass(frozen=True)
class Recipe:
    name: str
    steps: int
    optimizer: dict
    schedule: dict
    groups_of: Callable  # of the names of parameters; members by their places
    model: dict
    smoothing: float = 0.2
    lookahead: dict | None = None
    ema: dict | None = None
    first_losses: bool = False

    def begin(self):
        """What the description of a case has beside the network."""
        return {
            "clip_norm": 0.0,
            "label_smoothing": self.smoothing,
            "schedule": self.schedule,
            **({"lookahead": self.lookahead} if self.lookahead else {}),
            **({"ema": self.ema} if self.ema else {}),
        }


def sgd_groups(names):
    """Biases of batch norm, and the bias of the first layer."""
    return [
        dict(parameters=norm_biases(names), lr_factor=64.0, weight_decay=1.330e-3 / 64.0),
        dict(parameters=[names.index("0.bias")], freeze_step=FREEZE_STEP),
    ]


def muon_groups(names):
    """The same, and the last layer: recipes/muon.toml."""
    return aux_groups(names, FREEZE_STEP, dict(weight_decay=3.774e-5), dict(lr_factor=12.641509, weight_decay=2.985075e-6))


def hiverge_groups(names):
    """recipes/hiverge.toml."""
    bias = dict(weight_decay=1.81815e-5, momentum=0.825)
    head = dict(lr_factor=9.450262, weight_decay=1.92392e-6, momentum=0.825)
    return aux_groups(names, HIVERGE_FREEZE_STEP, bias, head)


def aux_groups(names, freeze_step, bias, head):
    return [
        dict(parameters=norm_biases(names), **bias),
        dict(
            parameters=[names.index("0.bias")],
            schedule=dict(name="linear", duration=freeze_step),
            freeze_step=freeze_step,
            **bias,
        ),
        dict(parameters=[names.index("7.weight")], **head),
    ]


def bias_groups(names):
    """All biases: recipes/bag-of-tricks.toml."""
    biases = [i for i, name in enumerate(names) if name.endswith("bias")]
    return [dict(parameters=biases, lr_factor=64.0, weight_decay=5e-4 / 64.0)]


def norm_biases(names):
    return [i for i, name in enumerate(names) if ".norm" in name and name.endswith("bias")]


def average(names_and_values, averages, every, decay, step):
    """One move behind each `every`-th step, from 1, by the decay of so many; what holds integers is copied."""
    if step % every:
        return
    kept = decay**every
    for name, value in names_and_values:
        if value.is_floating_point():
            averages[name].mul_(kept).add_(value, alpha=1 - kept)
        else:
            averages[name].copy_(value)


def airbench94(steps):
    first = steps * 11 // 50
    return Recipe(
        "airbench94",
        steps,
        dict(name="sgd", lr=1.5, momentum=0.85, nesterov=True, weight_decay=1.330e-3),
        dict(
            name="warmup",
            duration=first,
            start_factor=0.2,
            next=dict(name="linear", duration=steps - first, final_factor=0.07),
        ),
        sgd_groups,
        AIRBENCH,
        lookahead=LOOKAHEAD,
    )


def muon(steps):
    return Recipe(
        "muon",
        steps,
        dict(name="muon", lr=0.24, momentum=0.6, aux_lr=106.0 / 8, aux_momentum=0.85, eps=5e-11),  # batches are small here
        dict(name="linear", duration=steps),
        muon_groups,
        UNIT_HEAD,
        first_losses=True,
    )


def hiverge(steps):
    return Recipe(
        "hiverge",
        steps,
        dict(
            name="muon",
            lr=0.205,
            momentum=0.655,
            weight_decay=1.6002048e-3,
            aux_lr=88.0128 / 4,  # batches are small here
            eps=5e-11,
            normalize_every=[2, 15, steps],
            coefficients=[3.4576, -4.7391, 2.0843],
        ),
        dict(name="linear", duration=steps),
        hiverge_groups,
        HIVERGE,
        smoothing=0.09,
        first_losses=True,
    )


def bag_of_tricks(steps):
    """Up in a fifth of the steps, down to a tenth in three fifths, and a fifth at that."""
    up = steps // 5 - 1
    return Recipe(
        "bag_of_tricks",
        steps,
        dict(name="sgd", lr=1.0, momentum=0.9, nesterov=True, weight_decay=5e-4),
        dict(
            name="warmup",
            duration=up,
            start_factor=1 / (up + 1),
            next=dict(name="linear", duration=steps * 3 // 5, final_factor=0.1),
        ),
        bias_groups,
        BAG_OF_TRICKS,
        ema=EMA,
    )


RECIPES = (airbench94(50), muon(25), hiverge(25), bag_of_tricks(50))


def build(model, seed):
    """Filters of airbench94 begin as the identity, the head as PyTorch draws it or with unit deviation."""
    torch.manual_seed(seed)
    options = {key: value for key, value in model.items() if key != "name"}
    twin = make_model(model["name"], **options)
    for module in twin.modules():
        if model["name"] == "airbench94" and isinstance(module, torch.nn.Conv2d) and module.bias is None:
            torch.nn.init.dirac_(module.weight.data[: module.in_channels])
    return twin.double()


def batches(seed, steps):
    generator = np.random.default_rng(seed)
    patterns = generator.standard_normal((10, 3, 8, 8)).repeat(4, axis=2).repeat(4, axis=3)
    labels = generator.integers(0, 10, (steps, BATCH))
    images = patterns[labels] + 0.7 * generator.standard_normal((steps, BATCH, 3, 32, 32))
    return images.astype(np.float32), labels


def run(recipe, twin, images, labels, groups, before_step=lambda model, parameters, optimizer, lookahead: None):
    model = copy.deepcopy(twin).train()
    names, parameters = zip(*model.named_parameters())
    stepper = make_optimizer(list(parameters), {**recipe.optimizer, "groups": groups}, {"name": "constant"})
    rates = [options["lr"] for options in stepper.optimizer.param_groups]
    schedules = [recipe.schedule] + [group.get("schedule", recipe.schedule) for group in groups]
    frozen = {group["freeze_step"]: group["parameters"] for group in groups if "freeze_step" in group}
    averages = {name: value.clone() for name, value in model.state_dict().items()}
    floating = [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]
    lookahead, losses = Lookahead(floating, **recipe.lookahead) if recipe.lookahead else None, []
    for step in range(recipe.steps):
        for index in frozen.get(step, ()):
            parameters[index].requires_grad = False
        for options, rate, schedule in zip(stepper.optimizer.param_groups, rates, schedules):
            options["lr"] = rate * factor_of(schedule, step)
        before_step(model, parameters, stepper.optimizer, lookahead)
        stepper.zero_grad()
        loss = functional.cross_entropy(model(images[step]), labels[step], label_smoothing=recipe.smoothing)
        loss.backward()
        stepper.step()
        if lookahead:
            lookahead.after_step(step + 1, recipe.steps)
        if recipe.ema:
            average(model.state_dict().items(), averages, recipe.ema["every"], recipe.ema["decay"], step + 1)
        losses.append(float(loss.detach()))
    if lookahead:
        lookahead.finish()
    state = averages if recipe.ema else model.state_dict()
    return {"losses": np.array(losses), **{name: np.array(value.double()) for name, value in state.items()}}


def factor_of(schedule, step):
    if schedule["name"] == "linear":
        return 1 - (1 - schedule.get("final_factor", 0.0)) * min(step / schedule["duration"], 1)
    if step < schedule["duration"]:
        return schedule["start_factor"] + (1 - schedule["start_factor"]) * step / schedule["duration"]
    return factor_of(schedule["next"], step - schedule["duration"])


class States:
    """What a run has before each of its steps, a row for each: "model.<name>", "lookahead.<name>", and "optimizer.<parameter>.step" and
    "optimizer.<parameter>.momentum_buffer", of which those before the first step, where there are none, are zeros."""

    def __init__(self):
        self.rows, self.counts = {}, {}

    def add(self, model, parameters, optimizer, lookahead):
        for name, value in model.state_dict().items():
            self.add_row(f"model.{name}", value)
        for index, parameter in enumerate(parameters):
            if not parameter.requires_grad and index not in self.counts:
                continue  # never trained
            buffer = optimizer.state[parameter].get("momentum_buffer") if parameter in optimizer.state else None
            self.add_row(f"optimizer.{index}.momentum_buffer", torch.zeros_like(parameter) if buffer is None else buffer)
            steps = self.counts.get(index, 0)
            self.add_row(f"optimizer.{index}.step", torch.tensor(steps))
            self.counts[index] = steps + parameter.requires_grad
        if lookahead:
            names = [name for name, value in model.state_dict().items() if value.is_floating_point()]
            for name, slow in zip(names, lookahead.slow):
                self.add_row(f"lookahead.{name}", slow)

    def add_row(self, name, value):
        value = value.detach()
        self.rows.setdefault(name, []).append((value.float() if value.is_floating_point() else value).clone().numpy())

    def tensors(self):
        """Takes them out, as they are large."""
        return {name: np.stack(self.rows.pop(name)) for name in list(self.rows)}


def make_case(recipe, twin, dtype, conv_impl, images, labels, expect, states=None):
    """A training, or the single steps from `states`."""
    groups = recipe.groups_of([name for name, _ in twin.named_parameters()])
    kind, name, case_type = ("training", dtype, TrainingCase) if states is None else ("single_steps", f"steps.{dtype}", Case)
    return case_type(
        f"recipe.{recipe.name}.{name}",
        {
            "kind": kind,
            "model": {**recipe.model, "conv_impl": conv_impl},
            "optimizer": {**recipe.optimizer, "groups": groups},
            **recipe.begin(),
        },
        {"images": images.astype(NUMPY[dtype]), "labels": labels},
        expect,
        {"weights": state_arrays(twin, dtype), **({"states": states.tensors()} if states else {})},
    )


def losses_off(result, truth):
    """How far each loss is from the truth, relative to it."""
    losses = result.tensors["losses"].astype(np.float64)
    fits = losses.shape == truth["losses"].shape
    return np.abs(losses - truth["losses"]) / truth["losses"] if fits else np.full(len(truth["losses"]), np.inf)


def recipe_cases(recipe):
    twin = build(recipe.model, 7)
    images, labels = batches(7, recipe.steps)
    groups, targets = recipe.groups_of([name for name, _ in twin.named_parameters()]), torch.from_numpy(labels)
    truth = run(recipe, twin, torch.from_numpy(images).double(), targets, groups)
    single = copy.deepcopy(twin).float()
    peers = [
        run(recipe, single, torch.from_numpy(images), targets, groups),
        run(recipe, single.to(memory_format=torch.channels_last), torch.from_numpy(images), targets, groups),
    ]
    assert truth["losses"][-1] < 0.8 * truth["losses"][0], truth["losses"]

    def judge(dtype):
        def expect(result, trained):
            off = losses_off(result, truth)
            if dtype == "f64":
                yield "a loss", np.max(off) / LOSS_LIMIT, None
            elif recipe.first_losses:
                yield "a first loss", np.max(off[:FIRST_STEPS]) / FIRST_LIMIT, None
            vectors = [pooled(each) for each in (truth, *peers)]
            ours = pooled({"losses": result.tensors["losses"].astype(np.float64), **trained})
            yield from stray_shares(ours, vectors[0], vectors[1:], dtype)

        return expect

    for dtype, conv_impl in (("f32", "onednn"), ("f64", "auto")):
        yield make_case(recipe, twin, dtype, conv_impl, images, labels, judge(dtype))


def single_step_case(recipe):
    twin = build(recipe.model, 7)
    images, labels = batches(7, recipe.steps)
    groups, states = recipe.groups_of([name for name, _ in twin.named_parameters()]), States()
    truth = run(recipe, twin, torch.from_numpy(images).double(), torch.from_numpy(labels), groups, states.add)

    def expect(result):
        off = losses_off(result, truth)
        yield "a loss behind a step", np.max(off) / STEP_LIMIT, None
        yield f"a loss behind a step, but for {TURNS}", np.sort(off)[-1 - TURNS] / MOST_STEPS_LIMIT, None

    return make_case(recipe, twin, "f32", "onednn", images, labels, expect, states)


def cases():
    for recipe in RECIPES:
        yield from recipe_cases(recipe)
    for make in (airbench94, muon, hiverge, bag_of_tricks):
        yield single_step_case(make(51))  # losses behind 50 steps


def short_cases(recipes):
    """In f64 alone, the losses."""
    for recipe in recipes:
        twin = build(recipe.model, 7)
        images, labels = batches(7, recipe.steps)
        groups = recipe.groups_of([name for name, _ in twin.named_parameters()])
        truth = run(recipe, twin, torch.from_numpy(images).double(), torch.from_numpy(labels), groups)

        def expect(result, _, truth=truth):
            yield "a loss", np.max(losses_off(result, truth)) / LOSS_LIMIT, None

        yield make_case(recipe, twin, "f64", "auto", images, labels, expect)
