"""20 training steps of vgg_lite and small_cnn with each optimizer and schedule, from the same weights and batches.

Weights go to the runner and come back as safetensors files; the trained ones must also load into the PyTorch twin.
Losses and weights are held to the limits of model_cases.py, with PyTorch's own f32 runs of the same 20 steps.
"""

import numpy as np
import torch

import optimizer_cases
import safetensors_file
from case import Case
from model_cases import NUMPY, batch, build, state_arrays, stray_shares, variants
from torch_training import train

STEPS = 20
RATES = {"sgd": 0.05, "adam": 1e-3, "adamw": 1e-3, "rmsprop": 1e-4}  # at which 20 steps learn and do not diverge
MODELS = ("vgg_lite", "small_cnn")


class TrainingCase(Case):
    """Adds the trained weights to what is judged."""

    def judge(self, folder):
        self.folder = folder
        return super().judge(folder)


def make_case(name, model, optimizer, schedule, dtype, batch_size, seed, clip_norm=0.0, label_smoothing=0.0):
    images, labels = batch(model, batch_size, seed, STEPS)
    twin = build(model, seed)

    def run(candidate, batches, targets):
        losses = train(candidate, batches, targets, optimizer, schedule, label_smoothing, clip_norm)
        return {"losses": np.array(losses), **{key: np.array(value.double()) for key, value in candidate.state_dict().items()}}

    truth, peers = variants(twin, images, labels, run, "conv_impl" not in model)

    def expect(result):
        trained = safetensors_file.read(case.folder / f"{case.name}.trained.safetensors").tensors
        twin.load_state_dict({key: torch.from_numpy(value) for key, value in trained.items()}, strict=True)
        yield from stray_shares({"losses": result.tensors["losses"], **trained}, truth, peers, dtype)

    description = {"kind": "training", "model": model, "optimizer": optimizer, "schedule": schedule, "clip_norm": clip_norm,
                   "label_smoothing": label_smoothing}
    case = TrainingCase(f"training.{name}.{dtype}", description, {"images": images.astype(NUMPY[dtype]), "labels": labels},
                        expect, {"weights": state_arrays(twin, dtype)})
    return case


def recipes():
    """name, optimizer, schedule, further options"""
    constant = optimizer_cases.SCHEDULES["constant"]
    for name, optimizer in optimizer_cases.OPTIMIZERS.items():
        yield name, {**optimizer, "lr": RATES[optimizer["name"]]}, constant, {}
    momentum = {**optimizer_cases.OPTIMIZERS["momentum"], "lr": 0.02}
    for name, schedule in optimizer_cases.SCHEDULES.items():
        if name != "constant":
            yield f"schedule_{name}", momentum, schedule, {}
    yield "clipped_and_smoothed", momentum, constant, {"clip_norm": 1.0, "label_smoothing": 0.1}


def cases():
    for number, name in enumerate(MODELS):
        for i, (recipe, optimizer, schedule, options) in enumerate(recipes()):
            seed = 100 * number + i
            # Full size where the optimizers differ most; elsewhere images of 16 x 16.
            full = recipe in ("momentum", "adam")
            model = {"name": name, "image_size": 32 if full else 16}
            yield make_case(f"{name}.{recipe}", model, optimizer, schedule, "f32", 8, seed, **options)
            if full:
                direct = {**model, "conv_impl": "onednn"}
                yield make_case(f"{name}.{recipe}.direct", direct, optimizer, schedule, "f32", 8, seed, **options)
            yield make_case(f"{name}.{recipe}", {"name": name, "image_size": 8}, optimizer, schedule, "f64", 4, seed, **options)
