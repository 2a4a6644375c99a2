"""20 training steps of vgg_lite and small_cnn with each optimizer and schedule, from the same weights and batches.

Weights go to the runner and come back as safetensors files; the trained ones must also load into the PyTorch twin.
Truth is PyTorch's f64 trajectory, over batches whose values all keep clear of kinks (kinks.py): rounding alone is left
between it and any other run.

Every tensor of our trajectories in f64, and in f32 with direct convolutions ("direct"), is held to the limits of
model_cases.py, with PyTorch's own f32 runs of the same 20 steps. In f32, the weights are compared as one vector, and
the buffers: adaptive optimizers divide a gradient by its own size, so where it is nothing but rounding the step is as
large as elsewhere, and which small tensor that happens to differs from run to run.

Winograd convolutions round about ten times as much, and no 20 steps are clear enough of kinks for them. One value on
the other side of a kink takes the weights thousands of times as far away as rounding does, and which run meets one is
chance. So our trajectories with them ("winograd", of larger batches, in which one value counts less, and of smaller
steps, which do not blow up what it does) may stray WINOGRAD_FACTOR times as far as the worst of PyTorch's Winograd
trajectories of that network over several recipes, relative to how far each quantity moved; at least WINOGRAD_FLOOR,
what a few such values come to.
"""

import functools
from pathlib import Path

import numpy as np
import torch

import optimizer_cases
import safetensors_file
from case import Case
from kinks import NearestKink, NearKink
from model_cases import NUMPY, batch, build, run_direct, run_f64, run_winograd, state_arrays, stray_shares
from torch_training import train

STEPS = 20
CLEARANCE = 3e-6  # from kinks, relative to a layer's rms: some times the rounding error of a network of direct sums
WINOGRAD_FACTOR = 2.0
WINOGRAD_LR_FACTOR = 0.1
WINOGRAD_FLOOR = {"losses": 1e-3, "weights": 5e-2, "buffers": 1e-3}
# Small enough that 20 steps do not blow rounding up to the size of the update: else any result would pass.
RATES = {"sgd": 0.01, "adam": 2e-4, "adamw": 2e-4, "rmsprop": 2e-5}
MODELS = {"vgg_lite": dict(name="vgg_lite", image_size=8), "small_cnn": dict(name="small_cnn", image_size=16)}
BATCH_SIZES = {"vgg_lite": 2, "small_cnn": 4}
WINOGRAD_BATCH_SIZES = {"vgg_lite": 4, "small_cnn": 32}
# Which batches of a recipe keep clear of kinks, by number, where that is not the first: finding them takes minutes. They
# are checked again each time, and the search goes on from there. After a change of recipes, networks or clearance, this
# file run as a program prints them anew: python3 tests/parity/training_cases.py
CLEAR_BATCHES = {
    "vgg_lite": {
        "sgd": 1,
        "sgd_weight_decay": 6,
        "momentum": 33,
        "momentum_dampening": 1,
        "nesterov": 7,
        "adam": 1,
        "adam_weight_decay": 6,
        "adam_amsgrad": 7,
        "adamw": 7,
        "rmsprop": 9,
        "rmsprop_momentum": 2,
        "rmsprop_centered": 4,
        "schedule_step": 12,
        "schedule_multi_step": 2,
        "schedule_one_cycle": 2,
        "schedule_one_cycle_linear": 8,
    },
    "small_cnn": {
        "sgd": 17,
        "sgd_weight_decay": 6,
        "momentum_dampening": 4,
        "nesterov": 4,
        "adam": 4,
        "adam_weight_decay": 4,
        "adam_amsgrad": 2,
        "adamw": 8,
        "rmsprop_momentum": 2,
        "rmsprop_centered": 12,
        "schedule_step": 2,
        "schedule_cosine": 18,
        "schedule_one_cycle": 4,
        "schedule_one_cycle_linear": 5,
        "schedule_warmup_cosine": 18,
        "clipped_and_smoothed": 13,
    },
}
WITH_WINOGRAD = ("momentum", "adam", "rmsprop", "schedule_one_cycle", "clipped_and_smoothed")


class TrainingCase(Case):
    """`expect` is given the trained weights, too."""

    def judge(self, folder):
        expect = self.expect
        trained = Path(folder) / f"{self.name}.trained.safetensors"
        self.expect = lambda result: expect(result, safetensors_file.read(trained).tensors)
        return super().judge(folder)


def clear_batches(model, batch_size, seed, twin, run, first=0):
    """Batches on which 20 steps keep clear of kinks, the f64 trajectory, and their number: the least from `first` on."""
    for number in range(first, first + 400):
        images, labels = batch(model, batch_size, seed + number, STEPS)
        try:
            with NearestKink(CLEARANCE):
                return images, labels, run_f64(twin, images, labels, run), number
        except NearKink:
            pass
    raise RuntimeError(f"no batches for {model} keep clear of kinks")


