"""50 or 25 steps of the recipes of the CIFAR-10 speed run, with all that they have. airbench94: groups of parameters, one of which is frozen on the
way, warm-up and decay, Nesterov's momentum, label smoothing, Lookahead over weights and running statistics. muon: Newton-Schulz for filters,
SGD for all else, groups of which one has a schedule of its own.

Truth is PyTorch's f64 run. In f64 each loss must be within LOSS_LIMIT of it, relative to itself. In f32 such a run multiplies rounding by some
thousands on its way, in PyTorch as here, so that losses, weights and buffers are held to how far PyTorch's own f32 runs stray (model_cases.py).
Of muon the first losses are held to FIRST_LIMIT as well; then its turns of a quarter of a weight each part PyTorch's own runs in f32 by a
tenth of the loss.
Batches are of the classes of drawn patterns, so that losses fall. The schedules of 476 and 200 steps are done in so many.
"""

import copy
from dataclasses import dataclass
from typing import Callable

import numpy as np
import torch
from torch.nn import functional

from model_cases import NUMPY, state_arrays, stray_shares
from optimizer_cases import Lookahead
from torch_models import make_model
from torch_training import make_optimizer
from training_cases import TrainingCase, pooled

BATCH, LOSS_LIMIT = 64, 1e-10
FIRST_STEPS, FIRST_LIMIT = 5, 1e-5
MODEL = dict(name="airbench94", image_size=32, width=0.25)
FREEZE_STEP, SMOOTHING = 15, 0.2
LOOKAHEAD = dict(every=5, decay=0.95, power=3.0)


@dataclass(frozen=True)
class Recipe:
    name: str
    steps: int
    optimizer: dict
    schedule: dict
    groups_of: Callable  # of the names of parameters; members by their places
    lookahead: dict | None = None
    first_losses: bool = False


def sgd_groups(names):
    """Biases of batch norm, and the bias of the first layer."""
    return [
        dict(parameters=norm_biases(names), lr_factor=64.0, weight_decay=1.330e-3 / 64.0),
        dict(parameters=[names.index("0.bias")], freeze_step=FREEZE_STEP),
    ]


def muon_groups(names):
    """The same, and the last layer: recipes/muon.toml."""
    return [
        dict(parameters=norm_biases(names), weight_decay=3.774e-5),
        dict(
            parameters=[names.index("0.bias")],
            weight_decay=3.774e-5,
            schedule=dict(name="linear", duration=FREEZE_STEP),
            freeze_step=FREEZE_STEP,
        ),
        dict(parameters=[names.index("7.weight")], lr_factor=0.015624, weight_decay=2.415e-3),
    ]


def norm_biases(names):
    return [i for i, name in enumerate(names) if ".norm" in name and name.endswith("bias")]


RECIPES = (
    Recipe(
        "airbench94",
        50,
        dict(name="sgd", lr=1.5, momentum=0.85, nesterov=True, weight_decay=1.330e-3),
        dict(name="warmup", duration=11, start_factor=0.2, next=dict(name="linear", duration=50 - 11, final_factor=0.07)),
        sgd_groups,
        LOOKAHEAD,
    ),
    Recipe(
        "muon",
        25,
        dict(name="muon", lr=0.24, momentum=0.6, aux_lr=106.0, aux_momentum=0.85, eps=5e-11),
        dict(name="linear", duration=25),
        muon_groups,
        first_losses=True,
    ),
)


def build(seed):
    """Filters begin as the identity, the head as PyTorch draws it."""
    torch.manual_seed(seed)
    options = {key: value for key, value in MODEL.items() if key != "name"}
    twin = make_model(MODEL["name"], **options)
    for module in twin.modules():
        if isinstance(module, torch.nn.Conv2d) and module.bias is None:
            torch.nn.init.dirac_(module.weight.data[: module.in_channels])
    return twin.double()


def batches(seed, steps):
    generator = np.random.default_rng(seed)
    patterns = generator.standard_normal((10, 3, 8, 8)).repeat(4, axis=2).repeat(4, axis=3)
    labels = generator.integers(0, 10, (steps, BATCH))
    images = patterns[labels] + 0.7 * generator.standard_normal((steps, BATCH, 3, 32, 32))
    return images.astype(np.float32), labels


def run(recipe, twin, images, labels, groups):
    model = copy.deepcopy(twin).train()
    names, parameters = zip(*model.named_parameters())
    stepper = make_optimizer(list(parameters), {**recipe.optimizer, "groups": groups}, {"name": "constant"})
    rates = [options["lr"] for options in stepper.optimizer.param_groups]
    schedules = [recipe.schedule] + [group.get("schedule", recipe.schedule) for group in groups]
    floating = [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]
    lookahead, losses = Lookahead(floating, **recipe.lookahead) if recipe.lookahead else None, []
    for step in range(recipe.steps):
        if step == FREEZE_STEP:
            parameters[names.index("0.bias")].requires_grad = False
        for options, rate, schedule in zip(stepper.optimizer.param_groups, rates, schedules):
            options["lr"] = rate * factor_of(schedule, step)
        stepper.zero_grad()
        loss = functional.cross_entropy(model(images[step]), labels[step], label_smoothing=SMOOTHING)
        loss.backward()
        stepper.step()
        if lookahead:
            lookahead.after_step(step + 1, recipe.steps)
        losses.append(float(loss))
    if lookahead:
        lookahead.finish()
    return {"losses": np.array(losses), **{name: np.array(value.double()) for name, value in model.state_dict().items()}}


def factor_of(schedule, step):
    if schedule["name"] == "linear":
        return 1 - (1 - schedule.get("final_factor", 0.0)) * min(step / schedule["duration"], 1)
    if step < schedule["duration"]:
        return schedule["start_factor"] + (1 - schedule["start_factor"]) * step / schedule["duration"]
    return factor_of(schedule["next"], step - schedule["duration"])


def recipe_cases(recipe):
    twin = build(7)
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
            losses = result.tensors["losses"].astype(np.float64)
            fits = losses.shape == (recipe.steps,)
            off = np.abs(losses - truth["losses"]) / truth["losses"] if fits else np.full(recipe.steps, np.inf)
            if dtype == "f64":
                yield "a loss", np.max(off) / LOSS_LIMIT, None
            elif recipe.first_losses:
                yield "a first loss", np.max(off[:FIRST_STEPS]) / FIRST_LIMIT, None
            vectors = [pooled(each) for each in (truth, *peers)]
            yield from stray_shares(pooled({"losses": losses, **trained}), vectors[0], vectors[1:], dtype)

        return expect

    for dtype, conv_impl in (("f32", "onednn"), ("f64", "auto")):
        description = {
            "kind": "training",
            "model": {**MODEL, "conv_impl": conv_impl},
            "optimizer": {**recipe.optimizer, "groups": groups},
            "schedule": recipe.schedule,
            "clip_norm": 0.0,
            "label_smoothing": SMOOTHING,
            **({"lookahead": recipe.lookahead} if recipe.lookahead else {}),
        }
        yield TrainingCase(
            f"recipe.{recipe.name}.{dtype}",
            description,
            {"images": images.astype(NUMPY[dtype]), "labels": labels},
            judge(dtype),
            {"weights": state_arrays(twin, dtype)},
        )


def cases():
    for recipe in RECIPES:
        yield from recipe_cases(recipe)
