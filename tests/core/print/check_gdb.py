#!/usr/bin/env python3
"""What gdb shows of tensors with scripts/gdb_printers.py.

    check_gdb.py PRINTERS PROGRAM

PROGRAM is gdb_program.cpp with debug information. Exit code 77 where there is no gdb with Python, or where it may not trace.
"""
import re
import shutil
import subprocess
import sys

EXPECTED = {
    "matrix": "f32[2, 3] on cpu, requires_grad = {1, 2.5, 3, 4, 5, 6}",
    "view": "f32[2, 2] on cpu = {2.5, 5, 3, 6}",
    "half": "f16[2] on cpu = {0.0999755859375, 0.0999755859375}",
    "brain": "bf16[1] on cpu = {-1.5}",
    "bytes": "u8[2] on cpu = {7 '\\a', 255 '\\377'}",
    "number": "i64[] on cpu = {3}",
    "none": "f32[2, 0] on cpu",
    "undefined": "undefined tensor",
    "constant": "f32[1] on cpu = {1}",
    "unborn": "not initialised",
    "unborn_shape": "not initialised",
    "shape": "[8, 3, 32, 32]",
    "matrix.impl_._M_ptr->strides": "[3, 1]",
    "storage": "24 bytes on cpu for activations, version 1",
}


def main(printers, program):
    gdb = shutil.which("gdb")
    if gdb is None or subprocess.run([gdb, "-nx", "-batch", "-ex", "python print(1)"], capture_output=True, text=True).stdout != "1\n":
        print("skipped: there is no gdb with Python")
        return 77
    commands = [f"source {printers}", "set print pretty off", "set confirm off", "break stop_here", "run", "next", "next"]
    for number, name in enumerate(EXPECTED):
        commands += [f"echo <{number}>", f"output {name}", "echo \\n"]
    arguments = [part for command in commands for part in ("-ex", command)]
    done = subprocess.run([gdb, "-nx", "-batch", *arguments, program], capture_output=True, text=True, timeout=120)
    if re.search(r"ptrace|Could not trace|Operation not permitted", done.stderr):
        print(f"skipped: gdb may not trace here: {done.stderr.strip().splitlines()[-1]}")
        return 77
    shown = dict(zip(EXPECTED, re.findall(r"^<\d+>(?:@0x[0-9a-f]+: )?(.*)$", done.stdout, re.MULTILINE)))
    wrong = [name for name, text in EXPECTED.items() if shown.get(name) != text]
    for name in wrong:
        print(f"{name} is shown as\n  {shown.get(name)}\nnot\n  {EXPECTED[name]}")
    if wrong:
        print(done.stdout, done.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
