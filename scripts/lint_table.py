#!/usr/bin/env python3
"""Prints what kernels moved in the simulator, as a Markdown table: one row per kernel, worst first.

usage: TANDEM_SIMULATOR_LINT=lint.tsv PROGRAM && lint_table.py lint.tsv

Sectors are the 32-byte pieces of global memory that requests of warps touched, wavefronts the turns that the banks of
shared memory took; the fewest are what the same bytes could have taken.
"""
import collections
import re

import command_line


def short_name(symbol):
    """tandem::(anonymous namespace)::map<Sum> becomes map."""
    before = None
    while before != symbol:
        before, symbol = symbol, re.sub(r"<[^<>]*>", "", symbol)
    return symbol.split("::")[-1].strip()


def totals_of(file):
    totals = collections.defaultdict(lambda: {"global": [0, 0, 0], "shared": [0, 0, 0]})
    for number, (kernel, _, space, *counts) in command_line.lines_of(file, 6):
        row = totals[short_name(kernel)]
        if space not in row:
            command_line.complain(f"{file}:{number}: '{space}' is no kind of memory: not a file of this kind")
        row[space] = [a + b for a, b in zip(row[space], command_line.counts_of(file, number, counts))]
    return totals


def ratio(row):
    return row[1] / row[2] if row[2] else 1.0


def cells(row):
    return f"{row[0]:,} | {row[1]:,} | {row[2]:,} | {ratio(row):.2f}" if row[0] else "| | |"


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("file", help="what TANDEM_SIMULATOR_LINT named")
    totals = totals_of(parser.parse_args().file)
    print("| kernel | global requests | sectors | fewest | ratio | shared requests | wavefronts | fewest | ratio |")
    print("|---|" + "--:|" * 8)
    worst_first = sorted(totals.items(), key=lambda item: (-max(map(ratio, item[1].values())), item[0]))
    for name, row in worst_first:
        print(f"| `{name}` | {cells(row['global'])} | {cells(row['shared'])} |")


if __name__ == "__main__":
    command_line.run(main)
