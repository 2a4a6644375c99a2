#!/usr/bin/env python3
"""clang-tidy over the sources of a build, with the checks of .clang-tidy; what it finds is an error.

    scripts/check_tidy.py BUILD [--jobs N] [PATH ...]

BUILD is a build folder with compile_commands.json, of a build without CUDA kernels (preset cpu). PATHs limit it to
sources below them; without any, those of the libraries and programs are looked at, not the tests. Exit code 1 if something is found, 2 for wrong
arguments.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import command_line

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT = ["core", "kernels", "autograd", "layers", "optim", "comm", "data", "train", "apps"]


def for_clang(entry):
    """The command without GCC's precompiled headers and the warnings that clang has not got."""
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
    return {"directory": entry["directory"], "file": entry["file"], "arguments": ["clang++"] + kept[1:]}


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("paths", nargs="*", metavar="PATH", default=DEFAULT)
    parser.add_argument("--jobs", type=command_line.whole_number(1), default=os.cpu_count())
    arguments = parser.parse_args()
    commands = arguments.build / "compile_commands.json"
    if not commands.is_file():
        command_line.complain(f"{commands}: not there (scripts/build.sh cpu writes it)")
    if shutil.which("clang-tidy") is None:
        command_line.complain("clang-tidy was not found: install clang-tidy")
    tops = [(ROOT / path).resolve() for path in arguments.paths]
    for top in tops:
        if not top.exists():
            command_line.complain(f"{top}: no such file or folder")
    entries = [for_clang(entry) for entry in json.loads(commands.read_text())
               if any(pathlib.Path(entry["file"]).is_relative_to(top) for top in tops)]
    entries = list({entry["file"]: entry for entry in entries}.values())
    if not entries:
        command_line.complain(f"{commands} names no source below {', '.join(map(str, arguments.paths))}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(entries))

        def look(entry):
            return subprocess.run(["clang-tidy", "--quiet", "-p", folder, entry["file"]], cwd=ROOT, text=True, capture_output=True)

        for entry, done in zip(entries, pool.map(look, entries)):
            if done.returncode != 0:
                failed += 1
                print(done.stdout or done.stderr, end="", file=sys.stderr)
    print(f"check_tidy: {len(entries) - failed} of {len(entries)} sources are clean")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
