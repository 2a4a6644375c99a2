#!/usr/bin/python3
"""Times element-wise functions of this framework and of PyTorch on the CPU, in turn.

  scripts/compare_elementwise.py
  scripts/compare_elementwise.py --python ~/venv/bin/python --threads 1 --pairs 9

Each function runs on f32 tensors of a million (2^20) and of 16 million elements, forward alone, and forward with
backward. Two processes take turns, one on each function after the other; a line has the medians over the rounds, and
PyTorch's over ours. The last line of each part is the geometric mean of these ratios.

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
COUNTS = (2**20, 2**24)


def functions(torch):
    of_one = {
        name: lambda a, b, f=getattr(torch, name): f(a)
        for name in ("exp", "log", "sqrt", "rsqrt", "reciprocal", "abs", "neg", "tanh", "sigmoid")
    }
    masks = {}

    def where(a, b):
        if len(a) not in masks:
            masks[len(a)] = torch.arange(len(a)) * 7 % 3 == 0
        return torch.where(masks[len(a)], a, b)

    return {
        **of_one,
        "hardswish": lambda a, b: torch.nn.functional.hardswish(a),
        "leaky_relu": lambda a, b: torch.nn.functional.leaky_relu(a),
        "clamp": lambda a, b: torch.clamp(a, 0.6, 1.7),
        "pow_2": lambda a, b: torch.pow(a, 2.0),
        "pow_1.7": lambda a, b: torch.pow(a, 1.7),
        "add_number": lambda a, b: a + 1.5,
        "div_number": lambda a, b: a / 1.5,
        "number_div": lambda a, b: 1.5 / a,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "pow": torch.pow,
        "maximum": torch.maximum,
        "where": where,
    }


def serve(threads):
    """What elementwise_bench does, with PyTorch."""
    import torch

    torch.set_num_threads(threads)
    table = functions(torch)
    print(json.dumps({"version": torch.__version__, "names": list(table)}), flush=True)
    count = 0
    for line in sys.stdin:
        if line.strip() == "quit":
            return 0
        name, mode, wanted, repeats = line.split()
        if int(wanted) != count:
            count = int(wanted)
            a, b = (0.5 + 2e-4 * (torch.arange(count) * factor % 10007).float() for factor in (7919, 104729))
            grad = torch.ones(count)
        seconds = [seconds_of(torch, table[name], mode == "both", a, b, grad) for _ in range(int(repeats))]
        print(json.dumps({"seconds": statistics.fmean(seconds)}), flush=True)
    return 0


def compare(parties, names, mode, count, arguments):
    """Prints the table of one part; the geometric mean."""
    repeats = max(1, 2**23 // count)
    ratios = []
    for name in names:
        warm_up, request = (f"{name} {mode} {count} {calls}" for calls in (1, repeats))
        ours, theirs = (1e3 * seconds for seconds in medians(parties, warm_up, request, arguments.pairs))
        ratios.append(theirs / ours)
        print(f"{name:<12}{ours:10.3f} ms {theirs:10.3f} ms {theirs / ours:8.2f}", flush=True)
    return math.exp(statistics.fmean(map(math.log, ratios)))


def parse_arguments():
    parser = Parser(__doc__)
    add_arguments(parser, ROOT / "build/cpu/tests/elementwise_bench")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.serve:
        try:
            return serve(arguments.threads)
        except ImportError as error:
            complain(f"{sys.executable} cannot import torch ({error}): give another Python by --python")
    program(arguments.bench, "cmake --preset cpu && cmake --build --preset cpu --target elementwise_bench")
    parties = parties_of(arguments, __file__)
    greeting = parties["PyTorch"].greeting
    for count in COUNTS:
        for mode in ("forward", "both"):
            what = "forward" if mode == "forward" else "forward and backward"
            print(f"\n{count} elements, f32, {what}, {arguments.threads} threads; ours, PyTorch {greeting['version']}, ratio")
            print(f"geometric mean {compare(parties, greeting['names'], mode, count, arguments):.2f}", flush=True)
    for party in parties.values():
        party.quit()
    return 0


if __name__ == "__main__":
    run(main)
