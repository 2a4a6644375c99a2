"""Whole networks, one forward and backward pass: loss, logits, all gradients and buffers, in training and evaluation.

Rounding errors of a deep network are not bounded by hand. Truth is PyTorch in f64; PyTorch in f32 strays from it, in
NCHW, in channels_last and, where our kernels may choose Winograd convolution, with that (torch_winograd.py). Ours may
stray FACTOR times as far as the worst of these, measured per tensor in the 2-norm. Batches keep clear of kinks
(kinks.py). In f64, rounding is 2^-29 times that of f32 and the limit is, too. Cases named "direct" run oneDNN's
convolutions, without Winograd.
"""

import copy

import numpy as np
import torch
import torch_models
from torch.nn import functional

from case import Case
from kinks import nearest_kink
from op_case import NUMPY, TORCH
from torch_winograd import use_winograd
from tracked import UNIT_ROUNDOFF

FACTOR = 8.0
FINER = UNIT_ROUNDOFF["f64"] / UNIT_ROUNDOFF["f32"]

CLEARANCE = 2e-5  # from kinks, relative to a layer's rms: some times the rounding error of a Winograd network

MODELS = {
    "vgg_lite": dict(name="vgg_lite"),
    "vgg_lite_batch_norm": dict(name="vgg_lite", batch_norm=True),
    "small_cnn": dict(name="small_cnn"),
    "mnist_cnn": dict(name="mnist_cnn", in_channels=1, layers=4),
    "mnist_cnn_shared": dict(name="mnist_cnn", in_channels=1, layers=5, shared_weights=True),
    "resnet9": dict(name="resnet9"),
    "resnet18": dict(name="resnet18"),
    # Images whose odd rows and columns are left out before each pool.
    "airbench94": dict(name="airbench94", image_size=32, width=0.25),
    "hiverge": dict(name="airbench94", image_size=32, width=0.25, activation="silu", unit_head=True, norm_momentum=0.4434),
    "bag_of_tricks": dict(name="bag_of_tricks", image_size=16, width=0.25, ghost_batch=1),
    "airbench95": dict(name="airbench95", image_size=28, in_channels=1, width=0.125),
    "airbench96": dict(name="airbench96", image_size=32, width=0.125),
}


def build(model, seed):
    """The f64 twin, weights that f32 holds exactly, batch-norm parameters and buffers away from 1 and 0."""
    torch.manual_seed(seed)
    options = {key: value for key, value in model.items() if key not in ("name", "conv_impl")}
    twin = torch_models.make_model(model["name"], **options)
    for name, tensor in twin.state_dict().items():
        if "running_" in name:
            tensor.copy_(torch.rand(tensor.shape) + (0.5 if name.endswith("var") else -0.5))
    for module in twin.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.5, 0.5)
    return twin.double()


def batch(model, size, seed, steps=None):
    generator = np.random.default_rng(seed)
    shape = (size, model.get("in_channels", 3), model.get("image_size", 32), model.get("image_size", 32))
    lead = () if steps is None else (steps,)
    return generator.standard_normal(lead + shape).astype(np.float32), generator.integers(0, 10, lead + (size,))


def variants(twin, images, labels, run):
    """`run(model, images, labels)` in f64, and in f32 in three ways, the last one with Winograd convolutions."""
    return run_f64(twin, images, labels, run), [
        *run_direct(twin, images, labels, run),
        run_winograd(twin, images, labels, run),
    ]


def run_f64(twin, images, labels, run):
    return run(copy.deepcopy(twin), torch.from_numpy(images).double(), torch.from_numpy(labels))


def run_direct(twin, images, labels, run):
    """In f32, NCHW and channels_last."""
    single = copy.deepcopy(twin).float()
    ways = [single, copy.deepcopy(single).to(memory_format=torch.channels_last)]
    return [run(way, torch.from_numpy(images), torch.from_numpy(labels)) for way in ways]


def run_winograd(twin, images, labels, run):
    way = use_winograd(copy.deepcopy(twin).float())
    return run(way, torch.from_numpy(images), torch.from_numpy(labels))


def state_arrays(twin, dtype):
    return {
        name: tensor.numpy().astype(NUMPY[dtype]) if tensor.is_floating_point() else tensor.numpy()
        for name, tensor in twin.state_dict().items()
    }


def one_pass(model, images, labels):
    logits = model(images)
    loss = functional.cross_entropy(logits, labels)
    loss.backward()
    results = {"logits": logits.detach(), "loss": loss.detach()}
    trained = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    results.update({f"grad.{name}": parameter.grad for name, parameter in trained})
    results.update({f"state.{name}": buffer for name, buffer in model.named_buffers()})
    return {name: np.array(tensor.double().numpy()) for name, tensor in results.items()}


def stray_shares(actual, truth, peers, dtype):
    """For each tensor: its distance from the truth as a share of the limit, and PyTorch's."""
    for name, value in truth.items():
        peer = max(np.linalg.norm(other[name] - value) for other in peers)
        floor = UNIT_ROUNDOFF["f32"] * np.linalg.norm(value)  # one rounding of each element
        limit = FACTOR * max(peer, floor) * (FINER if dtype == "f64" else 1.0)
        ours = actual.get(name, np.array(np.nan))
        stray = np.linalg.norm(ours.astype(np.float64) - value) if ours.shape == value.shape else np.inf
        share = 0.0 if stray == 0 else stray / limit if limit > 0 else np.inf
        yield name, share if np.isfinite(share) else np.inf, peer / limit if dtype == "f32" and limit > 0 else None


def expectation(truth, peers, dtype):
    def expect(result):
        yield from stray_shares(joined(result.tensors), joined(truth), [joined(peer) for peer in peers], dtype)

    return expect


def joined(tensors):
    """The loss, one number that another run may hit by chance, is compared as one more logit."""
    rest = {name: value for name, value in tensors.items() if name not in ("loss", "logits")}
    return {"logits and loss": np.append(tensors["logits"], tensors["loss"]), **rest}


def clear_batch(twin, model, size, seed):
    """The first batch from `seed` on that keeps clear of kinks."""
    for number in range(500):
        images, labels = batch(model, size, seed + number)
        if nearest_kink(twin, torch.from_numpy(images).double()) > CLEARANCE:
            return images, labels
    raise RuntimeError(f"no batch for {model} keeps clear of kinks")


def make_cases(name, model, training, seed):
    model = {"image_size": 8, **model}
    twin = build(model, seed).train(training)
    images, labels = clear_batch(twin, model, 2, 1000 * seed)
    truth, peers = variants(twin, images, labels, one_pass)
    for suffix, dtype, chosen in (("", "f32", peers), ("direct.", "f32", peers[:-1]), ("", "f64", peers)):
        sent = {**model, "conv_impl": "onednn"} if suffix else model
        yield Case(
            f"model.{name}.{suffix}{'train' if training else 'eval'}.{dtype}",
            {"kind": "model", "model": sent, "training": training},
            {"images": images.astype(NUMPY[dtype]), "labels": labels},
            expectation(truth, chosen, dtype),
            {"weights": state_arrays(twin, dtype)},
        )


def cases():
    for number, (name, model) in enumerate(MODELS.items()):
        for training in (True, False):
            yield from make_cases(name, model, training, 40 + number)
