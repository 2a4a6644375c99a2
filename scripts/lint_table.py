#!/usr/bin/env python3
"""Prints what kernels moved in the simulator, as a Markdown table: one row per kernel, worst first.

usage: TANDEM_SIMULATOR_LINT=lint.tsv PROGRAM && lint_table.py lint.tsv

Sectors are the 32-byte pieces of global memory that requests of warps touched, wavefronts the turns that the banks of
shared memory took; the fewest are what the same bytes could have taken.
"""
import collections
import pathlib
import re
import sys


def short_name(symbol):
    """tandem::(anonymous namespace)::map<Sum> becomes map."""
    before = None
    while before != symbol:
        before, symbol = symbol, re.sub(r"<[^<>]*>", "", symbol)
    return symbol.split("::")[-1].strip()


def totals_of(file):
    totals = collections.defaultdict(lambda: {"global": [0, 0, 0], "shared": [0, 0, 0]})
    for line in pathlib.Path(file).read_text().splitlines():
        kernel, _, space, *counts = line.split("\t")
        row = totals[short_name(kernel)][space]
        for i, count in enumerate(counts):
            row[i] += int(count)
    return totals


def ratio(row):
    return row[1] / row[2] if row[2] else 1.0


def cells(row):
    return f"{row[0]:,} | {row[1]:,} | {row[2]:,} | {ratio(row):.2f}" if row[0] else "| | |"


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    totals = totals_of(sys.argv[1])
    print("| kernel | global requests | sectors | fewest | ratio | shared requests | wavefronts | fewest | ratio |")
    print("|---|" + "--:|" * 8)
    worst_first = sorted(totals.items(), key=lambda item: (-max(map(ratio, item[1].values())), item[0]))
    for name, row in worst_first:
        print(f"| `{name}` | {cells(row['global'])} | {cells(row['shared'])} |")


try:
    main()
except OSError as error:
    print(f"lint_table: {error.filename}: {error.strerror}", file=sys.stderr)
    sys.exit(2)
