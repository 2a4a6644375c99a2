"""20 training steps of vgg_lite and small_cnn with each optimizer and schedule, from the same weights and batches.

Weights go to the runner and come back as safetensors files; the trained ones must also load into the PyTorch twin.
Losses and weights are held to the limits of model_cases.py, with PyTorch's own f32 runs of the same 20 steps. In f32,
all weights are compared as one vector, and all buffers: adaptive optimizers divide a gradient by its own size, so where
it is nothing but rounding the step is as large as elsewhere, and which small tensor that happens to differs from run to
run. In f64, where it does not happen, each tensor is compared by itself.
"""

from pathlib import Path

import numpy as np
import torch

import optimizer_cases
import safetensors_file
from case import Case
from model_cases import NUMPY, batch, build, state_arrays, stray_shares, variants
from torch_training import train

STEPS = 20
# Small enough that 20 steps do not blow rounding up to the size of the update: else any result would pass.
RATES = {"sgd": 0.01, "adam": 2e-4, "adamw": 2e-4, "rmsprop": 2e-5}
MODELS = ("vgg_lite", "small_cnn")


class TrainingCase(Case):
    """`expect` is given the trained weights, too."""

    def judge(self, folder):
        expect = self.expect
        trained = Path(folder) / f"{self.name}.trained.safetensors"
        self.expect = lambda result: expect(result, safetensors_file.read(trained).tensors)
        return super().judge(folder)


def make_cases(name, model, runs, optimizer, schedule, batch_size, seed, clip_norm=0.0, label_smoothing=0.0):
    """One case per run, a pair of suffix and dtype, all from one set of PyTorch's trajectories."""
    images, labels = batch(model, batch_size, seed, STEPS)
    twin = build(model, seed)

    def run(candidate, batches, targets):
        losses = train(candidate, batches, targets, optimizer, schedule, label_smoothing, clip_norm)
        return {
            "losses": np.array(losses),
            **{key: np.array(value.double()) for key, value in candidate.state_dict().items()},
        }

    truth, peers = variants(twin, images, labels, run, winograd=True)
    direct_peers = peers[:-1]  # the last one is Winograd's
    for suffix, dtype in runs:
        direct = suffix == ".direct"
        description = {
            "kind": "training",
            "model": {**model, "conv_impl": "onednn"} if direct else model,
            "optimizer": optimizer,
            "schedule": schedule,
            "clip_norm": clip_norm,
            "label_smoothing": label_smoothing,
        }
        yield TrainingCase(
            f"training.{name}{suffix}.{dtype}",
            description,
            {"images": images.astype(NUMPY[dtype]), "labels": labels},
            comparison(twin, truth, direct_peers if direct else peers, dtype),
            {"weights": state_arrays(twin, dtype)},
        )


def comparison(twin, truth, peers, dtype):
    def expect(result, trained):
        twin.load_state_dict({key: torch.from_numpy(value) for key, value in trained.items()}, strict=True)
        actual = {"losses": result.tensors["losses"], **trained}
        if dtype == "f32":
            yield from stray_shares(pooled(actual), pooled(truth), [pooled(peer) for peer in peers], dtype)
        else:
            yield from stray_shares(actual, truth, peers, dtype)

    return expect


def pooled(tensors):
    """The losses, all weights and all buffers as one vector each."""
    groups = {"losses": [], "weights": [], "buffers": []}
    for name in sorted(tensors):
        is_buffer = name.endswith(("running_mean", "running_var", "num_batches_tracked"))
        group = name if name in groups else "buffers" if is_buffer else "weights"
        groups[group].append(np.ravel(tensors[name]).astype(np.float64))
    return {name: np.concatenate(parts) for name, parts in groups.items() if parts}


def recipes():
    """name, optimizer, schedule, further options"""
    constant = optimizer_cases.SCHEDULES["constant"]
    for name, optimizer in optimizer_cases.OPTIMIZERS.items():
        yield name, {**optimizer, "lr": RATES[optimizer["name"]]}, constant, {}
    momentum = {**optimizer_cases.OPTIMIZERS["momentum"], "lr": 0.01}
    for name, schedule in optimizer_cases.SCHEDULES.items():
        if name != "constant":
            yield f"schedule_{name}", momentum, schedule, {}
    yield "clipped_and_smoothed", momentum, constant, {"clip_norm": 1.0, "label_smoothing": 0.1}


def cases():
    for number, name in enumerate(MODELS):
        for i, (recipe, optimizer, schedule, options) in enumerate(recipes()):
            seed = 100 * number + i
            yield from make_cases(
                f"{name}.{recipe}",
                {"name": name, "image_size": 8},
                (("", "f32"), ("", "f64")),
                optimizer,
                schedule,
                8,
                seed,
                **options,
            )
            if recipe in ("momentum", "adam"):  # full-size images
                yield from make_cases(
                    f"{name}_32x32.{recipe}",
                    {"name": name, "image_size": 32},
                    (("", "f32"), (".direct", "f32")),
                    optimizer,
                    schedule,
                    4 if name == "vgg_lite" else 8,
                    seed + 50,
                    **options,
                )
