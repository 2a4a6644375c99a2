#!/usr/bin/env python3
"""Tests of check_headers.py and of the program that runs the examples in headers: faults planted in a small repository.

    test_check_headers.py REPOSITORY COMPILER
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(sys.argv[1])
COMPILER = sys.argv[2]
HEADER = """// A header.
{example}#pragma once

namespace tandem {{
inline int twice(int x) {{ return 2 * x; }}
}}  // namespace tandem
"""
GOOD = """// Example:
//     #include <string>
//     struct Pair {
//       int a, b;
//     };
//     const Pair pair{1, twice(3)};
//     const int both = pair.a +
//                      pair.b;  // 7: as a comment says
//     const std::string text = "x";  // seven
"""
failures = []


def check(condition, what, done):
    if not condition:
        failures.append(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    for library in ("core", "scripts", "build/include/tandem", "include/tandem"):
        (root / library).mkdir(parents=True)
    (root / "build/include/tandem/config.h").touch()
    (root / "include/tandem/core").symlink_to("../../core")
    for name in ("check_headers.py", "header_examples.py", "command_line.py"):
        shutil.copy(REPOSITORY / "scripts" / name, root / "scripts")

    def run(example, script=root / "scripts/check_headers.py", arguments=(root / "build", "--compiler", COMPILER), header="twice"):
        (root / "core" / f"{header}.h").write_text(HEADER.format(example=example))
        return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)

    def write_program(example):
        done = run(example, REPOSITORY / "tests/examples/make_program.py", (root / "scripts", root / "program.cpp"))
        return done, (root / "program.cpp").read_text() if done.returncode == 0 else ""

    done = run(GOOD)
    check(done.returncode == 0 and "1 of 1" in done.stdout, "an example that compiles", done)
    done = run(GOOD, arguments=(root / "build", "--compiler", COMPILER, "core/twice.h"))
    check(done.returncode == 0 and "1 of 1" in done.stdout, "a header by name behind an option", done)
    done = run(GOOD, arguments=(root / "build", "--compiler", "/missing"))
    check(done.returncode == 2 and done.stderr == "error: --compiler /missing: not found\n", "a compiler that is not there", done)
    done = run("", header="fork")
    check(done.returncode == 0, "a header that is internal", done)
    (root / "core/fork.h").unlink()
    done = run("")
    check(done.returncode == 1 and "core/twice.h has no example" in done.stderr, "no example", done)
    done = run("// Example:\n//     const int four = twise(2);\n")
    check(done.returncode == 1 and "core/twice.h:3:" in done.stderr, "an example that does not compile, at its line", done)

    done, program = write_program(GOOD)
    check(done.returncode == 0, "a program of examples", done)
    check(program.count("expect_shown(") == 1 and 'expect_shown("both", both, R"said(7)said");' in program, "what is said of a value", done)
    check('TEST_CASE("core/twice.h:3")' in program and "#include <string>" in program, "a test case", done)
    done, program = write_program("// Example:\n//     twice(2);  // 4\n")
    check(done.returncode != 0 and "core/twice.h:3: only what a declaration gives" in done.stderr, "what cannot be checked", done)
for failure in failures:
    print(f"FAILED: {failure}")
if not failures:
    print("all tests passed")
sys.exit(1 if failures else 0)
