#!/usr/bin/python3
"""Times element-wise functions of this framework and of PyTorch on the CPU, in turn.

  scripts/compare_elementwise.py
  scripts/compare_elementwise.py --python ~/venv/bin/python --threads 1 --pairs 9

Each function runs on f32 tensors of a million (2^20) and of 16 million elements, forward alone, and forward with
backward. Two processes take turns, one on each function after the other; a line has the medians over the rounds, and
PyTorch's over ours. The last line of each part is the geometric mean of these ratios.

PyTorch is that of `--python`; this script itself needs none. Its process keeps the memory of tensors that it has freed,
by settings of glibc; `--torch-memory default` times it without these.
"""

from pathlib import Path

from command_line import run
from torch_turns import MODES, compare, seconds_of

ROOT = Path(__file__).resolve().parent.parent
COUNTS = (2**20, 2**24)


def functions(torch):
    of_one = {
        name: lambda a, b, f=getattr(torch, name): f(a)
        for name in ("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "abs", "neg", "tanh", "sigmoid")
    }
    masks = {}

    def where(a, b):
        if len(a) not in masks:
            masks[len(a)] = torch.arange(len(a)) * 7 % 3 == 0
        return torch.where(masks[len(a)], a, b)

    return {
        **of_one,
        "hardswish": lambda a, b: torch.nn.functional.hardswish(a),
        "softplus": lambda a, b: torch.nn.functional.softplus(a),
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


def prepare(torch):
    """What elementwise_bench does, with PyTorch."""
    table = functions(torch)
    operands = {}  # of the number of elements that was asked for last

    def measure(name, mode, count, repeats):
        if count not in operands:
            operands.clear()
            a, b = (0.5 + 2e-4 * (torch.arange(int(count)) * factor % 10007).float() for factor in (7919, 104729))
            operands[count] = (a, b), torch.ones(int(count))
        leaves, grad = operands[count]
        return [seconds_of(torch, table[name], mode == "both", leaves, (), grad) for _ in range(int(repeats))]

    return {"names": list(table)}, measure


def rows(names, mode, count):
    for name in names:
        warm_up, request = (f"{name} {mode} {count} {calls}" for calls in (1, max(1, 2**23 // count)))
        yield f"{name:<12}", warm_up, request


def parts(greeting):
    for count in COUNTS:
        for mode, what in MODES:
            yield f"{count} elements, f32, {what}", rows(greeting["names"], mode, count)


def main():
    return compare(__doc__, ROOT / "build/cpu/tests/elementwise_bench", __file__, prepare, parts, "ms")


if __name__ == "__main__":
    run(main)
