#!/usr/bin/env python3
"""Reads what `ptxas -v` printed during a build and tells what each kernel costs: registers, shared memory, spills.

usage: kernel_resources.py BUILD_LOG [--markdown]

Prints a line per kernel and architecture (the worst of its instances) and exits with 1 if any kernel spills registers to
memory, if ptxas says that it had to run products of warpgroups one after the other, or if the log holds no kernel.
"""
import argparse
import collections
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
LOSS = re.compile(r"Potential Performance Loss: (.*)")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def demangled(symbols):
    text = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout
    return dict(zip(symbols, text.splitlines()))


def short_name(signature):
    """The name without namespaces, arguments and template arguments."""
    name = signature.replace("(anonymous namespace)::", "").removeprefix("void ")
    plain, depth = "", 0
    for character in name:
        if character == "(" and depth == 0:
            break
        depth += character == "<"
        if depth == 0:
            plain += character
        depth -= character == ">"
    return "::".join(part for part in plain.split("::") if part not in ("tandem", "kernels", "cuda"))


def read(log):
    """(symbol, architecture) -> dict of numbers."""
    kernels, current = {}, None
    for line in log:
        if match := ENTRY.search(line):
            current = kernels.setdefault((match[1], match[2]), {"spills": 0, "registers": 0, "shared": 0, "stack": 0})
        elif current is not None and (match := SPILLS.search(line)):
            current["stack"] = int(match[1])
            current["spills"] = int(match[2]) + int(match[3])
        elif current is not None and (match := USED.search(line)):
            current["registers"] = int(match[1])
            current["shared"] = int(match[2] or 0)
            current = None
    return kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build_log")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    with open(arguments.build_log, errors="replace") as log:
        kernels = read(log)
        log.seek(0)
        losses = [match[1].strip() for line in log if (match := LOSS.search(line))]
    names = demangled(sorted({symbol for symbol, _ in kernels}))
    worst = collections.defaultdict(lambda: {"instances": 0, "spills": 0, "registers": 0, "shared": 0, "stack": 0})
    for (symbol, architecture), numbers in kernels.items():
        entry = worst[short_name(names[symbol]), architecture]
        entry["instances"] += 1
        for key, value in numbers.items():
            entry[key] = max(entry[key], value)
    row = "| {:<44} | {:<7} | {:>9} | {:>9} | {:>12} | {:>6} |" if arguments.markdown else "{:<44} {:<7} {:>9} {:>9} {:>12} {:>6}"
    print(row.format("kernel", "for", "instances", "registers", "shared bytes", "spills"))
    if arguments.markdown:
        print("|---|---|---:|---:|---:|---:|")
    for (name, architecture), entry in sorted(worst.items()):
        print(row.format(name, architecture, entry["instances"], entry["registers"], entry["shared"], entry["spills"]))
    spilling = sum(entry["spills"] > 0 for entry in worst.values())
    print(f"\n{len(worst)} kernels and architectures, {len(kernels)} instances, {spilling} with spills")
    for loss in losses:
        print(f"performance loss: {loss}")
    sys.exit(1 if spilling or losses or not kernels else 0)


main()
