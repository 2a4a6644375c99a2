"""The recipes of recipes/*.toml for torch_speed_run.py: networks, optimizers, schedules and averages in PyTorch.

Rates and weight decays are those of the mean loss, as in our recipes, whose comments tell where the published numbers come from.
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "parity"))

import torch_models
import torch_muon

EPS_OF_SUMS = 1e-7 / 2000  # what airbench94_muon.py adds to norms of gradients, for means


@dataclass(frozen=True)
class Recipe:
    batch: int
    epochs: float
    smoothing: float
    make_model: Callable  # of the width
    make_optimizer: Callable  # of the network, the dtype of its weights and the number of steps; groups have a "factor" of `lr`
    factor: Callable  # of a step and the number of steps: what rates are multiplied by
    lr: float
    freeze_step: Callable = lambda batches: math.inf  # of the batches in an epoch: when the first bias stops
    whitening_images: int = 5000
    whitening_eps: float = 5e-4
    crop: int = 2
    flip: str = "alternating"  # or "random"
    offset: float = 0.0  # of normalised values, and what they are multiplied by
    gain: float = 0.0
    average: Callable = lambda model, steps: None
    views: str = "six"  # or "flip", "six-equal"
    share: float = 1.0  # of the test images, the least sure ones: those that are looked at so


def airbench(width, unit_head=False, draw_bias=False, **options):
    """Filters of groups begin as the identity as far as there are input channels."""
    model = torch_models.make_model("airbench94", width=width, unit_head=unit_head, **options)
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.bias is None:
            nn.init.dirac_(module.weight.data[: module.in_channels])
    if not draw_bias:
        nn.init.zeros_(model[0].bias)
    return model


def trained(model):
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def sgd_with_fast_biases(model, lr, momentum, weight_decay, factor=64.0):
    """Biases of batch norm learn that many times as fast, and decay at the pace of all others."""
    biases = {id(module.bias) for module in model.modules() if isinstance(module, nn.BatchNorm2d)}
    groups = [
        {"params": [p for p in trained(model) if id(p) not in biases], "factor": 1.0, "weight_decay": weight_decay},
        {
            "params": [p for p in trained(model) if id(p) in biases],
            "factor": factor,
            "weight_decay": weight_decay / factor,
        },
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum, nesterov=True)


def muon_with_sgd(model, dtype, lr, bias_lr, bias_decay, head_factor, head_decay, bias_steps, **options):
    """Filters first; then biases, that of the whitening in a group of its own whose rate ends early, and the last layer."""
    first = model[0].bias
    rest = trained(model)
    biases = [p for p in rest if p.ndim == 1 and p is not first]
    groups = [
        {"params": [p for p in rest if p.ndim == 4], "factor": 1.0},
        {"params": biases, "factor": 1.0, "weight_decay": bias_decay},
        {"params": [p for p in rest if p.ndim == 2], "factor": head_factor, "weight_decay": head_decay},
        {"params": [first], "factor": 1.0, "weight_decay": bias_decay, "steps": bias_steps},
    ]
    products = torch.bfloat16 if dtype == torch.float16 else None
    return torch_muon.Muon(groups, lr, aux_lr=bias_lr, eps=EPS_OF_SUMS, dtype=products, **options)


def falling(step, steps):
    return max(1 - step / steps, 0)


def airbench94_factor(step, steps):
    warmup = int(0.23 * steps)
    if step < warmup:
        return 0.2 + 0.8 * step / warmup
    return 1 - 0.93 * (step - warmup) / (steps - warmup)


def bag_of_tricks_factor(step, steps):
    """Knots at 0, a fifth, four fifths and all of the steps, of which the first is number 1."""
    up, down, number = steps / 5, 4 * steps / 5, step + 1
    if number < up:
        return number / up
    return 1 - 0.9 * min((number - up) / (down - up), 1)


class Lookahead:
    """A second copy of all floating tensors, which the network is set back to."""

    EVERY, BASE = 5, 0.95

    def __init__(self, model, steps):
        self.live = [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]
        self.slow = [tensor.clone() for tensor in self.live]
        self.steps = steps

    @torch.no_grad()
    def after(self, step):
        """Behind the step of this number, from 1."""
        if step % self.EVERY == 0:
            decay = self.BASE**self.EVERY * (step / self.steps) ** 3
            torch._foreach_mul_(self.slow, decay)
            torch._foreach_add_(self.slow, self.live, alpha=1 - decay)
            self.copy_back()

    @torch.no_grad()
    def copy_back(self):
        for live, slow in zip(self.live, self.slow):
            live.copy_(slow)


class Average(Lookahead):
    """An average that the network gets at the end alone."""

    DECAY = 0.99

    @torch.no_grad()
    def after(self, step):
        if step % self.EVERY == 0:
            kept = self.DECAY**self.EVERY
            torch._foreach_mul_(self.slow, kept)
            torch._foreach_add_(self.slow, self.live, alpha=1 - kept)


RECIPES = {
    "airbench94": Recipe(
        batch=1024,
        epochs=9.9,
        smoothing=0.2,
        make_model=airbench,
        make_optimizer=lambda model, dtype, steps: sgd_with_fast_biases(model, 1.5, 0.85, 1.330e-3),
        factor=airbench94_factor,
        lr=1.5,
        freeze_step=lambda batches: 3 * batches,
        average=Lookahead,
    ),
    "muon": Recipe(
        batch=2000,
        epochs=8,
        smoothing=0.2,
        make_model=lambda width: airbench(width, unit_head=True, draw_bias=True),
        make_optimizer=lambda model, dtype, steps: muon_with_sgd(
            model, dtype, 0.24, 106, 3.774e-5, 12.641509, 2.985075e-6, bias_steps=75, momentum=0.6, aux_momentum=0.85
        ),
        factor=falling,
        lr=0.24,
        freeze_step=lambda batches: 3 * batches,
    ),
    "hiverge": Recipe(
        batch=1536,
        epochs=7.59,
        smoothing=0.09,
        make_model=lambda width: airbench(width, unit_head=True, draw_bias=True, activation="silu", norm_momentum=0.4434),
        make_optimizer=lambda model, dtype, steps: muon_with_sgd(
            model,
            dtype,
            0.205,
            88.0128,
            1.81815e-5,
            9.450262,
            1.92392e-6,
            bias_steps=7,
            momentum=0.655,
            aux_momentum=0.825,
            weight_decay=1.6002048e-3,
            normalize_every=(2, 15, steps),
            coefficients=(3.4576, -4.7391, 2.0843),
        ),
        factor=falling,
        lr=0.205,
        freeze_step=lambda batches: 7,
        whitening_images=960,
        offset=0.1399,
        gain=0.1308,
        views="six-equal",
        share=0.25,
    ),
    "bag-of-tricks": Recipe(
        batch=512,
        epochs=10,
        smoothing=0.2,
        make_model=lambda width: torch_models.make_model("bag_of_tricks", width=width),
        make_optimizer=lambda model, dtype, steps: sgd_with_fast_biases(model, 1.0, 0.9, 5e-4),
        factor=bag_of_tricks_factor,
        lr=1.0,
        whitening_images=10000,
        whitening_eps=1e-2,
        crop=4,
        flip="random",
        average=Average,
        views="flip",
    ),
}
