#!/usr/bin/env python3
"""The umbrella headers include/tandem/<library>.h: each must include what users of its library do, no more and no less.

    scripts/umbrella_headers.py [--fix]

Users include the headers that need an example (header_examples.py); of kernels/, which is called by autograd/, also the functions that
a differentiable function of one's own may call: those with an *_implementations.h beside them, and USEFUL below. What a header of nothing
but includes has (autograd/functions.h) is not listed again. tandem.h includes the umbrella header of each library. --fix writes the include lines and leaves the comments above them as they are. Exit code 1 if a header
is not as it should be.
"""
import re
import sys

import command_line
import header_examples
from header_examples import LIBRARIES, ROOT

FOLDER = ROOT / "include/tandem"
USEFUL = ("kernels/conv/tuning/tuner.h", "kernels/elementwise/map.h", "kernels/float32_products.h", "kernels/instruction_set.h",
          "kernels/notice.h")


def is_for_users(header):
    if not header.startswith("kernels/"):
        return header_examples.needs_example(header)
    beside = ROOT / header.replace(".h", "_implementations.h")
    return header_examples.needs_example(header) or header in USEFUL or beside.is_file()


def collected(headers):
    """What those of these headers include that are nothing but includes."""
    found = set()
    for header in headers:
        code = re.sub(r"//.*", "", (ROOT / header).read_text()).replace("#pragma once", "")
        includes = re.findall(r'#include "tandem/(.*)"', code)
        if includes and not re.sub(r'#include ".*"', "", code).strip():
            found.update(includes)
    return found


def wanted():
    """The include lines of each umbrella header, by its name."""
    headers = header_examples.headers()
    lines = {f"{library}.h": [header for header in headers if header.startswith(f"{library}/") and is_for_users(header)]
             for library in LIBRARIES}
    lines = {name: [header for header in listed if header not in collected(listed)] for name, listed in lines.items()}
    lines["core.h"] = ["config.h"] + lines["core.h"]
    lines["tandem.h"] = sorted(f"{library}.h" for library in LIBRARIES)
    return {name: [f'#include "tandem/{header}"' for header in headers] for name, headers in lines.items()}


def with_includes(text, lines):
    """This header with these lines instead of its includes."""
    before, guard, _ = text.partition("#pragma once\n")
    return before + guard + "\n" + "\n".join(lines) + "\n"


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("--fix", action="store_true")
    fix = parser.parse_args().fix
    faults = []
    for name, lines in wanted().items():
        path = FOLDER / name
        text = path.read_text() if path.is_file() else f"// All of {name[:-2]}/ that programs use.\n#pragma once\n"
        right = with_includes(text, lines)
        if path.is_file() and text == right:
            continue
        if fix:
            path.write_text(right)
            continue
        there = re.findall("^#include .*$", text, flags=re.M)
        faults += [f"include/tandem/{name}: lacks {line}" for line in lines if line not in there]
        faults += [f"include/tandem/{name}: {line} is not for users" for line in there if line not in lines]
        faults += [] if set(there) != set(lines) else [f"include/tandem/{name}: not as --fix would write it"]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print("(scripts/umbrella_headers.py --fix mends that)", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    command_line.run(main)