def runner(optimizer, schedule, clip_norm=0.0, label_smoothing=0.0):
    """What trains a network by a recipe, and gives losses and state."""

    def run(candidate, batches, targets, optimizer=optimizer):
        losses = train(candidate, batches, targets, optimizer, schedule, label_smoothing, clip_norm)
        return {
            "losses": np.array(losses),
            **{key: np.array(value.double()) for key, value in candidate.state_dict().items()},
        }

    return run


def make_cases(name, model, winograd, optimizer, schedule, seed, clip_norm=0.0, label_smoothing=0.0):
    """The cases of one recipe; with Winograd convolutions, too, where `winograd`."""
    twin, run = build(model, seed), runner(optimizer, schedule, clip_norm, label_smoothing)

    def case(suffix, dtype, conv_impl, images, labels, judge, optimizer=optimizer):
        description = {
            "kind": "training",
            "model": {**model, "conv_impl": conv_impl},
            "optimizer": optimizer,
            "schedule": schedule,
            "clip_norm": clip_norm,
            "label_smoothing": label_smoothing,
        }
        return TrainingCase(
            f"training.{name}.{suffix}{dtype}",
            description,
            {"images": images.astype(NUMPY[dtype]), "labels": labels},
            expectation(twin, judge),
            {"weights": state_arrays(twin, dtype)},
        )

    def clear_cases():
        first = CLEAR_BATCHES[model["name"]].get(name.removeprefix(model["name"] + "."), 0)
        images, labels, truth, _ = clear_batches(model, BATCH_SIZES[model["name"]], 1000 * seed, twin, run, first)
        peers = run_direct(twin, images, labels, run)
        vectors = pooled(truth), [pooled(peer) for peer in peers]
        yield case("direct.", "f32", "onednn", images, labels, lambda got: stray_shares(pooled(got), *vectors, "f32"))
        yield case("", "f64", "auto", images, labels, lambda got: stray_shares(got, truth, peers, "f64"))

    def winograd_case():
        slower = {**optimizer, "lr": optimizer["lr"] * WINOGRAD_LR_FACTOR}
        slow_run = functools.partial(run, optimizer=slower)
        images, labels = batch(model, WINOGRAD_BATCH_SIZES[model["name"]], seed, STEPS)
        truth = pooled(run_f64(twin, images, labels, slow_run))
        peer = pooled(run_winograd(twin, images, labels, slow_run))
        start = pooled({"losses": np.zeros(STEPS), **state_arrays(twin, "f64")})
        limit = WinogradLimit(model["name"], truth, peer, start)
        return case("winograd.", "f32", "auto", images, labels, limit.shares, slower)

    yield from clear_cases()
    if winograd:
        yield winograd_case()


def expectation(twin, judge):
    def expect(result, trained):
        twin.load_state_dict({key: torch.from_numpy(value) for key, value in trained.items()}, strict=True)
        yield from judge({"losses": result.tensors["losses"], **trained})

    return expect


class WinogradLimit:
    """How far a Winograd trajectory may stray; all of a network share what PyTorch's did."""

    worst = {}  # (network, quantity) -> largest relative stray of PyTorch

    def __init__(self, network, truth, peer, start):
        self.truth, self.network = truth, network
        self.moved = {name: np.linalg.norm(value - start[name]) for name, value in truth.items()}
        self.peer = {name: self.stray(peer, name) for name in truth}
        for name, stray in self.peer.items():
            self.worst[network, name] = max(stray, self.worst.get((network, name), 0.0))

    def stray(self, actual, name):
        return np.linalg.norm(actual[name] - self.truth[name]) / self.moved[name]

    def shares(self, actual):
        actual = pooled(actual)
        for name in self.truth:
            limit = max(WINOGRAD_FACTOR * self.worst[self.network, name], WINOGRAD_FLOOR[name])
            share = self.stray(actual, name) / limit
            what = f"{name} (limit {limit:.1e} of the way moved)"
            yield what, share if np.isfinite(share) else np.inf, self.peer[name] / limit


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


def cases(chosen=None):
    """Of the recipes whose names are chosen, or of all."""
    for number, (name, model) in enumerate(MODELS.items()):
        for i, (recipe, optimizer, schedule, options) in enumerate(recipes()):
            if chosen is not None and recipe not in chosen:
                continue
            winograd = recipe in WITH_WINOGRAD
            seed = 100 * number + i
            yield from make_cases(f"{name}.{recipe}", model, winograd, optimizer, schedule, seed, **options)


def print_clear_batches():
    for number, (name, model) in enumerate(MODELS.items()):
        print(f'    "{name}": {{')
        for i, (recipe, optimizer, schedule, options) in enumerate(recipes()):
            seed = 100 * number + i
            run = runner(optimizer, schedule, **options)
            found = clear_batches(model, BATCH_SIZES[name], 1000 * seed, build(model, seed), run)[-1]
            if found > 0:
                print(f'        "{recipe}": {found},', flush=True)
        print("    },")


if __name__ == "__main__":
    print_clear_batches()
