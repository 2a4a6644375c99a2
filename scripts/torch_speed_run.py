#!/usr/bin/python3
"""The recipes airbench94 and muon in PyTorch: what `cifar_train --recipe airbench94` is compared with.

  scripts/torch_speed_run.py --data datasets/cifar10 --width 0.5 --seed 1
  scripts/torch_speed_run.py --data datasets/cifar10 --steps 50 --json losses.json
  scripts/torch_speed_run.py --data datasets/cifar10 --device cuda --precision fp16 --runs 5
  scripts/torch_speed_run.py --data datasets/cifar10 --recipe muon

It trains the same network on the same files by the same rule, with random numbers of its own (airbench94: Keller
Jordan, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU", arXiv 2404.00498, and its repository, cifar10-airbench).
Learning rates and weight decays here are those of the mean loss and of logits times 1/9, as ours. In fp16 weights and
images are halves, and batch norm is f32, as in that repository; Newton-Schulz is in bf16 then. Prints accuracy with and without test-time augmentation, and seconds of
training alone, and of all that the published rule times: whitening, training and the last evaluation. The first run of
a program also waits for kernels to be loaded, chosen and compiled; --runs tells what the others take.
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
import torch_muon
from command_line import Parser, check_output, complain, positive_number, run, whole_number, write_json

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
WHITENING_IMAGES, WHITENING_EPS = 5000, 5e-4
BATCH = {"airbench94": 1024, "muon": 2000}
EPOCHS = {"airbench94": 9.9, "muon": 8}
MOMENTUM, LABEL_SMOOTHING = 0.85, 0.2
LR, WEIGHT_DECAY, BIAS_FACTOR = 1.5, 1.330e-3, 64
MUON_LR, MUON_MOMENTUM, MUON_EPS = 0.24, 0.6, 5e-11
MUON_BIAS_LR, MUON_HEAD_FACTOR, MUON_BIAS_DECAY, MUON_HEAD_DECAY = 106, 0.015624, 3.774e-5, 2.415e-3
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


def read_batches(folder, names, device):
    records = np.concatenate([np.fromfile(folder / name, dtype=np.uint8).reshape(-1, 3073) for name in names])
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()).float() / 255
    mean, deviation = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, DEVIATION))
    return ((images - mean) / deviation).to(device), torch.from_numpy(records[:, 0].astype(np.int64)).to(device)


def moved(images, shift_y, shift_x, border):
    """Windows of images that are padded by reflection, each at a shift of its own."""
    side = images.shape[-1]
    padded = functional.pad(images, (border,) * 4, mode="reflect")
    steps = torch.arange(side, device=images.device)
    rows = (border + shift_y)[:, None] + steps
    columns = (border + shift_x)[:, None] + steps
    number = torch.arange(len(images), device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[number, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


class Augmentation:
    """Alternating flip, and a crop by reflection: images are given by number."""

    def __init__(self, images, generator, crop=2):
        self.images, self.generator, self.crop = images, generator, crop
        self.first_flip = torch.rand(len(images), generator=generator, device=images.device) < 0.5

    def batch(self, numbers, epoch):
        images = self.images[numbers]
        shifts = torch.randint(
            -self.crop, self.crop + 1, (2, len(numbers)), generator=self.generator, device=images.device
        )
        images = moved(images, shifts[0], shifts[1], self.crop)
        flipped = self.first_flip[numbers] ^ (epoch % 2 == 1)
        return torch.where(flipped[:, None, None, None], images.flip(-1), images)


def schedule_factor(recipe, step, steps):
    if recipe == "muon":
        return max(1 - step / steps, 0)
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


def make_muon(model, dtype):
    """Filters first; then biases, that of the whitening in a group of its own, and the last layer."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    first = model[0].bias
    groups = [
        {"params": [p for p in trained if p.ndim == 4], "factor": 1.0},
        {"params": [p for p in trained if p.ndim == 1 and p is not first], "factor": 1.0, "weight_decay": MUON_BIAS_DECAY},
        {"params": [p for p in trained if p.ndim == 2], "factor": MUON_HEAD_FACTOR, "weight_decay": MUON_HEAD_DECAY},
        {"params": [first], "factor": 1.0, "weight_decay": MUON_BIAS_DECAY, "ends_early": True},
    ]
    return torch_muon.Muon(
        groups,
        MUON_LR,
        MUON_MOMENTUM,
        aux_lr=MUON_BIAS_LR,
        aux_momentum=MOMENTUM,
        eps=MUON_EPS,
        dtype=torch.bfloat16 if dtype == torch.float16 else None,
    )


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

    one = torch.ones(len(images), dtype=torch.long, device=images.device)
    plain, up, down = both(images), both(moved(images, -one, -one, 1)), both(moved(images, one, one, 1))
    return (2 * plain + up + down) / 4


def accuracy(model, images, labels, views):
    model.eval()
    right = 0
    for begin in range(0, len(images), 2000):
        logits = logits_of(model, images[begin : begin + 2000], views)
        right += int((logits.argmax(1) == labels[begin : begin + 2000]).sum())
    model.train()
    return 100 * right / len(images)


