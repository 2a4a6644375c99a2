#!/usr/bin/python3
"""The recipe airbench94 in PyTorch, f32: what `cifar_train --recipe airbench94` is compared with.

  scripts/torch_speed_run.py --data datasets/cifar10 --width 0.5 --seed 1
  scripts/torch_speed_run.py --data datasets/cifar10 --steps 50 --json losses.json

It trains the same network on the same files by the same rule, with random numbers of its own (airbench94: Keller
Jordan, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU", arXiv 2404.00498, and its repository, cifar10-airbench).
The learning rate and weight decay here are those of the mean loss, as ours. Prints accuracy with and without
test-time augmentation, and seconds of training alone, and of all that the published rule times: whitening, training
and the last evaluation.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "parity"))

import torch_models
from command_line import Parser, check_output, complain, positive_number, run, whole_number, write_json

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
WHITENING_IMAGES, WHITENING_EPS = 5000, 5e-4
BATCH, MOMENTUM, LABEL_SMOOTHING = 1024, 0.85, 0.2
LR, WEIGHT_DECAY, BIAS_FACTOR = 1.5, 1.330e-3, 64
WARMUP_SHARE, FIRST_FACTOR, LAST_FACTOR = 0.23, 0.2, 0.07
LOOKAHEAD_EVERY, LOOKAHEAD_BASE = 5, 0.95
WHITENING_BIAS_EPOCHS = 3


def make_model(width):
    """The network of tests/parity/torch_models.py, whose filters begin as the identity as far as there are input channels."""
    model = torch_models.make_model("airbench94", width=width)
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.bias is None:
            nn.init.dirac_(module.weight.data[: module.in_channels])
    nn.init.zeros_(model[0].bias)
    return model


def whitening_filters(images):
    """Filters [24, 3, 2, 2] whose answers to patches of the images have unit variance, and the negatives of these."""
    patches = images.unfold(2, 2, 1).unfold(3, 2, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 12)
    covariance = patches.T @ patches / len(patches)
    values, vectors = torch.linalg.eigh(covariance)
    filters = (vectors / torch.sqrt(values + WHITENING_EPS)).T.flip(0).reshape(12, 3, 2, 2)
    return torch.cat([filters, -filters])


def read_batches(folder, names):
    records = np.concatenate([np.fromfile(folder / name, dtype=np.uint8).reshape(-1, 3073) for name in names])
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()).float() / 255
    mean, deviation = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, DEVIATION))
    return (images - mean) / deviation, torch.from_numpy(records[:, 0].astype(np.int64))


def moved(images, shift_y, shift_x, border):
    """Windows of images that are padded by reflection, each at a shift of its own."""
    side = images.shape[-1]
    padded = functional.pad(images, (border,) * 4, mode="reflect")
    steps = torch.arange(side)
    rows = (border + shift_y)[:, None] + steps
    columns = (border + shift_x)[:, None] + steps
    number = torch.arange(len(images))[:, None, None]
    return padded.permute(0, 2, 3, 1)[number, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


class Augmentation:
    """Alternating flip, and a crop by reflection: images are given by number."""

    def __init__(self, images, generator, crop=2):
        self.images, self.generator, self.crop = images, generator, crop
        self.first_flip = torch.rand(len(images), generator=generator) < 0.5

    def batch(self, numbers, epoch):
        images = self.images[numbers]
        shifts = torch.randint(-self.crop, self.crop + 1, (2, len(numbers)), generator=self.generator)
        images = moved(images, shifts[0], shifts[1], self.crop)
        flipped = self.first_flip[numbers] ^ (epoch % 2 == 1)
        return torch.where(flipped[:, None, None, None], images.flip(-1), images)


def schedule_factor(step, steps):
    warmup = int(WARMUP_SHARE * steps)
    if step < warmup:
        return FIRST_FACTOR + (1 - FIRST_FACTOR) * step / warmup
    return 1 - (1 - LAST_FACTOR) * (step - warmup) / (steps - warmup)


class Lookahead:
    """A second copy of all floating tensors, which the network is set back to."""

    def __init__(self, model, steps):
        self.live = [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]
        self.slow = [tensor.clone() for tensor in self.live]
        self.steps = steps

    @torch.no_grad()
    def after(self, step):
        """Behind the step of this number, from 1."""
        if step % LOOKAHEAD_EVERY == 0:
            decay = LOOKAHEAD_BASE**LOOKAHEAD_EVERY * (step / self.steps) ** 3
            torch._foreach_mul_(self.slow, decay)
            torch._foreach_add_(self.slow, self.live, alpha=1 - decay)
            self.copy_back()

    @torch.no_grad()
    def copy_back(self):
        for live, slow in zip(self.live, self.slow):
            live.copy_(slow)


def make_optimizer(model):
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    norm_biases = {id(norm.bias) for norm in norms}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if id(p) not in norm_biases], "factor": 1.0, "weight_decay": WEIGHT_DECAY},
        {
            "params": [p for p in trained if id(p) in norm_biases],
            "factor": float(BIAS_FACTOR),
            "weight_decay": WEIGHT_DECAY / BIAS_FACTOR,
        },
    ]
    return torch.optim.SGD(groups, lr=LR, momentum=MOMENTUM, nesterov=True)


@torch.no_grad()
def logits_of(model, images, views):
    """Averaged over `views`: 1, or 6 as airbench94 does."""
    if views == 1:
        return model(images)

    def both(shown):
        return (model(shown) + model(shown.flip(-1))) / 2

    zero, one = torch.zeros(len(images), dtype=torch.long), torch.ones(len(images), dtype=torch.long)
    plain, up, down = both(images), both(moved(images, -one, -one, 1)), both(moved(images, zero + 1, one, 1))
    return (2 * plain + up + down) / 4


def accuracy(model, images, labels, views):
    model.eval()
    right = 0
    for begin in range(0, len(images), 2000):
        logits = logits_of(model, images[begin : begin + 2000], views)
        right += int((logits.argmax(1) == labels[begin : begin + 2000]).sum())
    model.train()
    return 100 * right / len(images)


def train(arguments):
    torch.manual_seed(arguments.seed)
    generator = torch.Generator().manual_seed(arguments.seed)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    images, labels = read_batches(arguments.data, [f"data_batch_{i}.bin" for i in range(1, 6)])
    test_images, test_labels = read_batches(arguments.data, ["test_batch.bin"])
    model = make_model(arguments.width).to(memory_format=torch.channels_last).train()

    start = time.perf_counter()
    model[0].weight.data.copy_(whitening_filters(images[:WHITENING_IMAGES]))
    batches = len(images) // BATCH
    steps = math.ceil(arguments.epochs * batches)
    optimizer, lookahead = make_optimizer(model), Lookahead(model, steps)
    augmentation = Augmentation(images, generator)
    losses = []
    begun = time.perf_counter()
    for step in range(arguments.steps or steps):
        epoch, batch = divmod(step, batches)
        if batch == 0:
            order = torch.randperm(len(images), generator=generator)
            model[0].bias.requires_grad = epoch < WHITENING_BIAS_EPOCHS
        numbers = order[batch * BATCH : (batch + 1) * BATCH]
        shown = augmentation.batch(numbers, epoch).contiguous(memory_format=torch.channels_last)
        for options in optimizer.param_groups:
            options["lr"] = LR * options["factor"] * schedule_factor(step, steps)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(shown), labels[numbers], label_smoothing=LABEL_SMOOTHING)
        loss.backward()
        optimizer.step()
        lookahead.after(step + 1)
        losses.append(loss.item())
        if not arguments.quiet and (step + 1) % 10 == 0:
            print(f"step {step + 1}/{steps}  loss {losses[-1]:.4f}  {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    if not arguments.steps:
        lookahead.copy_back()
    trained = time.perf_counter()
    with_views = accuracy(model, test_images, test_labels, 6)
    end = time.perf_counter()
    return {
        "torch": torch.__version__,
        "seed": arguments.seed,
        "width": arguments.width,
        "steps": len(losses),
        "test_accuracy": accuracy(model, test_images, test_labels, 1),
        "test_accuracy_six_views": with_views,
        "train_seconds": trained - begun,
        "seconds": end - start,
        "losses": losses,
    }


def main():
    parser = Parser(__doc__)
    parser.add_argument("--data", type=Path, default=Path("datasets/cifar10"), help="folder of CIFAR-10's binary files")
    parser.add_argument("--width", type=positive_number, default=1.0, help="factor of the numbers of channels (default 1)")
    parser.add_argument("--epochs", type=positive_number, default=9.9, help="default 9.9")
    parser.add_argument("--steps", type=whole_number(0), default=0, help="stop behind so many steps; 0: not before the end")
    parser.add_argument("--seed", type=whole_number(0), default=1)
    parser.add_argument("--threads", type=whole_number(0, 4096), default=0, help="0: PyTorch's choice")
    parser.add_argument("--json", help="write the figures and the loss of each step there")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    arguments = parser.parse_args()
    if not (arguments.data / "data_batch_1.bin").exists():
        complain(f"{arguments.data}: there is no data_batch_1.bin; scripts/get_data.sh fetches CIFAR-10")
    if arguments.json:
        check_output("--json", arguments.json)
    result = train(arguments)
    if arguments.json:
        write_json("--json", arguments.json, result)
    print(
        f"test accuracy {result['test_accuracy']:.2f}%, by six views {result['test_accuracy_six_views']:.2f}%, "
        f"{result['train_seconds']:.1f} s of training, {result['seconds']:.1f} s in all"
    )


if __name__ == "__main__":
    run(main)
