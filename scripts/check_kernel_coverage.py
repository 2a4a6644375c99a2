#!/usr/bin/env python3
"""Compares the __global__ functions of the tree with those that the simulated suite ran.

usage: check_kernel_coverage.py COVERAGE_FILE...

COVERAGE_FILEs are what TANDEM_SIMULATOR_COVERAGE named: lines of source file, kernel, threads per block and dynamic shared
bytes, with tabs between. Prints every kernel that did not run and exits with 1 if there is one.
"""
import pathlib
import re

import command_line

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ["core", "kernels", "comm"]
KERNEL = re.compile(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(?:static\s+)?void\s+"
                    r"(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\(")


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def kernels_in_tree():
    found = set()
    for library in LIBRARIES:
        for path in sorted((ROOT / library).rglob("*.cu*")) + sorted((ROOT / library).rglob("*.h")):
            text = without_comments(path.read_text())
            names = KERNEL.findall(text)
            if len(names) != len(re.findall(r"\b__global__\b", text)):
                command_line.complain(f"{path.relative_to(ROOT)}: has a __global__ function that is not understood", code=1)
            found |= {(str(path.relative_to(ROOT)), name) for name in names}
    return found


def short_name(symbol):
    depth, plain = 0, ""
    for character in symbol:
        depth += character == "<"
        if depth == 0:
            plain += character
        depth -= character == ">"
    return plain.strip().split("::")[-1]


def kernels_that_ran(files):
    ran = set()
    for file in files:
        for _, (source, symbol, _, _) in command_line.lines_of(file, 4):
            parts = pathlib.PurePath(source).parts
            library = next((i for i, part in enumerate(parts) if part in LIBRARIES), None)
            if library is not None:
                ran.add(("/".join(parts[library:]), short_name(symbol)))
    return ran


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("files", nargs="+", metavar="COVERAGE_FILE")
    all_kernels, ran = kernels_in_tree(), kernels_that_ran(parser.parse_args().files)
    missing = sorted(all_kernels - ran)
    for file, name in missing:
        print(f"never run: {name} of {file}")
    print(f"check_kernel_coverage: {len(all_kernels) - len(missing)} of {len(all_kernels)} kernels ran")
    return 1 if missing or not all_kernels else 0


if __name__ == "__main__":
    command_line.run(main)
