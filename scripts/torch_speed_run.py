#!/usr/bin/python3
"""The recipes of recipes/*.toml but dawn in PyTorch: what `cifar_train --recipe airbench94` is compared with.

  scripts/torch_speed_run.py --data datasets/cifar10 --width 0.5 --seed 1
  scripts/torch_speed_run.py --data datasets/cifar10 --steps 50 --json losses.json
  scripts/torch_speed_run.py --data datasets/cifar10 --device cuda --precision fp16 --runs 5
  scripts/torch_speed_run.py --data datasets/cifar10 --recipe muon
  scripts/torch_speed_run.py --data datasets/cifar10 --recipe bag-of-tricks --epochs 1

It trains the same network on the same files by the same rule, with random numbers of its own (airbench94: Keller
Jordan, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU", arXiv 2404.00498, and its repository, cifar10-airbench).
Learning rates and weight decays here are those of the mean loss, as ours (torch_recipes.py). In fp16 weights and
images are halves, and batch norm is f32, as in that repository; Newton-Schulz is in bf16 then. Prints accuracy with and without test-time augmentation, and seconds of
training alone, of the whitening, and of all that the published rule times: whitening, training and the last evaluation.
What scripts/speed_run.py calls `seconds` is that without the whitening. The first run of
a program also waits for kernels to be loaded, chosen and compiled; --runs tells what the others take.
"""

import math
import sys
import time
from pathlib import Path

from command_line import Parser, check_output, complain, positive_number, run, whole_number, write_json

try:
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional

    from torch_recipes import RECIPES
except ImportError as error:
    complain(f"{sys.executable} cannot import PyTorch and NumPy ({error}): give this script to a Python that has them")

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def whitening_filters(images, like, eps):
    """Filters of the shape of `like` whose answers to patches of the images have unit variance, behind them the negatives of these where it
    has as many."""
    side, numbers = like.shape[-1], like[0].numel()
    moments, count = 0, 0
    for part in images.split(1000):  # all patches at once would be many times the images
        patches = part.unfold(2, side, 1).unfold(3, side, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, numbers)
        moments, count = moments + patches.T @ patches, count + len(patches)
    values, vectors = torch.linalg.eigh(moments / count)
    filters = (vectors / torch.sqrt(values + eps)).T.flip(0).reshape(numbers, *like.shape[1:])
    return torch.cat([filters, -filters])[: len(like)]


def read_batches(folder, names, device):
    files = {name: np.fromfile(folder / name, dtype=np.uint8) for name in names}
    for name, values in files.items():
        if len(values) == 0 or len(values) % 3073 != 0:
            complain(f"{folder / name}: {len(values)} bytes are no whole number of images of 3073; scripts/get_data.sh fetches CIFAR-10")
    records = np.concatenate([values.reshape(-1, 3073) for values in files.values()])
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
    """What a recipe does to images, which are given by number."""

    def __init__(self, images, recipe, generator):
        self.images, self.recipe, self.generator = images, recipe, generator
        self.first_flip = torch.rand(len(images), generator=generator, device=images.device) < 0.5

    def draw(self, count, most):
        """Uniform in [-most, most], for images."""
        values = torch.rand(count, generator=self.generator, device=self.images.device) * 2 - 1
        return (most * values)[:, None, None, None].to(self.images.dtype)

    def batch(self, numbers, epoch):
        images, crop, count = self.images[numbers], self.recipe.crop, len(numbers)
        shifts = torch.randint(-crop, crop + 1, (2, count), generator=self.generator, device=images.device)
        images = moved(images, shifts[0], shifts[1], crop)
        if self.recipe.flip == "alternating":
            flipped = self.first_flip[numbers] ^ (epoch % 2 == 1)
        else:
            flipped = torch.rand(count, generator=self.generator, device=images.device) < 0.5
        images = torch.where(flipped[:, None, None, None], images.flip(-1), images)
        if self.recipe.offset or self.recipe.gain:
            images = (images + self.draw(count, self.recipe.offset)) * (1 + self.draw(count, self.recipe.gain))
        return images


@torch.no_grad()
def logits_of(model, images, views):
    """Averaged over these views: "one", "flip", "six" or "six-equal"."""
    if views == "one":
        return model(images)

    def both(shown):
        return (model(shown) + model(shown.flip(-1))) / 2

    if views == "flip":
        return both(images)
    one = torch.ones(len(images), dtype=torch.long, device=images.device)
    plain, up, down = both(images), both(moved(images, -one, -one, 1)), both(moved(images, one, one, 1))
    return (2 * plain + up + down) / 4 if views == "six" else (plain + up + down) / 3