def seconds_now(device):
    """Seconds of a clock, when the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def train(arguments, seed):
    device = torch.device(arguments.device)
    dtype = torch.float16 if arguments.precision == "fp16" else torch.float32
    torch.manual_seed(seed)
    generator = torch.Generator(device).manual_seed(seed)
    images, labels = read_batches(arguments.data, [f"data_batch_{i}.bin" for i in range(1, 6)], device)
    test_images, test_labels = read_batches(arguments.data, ["test_batch.bin"], device)
    test_images = test_images.to(dtype)
    network = make_model(arguments.width).to(device, dtype, memory_format=torch.channels_last).train()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.float()
    # What is compiled shares its parameters with what is not.
    model = torch.compile(network, mode=arguments.compile) if arguments.compile else network

    start = seconds_now(device)
    network[0].weight.data.copy_(whitening_filters(images[:WHITENING_IMAGES]))
    images = images.to(dtype)
    is_muon, batch_size = arguments.recipe == "muon", BATCH[arguments.recipe]
    batches = len(images) // batch_size
    steps = math.ceil((arguments.epochs or EPOCHS[arguments.recipe]) * batches)
    optimizer = make_muon(network, dtype) if is_muon else make_optimizer(network)
    lookahead = None if is_muon else Lookahead(network, steps)
    base_lr = MUON_LR if is_muon else LR
    augmentation = Augmentation(images, generator)
    losses = []
    begun = seconds_now(device)
    for step in range(arguments.steps or steps):
        epoch, batch = divmod(step, batches)
        if batch == 0:
            order = torch.randperm(len(images), generator=generator, device=device)
            network[0].bias.requires_grad = epoch < WHITENING_BIAS_EPOCHS
        numbers = order[batch * batch_size : (batch + 1) * batch_size]
        shown = augmentation.batch(numbers, epoch).contiguous(memory_format=torch.channels_last)
        for options in optimizer.param_groups:
            length = WHITENING_BIAS_EPOCHS * batches if options.get("ends_early") else steps
            options["lr"] = base_lr * options["factor"] * schedule_factor(arguments.recipe, step, length)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(shown).float(), labels[numbers], label_smoothing=LABEL_SMOOTHING)
        loss.backward()
        optimizer.step()
        if lookahead:
            lookahead.after(step + 1)
        losses.append(loss.detach())  # read at the end: nothing waits for the device within a step
        if not arguments.quiet and (step + 1) % (10 if device.type == "cpu" else 100) == 0:
            now = seconds_now(device)
            print(f"step {step + 1}/{steps}  loss {losses[-1]:.4f}  {now - begun:.0f} s", file=sys.stderr, flush=True)
    if lookahead and not arguments.steps:
        lookahead.copy_back()
    trained = seconds_now(device)
    with_views = accuracy(network, test_images, test_labels, 6)
    end = seconds_now(device)
    return {
        "seed": seed,
        "steps": len(losses),
        "test_accuracy": accuracy(network, test_images, test_labels, 1),
        "test_accuracy_six_views": with_views,
        "train_seconds": trained - begun,
        "seconds": end - start,
        "losses": [loss.item() for loss in losses],
    }


def main():
    parser = Parser(__doc__)
    parser.add_argument("--data", type=Path, default=Path("datasets/cifar10"), help="folder of CIFAR-10's binary files")
    parser.add_argument("--width", type=positive_number, default=1.0, help="factor of the numbers of channels (default 1)")
    parser.add_argument("--recipe", choices=tuple(BATCH), default="airbench94", help="default airbench94")
    parser.add_argument("--epochs", type=positive_number, help="default 9.9, of muon 8")
    parser.add_argument("--steps", type=whole_number(0), default=0, help="stop behind so many steps; 0: not before the end")
    parser.add_argument("--seed", type=whole_number(0), default=1)
    parser.add_argument("--runs", type=whole_number(1), default=1, help="so many, of this seed and those behind it")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "fp16"), default="fp32", help="fp16: on a GPU only")
    parser.add_argument("--tf32", action="store_true", help="allow TF32 in fp32")
    parser.add_argument("--compile", choices=("default", "reduce-overhead", "max-autotune"), help="by torch.compile")
    parser.add_argument("--threads", type=whole_number(0, 4096), default=0, help="0: PyTorch's choice")
    parser.add_argument("--json", help="write the figures and the loss of each step there")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    arguments = parser.parse_args()
    if not (arguments.data / "data_batch_1.bin").exists():
        complain(f"{arguments.data}: there is no data_batch_1.bin; scripts/get_data.sh fetches CIFAR-10")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        complain("--device cuda: PyTorch sees no GPU")
    if arguments.precision == "fp16" and arguments.device == "cpu":
        complain("--precision fp16 needs --device cuda")
    if arguments.tf32 and (arguments.device == "cpu" or arguments.precision == "fp16"):
        complain("--tf32 needs --device cuda, and --precision fp32")
    if arguments.json:
        check_output("--json", arguments.json)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.tf32
    results = []
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        results.append(train(arguments, seed))
        result = results[-1]
        print(
            f"seed {seed}: test accuracy {result['test_accuracy']:.2f}%, by six views "
            f"{result['test_accuracy_six_views']:.2f}%, {result['train_seconds']:.2f} s of training, "
            f"{result['seconds']:.2f} s in all",
            flush=True,
        )
        if arguments.json:
            about = {"torch": torch.__version__, "device": arguments.device, "precision": arguments.precision}
            about |= {"recipe": arguments.recipe, "width": arguments.width, "compile": arguments.compile, "tf32": arguments.tf32}
            write_json("--json", arguments.json, about | {"runs": results})


if __name__ == "__main__":
    run(main)
