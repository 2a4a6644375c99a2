#!/usr/bin/python3
"""Times matrix products of this framework and of PyTorch on the CPU, in turn.

  scripts/compare_matmul.py
  scripts/compare_matmul.py --python ~/venv/bin/python --threads 1 --pairs 9

f32, forward alone, and forward with backward. Two processes take turns, one on each product after the other; a line has
the medians over the rounds, and PyTorch's over ours. The last line of each part is the geometric mean of these ratios.

PyTorch is that of `--python`; this script itself needs none. Its process keeps the memory of tensors that it has freed,
by settings of glibc; `--torch-memory default` times it without these.
"""

import math
from pathlib import Path

from command_line import run
from torch_turns import MODES, compare, seconds_of

ROOT = Path(__file__).resolve().parent.parent
PRODUCTS = (
    ("64,64,64", "64,64,64"),
    ("128,32,32", "128,32,32"),
    ("8,256,256", "8,256,256"),
    ("16,1,512", "512,512"),
    ("32,50,64", "64,100"),
    ("8,8,128,64", "8,8,64,128"),
    ("33,17", "40,17,29"),
    ("2,700,700", "2,700,700"),
)
MACS_PER_TURN = 2**29


def sizes(text):
    return [int(size) for size in text.split(",")]


def multiplications(a, b):
    (*a_batch, rows, depth), (*b_batch, _, columns) = sizes(a), sizes(b)
    return max(math.prod(a_batch), math.prod(b_batch)) * rows * depth * columns


def prepare(torch):
    """What matmul_bench does, with PyTorch."""

    def numbers(shape, factor):
        count = math.prod(shape)
        return (2e-4 * (torch.arange(count) * factor % 10007).float() - 1.0).reshape(shape)

    def measure(left, right, mode, repeats):
        a, b = numbers(sizes(left), 7919), numbers(sizes(right), 104729)
        grad = torch.ones_like(torch.matmul(a, b))
        return [seconds_of(torch, torch.matmul, mode == "both", (a, b), (), grad) for _ in range(int(repeats))]

    return {}, measure


def rows(mode):
    for a, b in PRODUCTS:
        repeats = max(1, MACS_PER_TURN // multiplications(a, b))
        warm_up, request = (f"{a} {b} {mode} {count}" for count in (max(1, repeats // 4), repeats))
        yield f"{a:<12}{b:<14}", warm_up, request


def parts(_):
    for mode, what in MODES:
        yield f"matmul, f32, {what}", rows(mode)


def main():
    return compare(__doc__, ROOT / "build/cpu/tests/matmul_bench", __file__, prepare, parts, "us")


if __name__ == "__main__":
    run(main)
