#!/usr/bin/python3
"""Times matrix products of this framework and of PyTorch on the CPU, in turn.

  scripts/compare_matmul.py
  scripts/compare_matmul.py --python ~/venv/bin/python --threads 1 --pairs 9

f32, forward alone, and forward with backward. Two processes take turns, one on each product after the other; a line has
the medians over the rounds, and PyTorch's over ours. The last line of each part is the geometric mean of these ratios.

PyTorch is that of `--python`; this script itself needs none.
"""

import json
import math
import statistics
import sys
from pathlib import Path

from command_line import Parser, complain, program, run
from torch_turns import add_arguments, medians, parties_of, seconds_of

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


def serve(threads):
    """What matmul_bench does, with PyTorch."""
    import torch

    torch.set_num_threads(threads)
    print(json.dumps({"version": torch.__version__}), flush=True)

    def numbers(shape, factor):
        count = math.prod(shape)
        return (2e-4 * (torch.arange(count) * factor % 10007).float() - 1.0).reshape(shape)

    for line in sys.stdin:
        if line.strip() == "quit":
            return 0
        left, right, mode, repeats = line.split()
        a, b = numbers(sizes(left), 7919), numbers(sizes(right), 104729)
        grad = torch.ones_like(torch.matmul(a, b))
        seconds = [seconds_of(torch, torch.matmul, mode == "both", a, b, grad) for _ in range(int(repeats))]
        print(json.dumps({"seconds": statistics.fmean(seconds)}), flush=True)
    return 0


def compare(parties, mode, pairs):
    """Prints the table of one part; the geometric mean."""
    ratios = []
    for a, b in PRODUCTS:
        repeats = max(1, MACS_PER_TURN // multiplications(a, b))
        warm_up, request = (f"{a} {b} {mode} {count}" for count in (max(1, repeats // 4), repeats))
        ours, theirs = (1e6 * seconds for seconds in medians(parties, warm_up, request, pairs))
        ratios.append(theirs / ours)
        print(f"{a:<12}{b:<14}{ours:10.1f} us {theirs:10.1f} us {theirs / ours:8.2f}", flush=True)
    return math.exp(statistics.fmean(map(math.log, ratios)))


def parse_arguments():
    parser = Parser(__doc__)
    add_arguments(parser, ROOT / "build/cpu/tests/matmul_bench")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.serve:
        try:
            return serve(arguments.threads)
        except ImportError as error:
            complain(f"{sys.executable} cannot import torch ({error}): give another Python by --python")
    program(arguments.bench, "cmake --preset cpu && cmake --build --preset cpu --target matmul_bench")
    parties = parties_of(arguments, __file__)
    version = parties["PyTorch"].greeting["version"]
    for mode in ("forward", "both"):
        what = "forward" if mode == "forward" else "forward and backward"
        print(f"\nmatmul, f32, {what}, {arguments.threads} threads; ours, PyTorch {version}, ratio")
        print(f"geometric mean {compare(parties, mode, arguments.pairs):.2f}", flush=True)
    for party in parties.values():
        party.quit()
    return 0


if __name__ == "__main__":
    run(main)
