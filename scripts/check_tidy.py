#!/usr/bin/env python3
"""clang-tidy over the sources of a build, with the checks of .clang-tidy; what it finds is an error.

    scripts/check_tidy.py BUILD [--jobs N] [PATH ...]

BUILD is a build folder with compile_commands.json, of a build without CUDA kernels (preset cpu). PATHs limit it to sources
below them; without any, those of the libraries and programs are looked at, not the tests. clang-tidy must be version 23,
since versions differ in what they find; it took a third of version 14's time. CLANG_TIDY names one, else clang-tidy-23, then
clang-tidy are looked for, then the one that `pip install clang-tidy==23.1.4` brings. Exit code 1 if something is found, 2 for
wrong arguments, 77 where clang-tidy 23 is missing.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import command_line
import llvm_tools

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT = ["core", "kernels", "autograd", "layers", "optim", "comm", "data", "train", "apps"]


def for_clang(entry):
    """The command without GCC's precompiled headers and the warnings that clang has not got. What libstdc++ deprecates
    and uses itself is no fault of ours."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if re.search(r"(g\+\+|c\+\+|clang\+\+)(-\d+)?$", word)):]
    kept, skip = [], False
    for word, following in zip(words, words[1:] + [""]):
        if skip:
            skip = False
        elif word == "-include" and following.endswith("cmake_pch.hxx"):
            skip = True
        elif word not in ("-Winvalid-pch", "-Wno-restrict"):
            kept.append(word)
    return {"directory": entry["directory"], "file": entry["file"], "arguments": ["clang++"] + kept[1:] + ["-Wno-deprecated-declarations"]}


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("paths", nargs="*", metavar="PATH", default=DEFAULT)
    parser.add_argument("--jobs", type=command_line.whole_number(1), default=os.cpu_count())
    arguments = parser.parse_intermixed_args()
    commands = arguments.build / "compile_commands.json"
    if not commands.is_file():
        command_line.complain(f"{commands}: not there (scripts/build.sh cpu writes it)")
    tops = [(ROOT / path).resolve() for path in arguments.paths]
    for top in tops:
        if not top.exists():
            command_line.complain(f"{top}: no such file or folder")
    entries = [for_clang(entry) for entry in json.loads(commands.read_text())
               if any(pathlib.Path(entry["file"]).is_relative_to(top) for top in tops)]
    entries = list({entry["file"]: entry for entry in entries}.values())
    if not entries:
        command_line.complain(f"{commands} names no source below {', '.join(map(str, arguments.paths))}")
    tidy = llvm_tools.find("clang-tidy")
    if tidy is None:
        print(f"check_tidy: nothing was checked: pip install {llvm_tools.requirement('clang-tidy')}", file=sys.stderr)
        sys.exit(77)
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(entries))

        def look(entry):
            return subprocess.run([tidy, "--quiet", "-p", folder, entry["file"]], cwd=ROOT, text=True, capture_output=True)

        for entry, done in zip(entries, pool.map(look, entries)):
            if done.returncode != 0:
                failed += 1
                print(done.stdout or done.stderr, end="", file=sys.stderr)
    print(f"check_tidy: {len(entries) - failed} of {len(entries)} sources are clean")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
