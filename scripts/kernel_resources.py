#!/usr/bin/env python3
"""Reads what `ptxas -v` printed during a build and tells what each kernel costs: registers, shared memory, spills.

usage: kernel_resources.py BUILD_LOG [--launches FILE] [--markdown]

Prints a line per kernel and architecture (the worst of its instances) and exits with 1 if any kernel spills registers to
memory, if ptxas says that it had to run products of warpgroups one after the other, or if the log holds no kernel.

Occupancy takes the sizes of launches, which the simulator knows: FILE is what TANDEM_SIMULATOR_COVERAGE named while the
kernels ran. With it each line tells how many of the kernel's instances were launched, in blocks of how many threads, with
how much dynamic shared memory, how many of a multiprocessor's warps these launches can have at once (the least and the
most, in percent of 64), and what keeps the least from having more. Launches that do not fit on an architecture are left out.
"""
import collections
import re
import subprocess

import command_line
import occupancy

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
LOSS = re.compile(r"Potential Performance Loss: (.*)")
USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?(?:.*?(\d+) bytes smem)?")
NUMBERS = ("spills", "registers", "shared", "stack", "barriers")


def demangled(symbols):
    text = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout
    return dict(zip(symbols, text.splitlines()))


def split_name(signature):
    """(name with template arguments, name without them), both without arguments and unnamed namespaces."""
    name = signature.replace("(anonymous namespace)::", "").removeprefix("void ")
    instance, plain, depth = "", "", 0
    for character in name:
        if character == "(" and depth == 0:
            break
        instance += character
        depth += character == "<"
        if depth == 0:
            plain += character
        depth -= character == ">"
    return instance, plain


def short_name(plain):
    return "::".join(part for part in plain.split("::") if part not in ("tandem", "kernels", "cuda"))


def read(log):
    """(symbol, architecture) -> dict of numbers."""
    kernels, current = {}, None
    for line in log:
        if match := ENTRY.search(line):
            current = kernels.setdefault((match[1], match[2]), dict.fromkeys(NUMBERS, 0))
        elif current is not None and (match := SPILLS.search(line)):
            current["stack"] = int(match[1])
            current["spills"] = int(match[2]) + int(match[3])
        elif current is not None and (match := USED.search(line)):
            current["registers"] = int(match[1])
            current["barriers"] = int(match[2] or 0)
            current["shared"] = int(match[3] or 0)
            current = None
    return kernels


def read_launches(file):
    """Name of an instance -> set of (threads per block, bytes of dynamic shared memory)."""
    launches = collections.defaultdict(set)
    for number, (_, name, *sizes) in command_line.lines_of(file, 4):
        launches[split_name(name)[0]].add(tuple(command_line.counts_of(file, number, sizes)))
    return launches


def span(values, pattern="{:,}"):
    low, high = pattern.format(min(values)), pattern.format(max(values))
    return low if low == high else f"{low}-{high}"


def launch_columns(architecture, launched):
    """Threads, dynamic bytes, occupancy in percent and its limits of [(numbers of an instance, threads, dynamic bytes)].
    Launches that this architecture refuses are left out."""
    if not launched:
        return "", "", "not launched", ""
    if architecture not in occupancy.MULTIPROCESSORS:
        return "", "", "unknown", ""
    fitting = []
    for numbers, threads, dynamic in launched:
        shared = numbers["shared"] + dynamic
        found = occupancy.occupancy(architecture, threads, numbers["registers"], shared, numbers["barriers"])
        if found.percent > 0:
            fitting.append((threads, dynamic, found))
    if not fitting:
        return "", "", "does not fit", ""
    threads, dynamic, found = zip(*fitting)
    percents = [each.percent for each in found]
    limits = {limit: None for each in found if each.percent == min(percents) for limit in each.limits}
    return span(threads), span(dynamic), span(percents, "{:g}"), ", ".join(limits)


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("build_log")
    parser.add_argument("--launches", metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    with open(arguments.build_log, errors="replace") as log:
        kernels = read(log)
        log.seek(0)
        losses = [match[1].strip() for line in log if (match := LOSS.search(line))]
    launches = read_launches(arguments.launches) if arguments.launches else {}
    names = {symbol: split_name(name) for symbol, name in demangled(sorted({symbol for symbol, _ in kernels})).items()}
    by_name = collections.defaultdict(list)
    for (symbol, architecture), numbers in kernels.items():
        instance, plain = names[symbol]
        by_name[short_name(plain), architecture].append((numbers, launches.get(instance, ())))

    columns = [("kernel", "<44"), ("for", "<7"), ("instances", ">9"), ("registers", ">9"), ("shared bytes", ">12"),
               ("spills", ">6")]
    if arguments.launches:
        columns += [("launched", ">8"), ("threads", ">8"), ("dynamic bytes", ">15"), ("occupancy, %", ">12"),
                    ("limited by", "<24")]
    row = (" | " if arguments.markdown else " ").join(f"{{:{width}}}" for _, width in columns)
    row = f"| {row} |" if arguments.markdown else row
    print(row.format(*(title for title, _ in columns)).rstrip())
    if arguments.markdown:
        print("|" + "|".join("---:" if width[0] == ">" else "---" for _, width in columns) + "|")
    spilling = 0
    for (name, architecture), instances in sorted(by_name.items()):
        worst = {key: max(numbers[key] for numbers, _ in instances) for key in NUMBERS}
        spilling += worst["spills"] > 0
        cells = [name, architecture, len(instances), worst["registers"], worst["shared"], worst["spills"]]
        if arguments.launches:
            launched = [(numbers, *block) for numbers, blocks in instances for block in blocks]
            cells += [sum(bool(blocks) for _, blocks in instances), *launch_columns(architecture, launched)]
        print(row.format(*cells).rstrip())
    print(f"\n{len(by_name)} kernels and architectures, {len(kernels)} instances, {spilling} with spills")
    if arguments.launches:
        unknown = launches.keys() - {instance for instance, _ in names.values()}
        print(f"{len(launches) - len(unknown)} instances launched; {len(unknown)} others were, which the log does not hold")
    for loss in losses:
        print(f"performance loss: {loss}")
    return 1 if spilling or losses or not kernels else 0


if __name__ == "__main__":
    command_line.run(main)
