#!/usr/bin/env python3
"""What a user waits for the compiler: <tandem/tandem.h> by itself may take 3 s of processor time, and examples/spirals.cpp,
which has a layer, a function and a data set of its own, 5 s, at -O2.

    check_compile_time.py SOURCE BUILD COMPILER

Of several compilations the fastest counts: other programs on the machine only add to it. The limits are for a machine that
compiles the headers of YARDSTICK, which have nothing of ours, in YARDSTICK_SECONDS; a slower one gets its share more, a
faster one no less. Exit code 1 where a limit is passed.
"""
import pathlib
import resource
import subprocess
import sys
import tempfile

ROUNDS = 3
YARDSTICK = "".join(f"#include <{name}>\n" for name in ("filesystem", "fmt/format.h", "functional", "future", "map", "regex"))
YARDSTICK_SECONDS = 0.9
LIMITS = {"tandem.h": 3.0, "spirals": 5.0}


def user_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    source, build, compiler = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        programs = {"yardstick": pathlib.Path(folder) / "yardstick.cpp", "tandem.h": pathlib.Path(folder) / "header.cpp",
                    "spirals": source / "examples/spirals.cpp"}
        programs["yardstick"].write_text(YARDSTICK)
        programs["tandem.h"].write_text("#include <tandem/tandem.h>\n")
        best = dict.fromkeys(programs, float("inf"))
        for _ in range(ROUNDS):  # in turns, so that all have the same neighbours
            for name, program in programs.items():
                best[name] = min(best[name], user_seconds([compiler, "-std=c++20", "-O2", f"-I{source}/include", f"-I{build}/include",
                                                           "-c", program, "-o", f"{folder}/object.o"]))
    slowness = max(1.0, best["yardstick"] / YARDSTICK_SECONDS)
    failed = False
    for name, limit in LIMITS.items():
        allowed = limit * slowness
        print(f"{name}: {best[name]:.2f} s of user time, at most {allowed:.2f} s (yardstick {best['yardstick']:.2f} s)")
        failed = failed or best[name] > allowed
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
