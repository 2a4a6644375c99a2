#!/usr/bin/env python3
"""Compiles each header by itself, as one who includes it first would: it must include what it uses, need no definitions of
the includer's, and, where it is public, no header of a library that users may not have. The examples in its comments
(header_examples.py) must compile behind it, and a header that users include must have one.

    scripts/check_headers.py BUILD [--compiler CXX] [HEADER ...]

BUILD is a build folder, for its tandem/config.h. Public are all headers of the libraries but those in folders for
kernel code and for one foreign library (PRIVATE below); private ones may include CUDA's headers, which are
the simulator's here. Those that speak to MPI, NCCL, cuBLAS or cuDNN themselves are left out: they need headers that are
optional. Exit code 1 if a header fails, 2 for wrong arguments.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import command_line
import header_examples

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What kernels are made of, the insides of a family of them, and a part of reports that is not installed.
PRIVATE = re.compile(r"core/cuda/|kernels/device/|kernels/library_stream.h|kernels/[^/]+/[^/]+/|"
                     "train/(report/(environment_table|json_fields)|parse_json|measured_file).h")
# These speak to a library whose headers need not be there.
FOREIGN_FOLDERS = re.compile(r"/(cudnn|cublas)/|/mpi_(communicator|block_types).h|/nccl_functions.h")
# Headers that no public one may need, by their names.
FOREIGN = re.compile(r"/(CLI|nlohmann|toml\+\+|oneapi|dnnl|openmpi|mpich|nccl|cudnn\w*|cublas\w*|mpi|cuda\w*|nvtx3|simulator)(\.h|\.hpp|/)")


def problem_of(header, compiler, build):
    """What is wrong with this header, or nothing."""
    examples = header_examples.examples_of(header)
    if not examples and header_examples.needs_example(header):
        return "has no example"
    public = not PRIVATE.search(header)
    includes = ["-Iinclude", f"-I{build}/include"] + ([] if public else ["-isystem", "simulator/include"])
    with tempfile.NamedTemporaryFile(suffix=".d") as needs, tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        # Twice: it must have its guard.
        source.write(f'#include "tandem/{header}"\n#include "tandem/{header}"\n')
        source.writelines(text + "\n" for example in examples for _, text in example.parts()[0])
        source.writelines(example.source() for example in examples)
        source.flush()
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wno-unknown-pragmas", "-Wno-unused",
                               "-Werror=undef", *includes, "-MD", "-MF", needs.name, source.name], cwd=ROOT, text=True, capture_output=True)
        if done.returncode != 0 or done.stderr:
            return "does not compile by itself:\n" + done.stderr
        if public:
            for needed in pathlib.Path(needs.name).read_text().split():
                if FOREIGN.search(needed) and "/tandem/" not in needed:
                    return f"is public, but includes {needed}"
    return ""


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("headers", nargs="*", metavar="HEADER")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    arguments = parser.parse_intermixed_args()
    if not (arguments.build / "include/tandem/config.h").is_file():
        command_line.complain(f"{arguments.build}: no build folder of Tandem (scripts/build.sh makes one)")
    if not shutil.which(arguments.compiler):
        command_line.complain(f"--compiler {arguments.compiler}: not found")
    headers = arguments.headers or header_examples.headers()
    headers = [header for header in headers if not FOREIGN_FOLDERS.search(header)]
    for header in headers:
        if not header_examples.path_of(header).is_file():
            command_line.complain(f"{header}: no such header")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        build = arguments.build.resolve()
        for header, problem in zip(headers, pool.map(lambda header: problem_of(header, arguments.compiler, build), headers)):
            if problem:
                failed += 1
                print(f"check_headers: {header} {problem}", file=sys.stderr)
    print(f"check_headers: {len(headers) - failed} of {len(headers)} headers compile by themselves")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
