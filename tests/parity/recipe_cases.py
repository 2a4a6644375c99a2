"""50 steps of airbench94's recipe, with all that it has: groups of parameters, one of which is frozen on the way, warm-up and decay, Nesterov's
momentum, label smoothing, Lookahead over weights and running statistics.

Truth is PyTorch's f64 run. In f64 each loss must be within LOSS_LIMIT of it, relative to itself. In f32 such a run multiplies rounding by some
thousands on its way, in PyTorch as here, so that losses, weights and buffers are held to how far PyTorch's own f32 runs stray (model_cases.py).
Batches are of the classes of drawn patterns, so that losses fall. The schedule of 476 steps is done in 50.
"""

import copy

import numpy as np
import torch
from torch.nn import functional

from model_cases import NUMPY, state_arrays, stray_shares
from optimizer_cases import Lookahead
from torch_models import make_model
from torch_training import make_optimizer
from training_cases import TrainingCase, pooled

STEPS, BATCH, LOSS_LIMIT = 50, 64, 1e-10
MODEL = dict(name="airbench94", image_size=32, width=0.25)
SCHEDULE = dict(
    name="warmup", duration=11, start_factor=0.2, next=dict(name="linear", duration=STEPS - 11, final_factor=0.07)
)
SGD = dict(name="sgd", lr=1.5, momentum=0.85, nesterov=True, weight_decay=1.330e-3)
FREEZE_STEP, SMOOTHING = 15, 0.2
LOOKAHEAD = dict(every=5, decay=0.95, power=3.0)


def build(seed):
    """Filters begin as the identity, the head as PyTorch draws it."""
    torch.manual_seed(seed)
    options = {key: value for key, value in MODEL.items() if key != "name"}
    twin = make_model(MODEL["name"], **options)
    for module in twin.modules():
        if isinstance(module, torch.nn.Conv2d) and module.bias is None:
            torch.nn.init.dirac_(module.weight.data[: module.in_channels])
    return twin.double()


def batches(seed):
    generator = np.random.default_rng(seed)
    patterns = generator.standard_normal((10, 3, 8, 8)).repeat(4, axis=2).repeat(4, axis=3)
    labels = generator.integers(0, 10, (STEPS, BATCH))
    images = patterns[labels] + 0.7 * generator.standard_normal((STEPS, BATCH, 3, 32, 32))
    return images.astype(np.float32), labels


def groups_of(twin):
    """By the places of parameters: biases of batch norm, and the bias of the first layer."""
    names = [name for name, _ in twin.named_parameters()]
    norms = [i for i, name in enumerate(names) if ".norm" in name and name.endswith("bias")]
    return [
        dict(parameters=norms, lr_factor=64.0, weight_decay=SGD["weight_decay"] / 64.0),
        dict(parameters=[names.index("0.bias")], freeze_step=FREEZE_STEP),
    ]


def run(twin, images, labels, groups):
    model = copy.deepcopy(twin).train()
    names, parameters = zip(*model.named_parameters())
    stepper = make_optimizer(list(parameters), {**SGD, "groups": groups}, {"name": "constant"})
    rates = [options["lr"] for options in stepper.optimizer.param_groups]
    floating = [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]
    lookahead, losses = Lookahead(floating, **LOOKAHEAD), []
    for step in range(STEPS):
        if step == FREEZE_STEP:
            parameters[names.index("0.bias")].requires_grad = False
        factor = factor_of(step)
        for options, rate in zip(stepper.optimizer.param_groups, rates):
            options["lr"] = rate * factor
        stepper.zero_grad()
        loss = functional.cross_entropy(model(images[step]), labels[step], label_smoothing=SMOOTHING)
        loss.backward()
        stepper.step()
        lookahead.after_step(step + 1, STEPS)
        losses.append(float(loss))
    lookahead.finish()
    return {"losses": np.array(losses), **{name: np.array(value.double()) for name, value in model.state_dict().items()}}


def factor_of(step):
    warmup, after = SCHEDULE["duration"], SCHEDULE["next"]
    if step < warmup:
        return SCHEDULE["start_factor"] + (1 - SCHEDULE["start_factor"]) * step / warmup
    return 1 - (1 - after["final_factor"]) * (step - warmup) / after["duration"]


def cases():
    twin = build(7)
    groups, (images, labels) = groups_of(twin), batches(7)
    targets = torch.from_numpy(labels)
    truth = run(twin, torch.from_numpy(images).double(), targets, groups)
    single = copy.deepcopy(twin).float()
    peers = [
        run(single, torch.from_numpy(images), targets, groups),
        run(single.to(memory_format=torch.channels_last), torch.from_numpy(images), targets, groups),
    ]
    assert truth["losses"][-1] < 0.8 * truth["losses"][0], truth["losses"]

    def judge(dtype):
        def expect(result, trained):
            losses = result.tensors["losses"].astype(np.float64)
            if dtype == "f64":
                fits = losses.shape == (STEPS,)
                yield "a loss", np.max(np.abs(losses - truth["losses"]) / truth["losses"]) / LOSS_LIMIT if fits else np.inf, None
            vectors = [pooled(each) for each in (truth, *peers)]
            yield from stray_shares(pooled({"losses": losses, **trained}), vectors[0], vectors[1:], dtype)

        return expect

    for dtype, conv_impl in (("f32", "onednn"), ("f64", "auto")):
        description = {
            "kind": "training",
            "model": {**MODEL, "conv_impl": conv_impl},
            "optimizer": {**SGD, "groups": groups},
            "schedule": SCHEDULE,
            "clip_norm": 0.0,
            "label_smoothing": SMOOTHING,
            "lookahead": LOOKAHEAD,
        }
        yield TrainingCase(
            f"recipe.airbench94.{dtype}",
            description,
            {"images": images.astype(NUMPY[dtype]), "labels": labels},
            judge(dtype),
            {"weights": state_arrays(twin, dtype)},
        )