@torch.no_grad()
def logits_of_share(model, images, views, share):
    """Only the least sure images of that share are looked at in these views."""
    if share == 1:
        return logits_of(model, images, views)
    logits = model(images)
    sure = logits.float().softmax(1).amax(1)
    chosen = sure.topk(int(share * len(images)), largest=False).indices
    logits[chosen] = logits_of(model, images[chosen], views)
    return logits


def accuracy(model, images, labels, views, share=1):
    model.eval()
    right = 0
    for begin in range(0, len(images), 2000):
        logits = logits_of_share(model, images[begin : begin + 2000], views, share)
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
    recipe = RECIPES[arguments.recipe]
    network = recipe.make_model(arguments.width).to(device, dtype, memory_format=torch.channels_last).train()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.float()
    # What is compiled shares its parameters with what is not.
    model = torch.compile(network, mode=arguments.compile) if arguments.compile else network

    start = seconds_now(device)
    first = next(module for module in network.modules() if isinstance(module, nn.Conv2d))
    first.weight.data.copy_(whitening_filters(images[: recipe.whitening_images], first.weight, recipe.whitening_eps))
    whitened = seconds_now(device)
    images = images.to(dtype)
    batches = len(images) // recipe.batch
    if batches == 0:
        complain(f"{arguments.data}: {len(images)} training images do not fill a batch of {recipe.batch}")
    steps = math.ceil((arguments.epochs or recipe.epochs) * batches)
    optimizer = recipe.make_optimizer(network, dtype, steps)
    average = recipe.average(network, steps)
    augmentation = Augmentation(images, recipe, generator)
    losses = []
    begun = seconds_now(device)
    for step in range(min(arguments.steps or steps, steps)):
        epoch, batch = divmod(step, batches)
        if batch == 0:
            order = torch.randperm(len(images), generator=generator, device=device)
        if step >= recipe.freeze_step(batches):
            first.bias.requires_grad = False
        numbers = order[batch * recipe.batch : (batch + 1) * recipe.batch]
        shown = augmentation.batch(numbers, epoch).contiguous(memory_format=torch.channels_last)
        for options in optimizer.param_groups:
            options["lr"] = recipe.lr * options["factor"] * recipe.factor(step, options.get("steps", steps))
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(shown).float(), labels[numbers], label_smoothing=recipe.smoothing)
        loss.backward()
        optimizer.step()
        if average:
            average.after(step + 1)
        losses.append(loss.detach())  # read at the end: nothing waits for the device within a step
        if not arguments.quiet and (step + 1) % (10 if device.type == "cpu" else 100) == 0:
            now = seconds_now(device)
            print(f"step {step + 1}/{steps}  loss {losses[-1]:.4f}  {now - begun:.0f} s", file=sys.stderr, flush=True)
    if average and len(losses) == steps:
        average.copy_back()
    trained = seconds_now(device)
    with_views = accuracy(network, test_images, test_labels, recipe.views, recipe.share)
    end = seconds_now(device)
    return {
        "seed": seed,
        "steps": len(losses),
        "test_accuracy": accuracy(network, test_images, test_labels, "one"),
        "test_accuracy_by_views": with_views,
        "train_seconds": trained - begun,
        "whitening_seconds": whitened - start,
        "seconds": end - whitened,
        "published_seconds": end - start,
        "losses": [loss.item() for loss in losses],
    }


def main():
    parser = Parser(__doc__)
    parser.add_argument("--data", type=Path, default=Path("datasets/cifar10"), help="folder of CIFAR-10's binary files")
    parser.add_argument("--width", type=positive_number, default=1.0, help="factor of the numbers of channels (default 1)")
    parser.add_argument("--recipe", choices=tuple(RECIPES), default="airbench94", help="default airbench94")
    parser.add_argument("--epochs", type=positive_number, help="default: as the recipe says")
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
            f"seed {seed}: test accuracy {result['test_accuracy']:.2f}%, by several views "
            f"{result['test_accuracy_by_views']:.2f}%, {result['train_seconds']:.2f} s of training, "
            f"{result['seconds']:.2f} s with the evaluation, {result['published_seconds']:.2f} s with the whitening as well",
            flush=True,
        )
        if arguments.json:
            about = {"torch": torch.__version__, "device": arguments.device, "precision": arguments.precision}
            about |= {"recipe": arguments.recipe, "width": arguments.width, "compile": arguments.compile, "tf32": arguments.tf32}
            write_json("--json", arguments.json, about | {"runs": results})


if __name__ == "__main__":
    run(main)
