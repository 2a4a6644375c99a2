#!/usr/bin/python3
"""Times softmaxes, norms, losses, sums and lookups of this framework and of PyTorch on the CPU, in turn.

  scripts/compare_functions.py
  scripts/compare_functions.py --python ~/venv/bin/python --threads 1 --pairs 9

f32, forward alone, and forward with backward. Two processes take turns, one on each function after the other; a line has
the medians over the rounds, and PyTorch's over ours. The last line of each part is the geometric mean of these ratios.

PyTorch is that of `--python`; this script itself needs none. Its process keeps the memory of tensors that it has freed,
by settings of glibc; `--torch-memory default` times it without these.
"""

import math
from pathlib import Path

from command_line import run
from torch_turns import MODES, compare, seconds_of

ROOT = Path(__file__).resolve().parent.parent
CASES = (
    ("softmax", "64,1000"),
    ("softmax", "8192,128"),
    ("log_softmax", "64,1000"),
    ("log_softmax", "8192,128"),
    ("softmax_dim0", "128,8192"),
    ("layer_norm", "512,768"),
    ("layer_norm", "16384,64"),
    ("group_norm", "32,64,32,32"),
    ("embedding", "10000,128"),
    ("mse_loss", "1024,1024"),
    ("l1_loss", "1024,1024"),
    ("bce_with_logits", "1024,1024"),
    ("nll_loss", "8192,128"),
    ("cross_entropy", "128,10"),
    ("cross_entropy", "8192,128"),
    ("sum", "1024,1024"),
    ("sum_dim0", "1024,1024"),
    ("mean_dim1", "1024,1024"),
)
ELEMENTS_PER_TURN = 2**23
PLACES = 8192  # of a lookup


def functions(torch):
    F = torch.nn.functional
    return {
        "softmax": lambda x, w, b, target, labels: F.softmax(x, -1),
        "log_softmax": lambda x, w, b, target, labels: F.log_softmax(x, -1),
        "softmax_dim0": lambda x, w, b, target, labels: F.softmax(x, 0),
        "layer_norm": lambda x, w, b, target, labels: F.layer_norm(x, x.shape[-1:], w, b),
        "group_norm": lambda x, w, b, target, labels: F.group_norm(x, 8, w, b),
        "embedding": lambda x, w, b, target, labels: F.embedding(labels, x),
        "mse_loss": lambda x, w, b, target, labels: F.mse_loss(x, target),
        "l1_loss": lambda x, w, b, target, labels: F.l1_loss(x, target),
        "bce_with_logits": lambda x, w, b, target, labels: F.binary_cross_entropy_with_logits(x, target),
        "nll_loss": lambda x, w, b, target, labels: F.nll_loss(x, labels),
        "cross_entropy": lambda x, w, b, target, labels: F.cross_entropy(x, labels),
        "sum": lambda x, w, b, target, labels: x.sum(),
        "sum_dim0": lambda x, w, b, target, labels: x.sum(0),
        "mean_dim1": lambda x, w, b, target, labels: x.mean(1),
    }


def prepare(torch):
    """What function_bench does, with PyTorch."""
    table = functions(torch)

    def numbers(shape, factor):
        return (2e-4 * (torch.arange(math.prod(shape)) * factor % 10007).float() - 1.0).reshape(shape)

    def inputs(name, shape):
        channels = [shape[1] if len(shape) == 4 else shape[-1]]
        target = (torch.arange(math.prod(shape)) * 7 % 3 == 0).float().reshape(shape)
        places, classes = (PLACES, shape[0]) if name == "embedding" else (shape[0], shape[1])
        labels = torch.arange(places) * 7919 % 10007 % classes
        return (numbers(shape, 7919), numbers(channels, 7919), numbers(channels, 104729)), (target, labels)

    def measure(name, shape, mode, repeats):
        leaves, others = inputs(name, [int(size) for size in shape.split(",")])
        grad = torch.ones_like(table[name](*leaves, *others))
        return [seconds_of(torch, table[name], mode == "both", leaves, others, grad) for _ in range(int(repeats))]

    return {}, measure


def rows(mode):
    for name, shape in CASES:
        elements = math.prod(int(size) for size in shape.split(","))
        repeats = min(200, max(1, ELEMENTS_PER_TURN // elements))
        warm_up, request = (f"{name} {shape} {mode} {count}" for count in (max(1, repeats // 4), repeats))
        yield f"{name:<16}{shape:<14}", warm_up, request


def parts(_):
    for mode, what in MODES:
        yield f"f32, {what}", rows(mode)


def main():
    return compare(__doc__, ROOT / "build/cpu/tests/function_bench", __file__, prepare, parts, "us")


if __name__ == "__main__":
    run(main)
