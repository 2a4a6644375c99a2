#!/usr/bin/env python3
"""Tests of umbrella_headers.py: headers that come and go in a small repository.

    test_umbrella_headers.py SCRIPTS
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(sys.argv[1])
failures = []

with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    for library in ("scripts", "include/tandem", "core/cuda", "kernels/pool"):
        (root / library).mkdir(parents=True)
    for name in ("umbrella_headers.py", "header_examples.py", "command_line.py"):
        shutil.copy(SCRIPTS / name, root / "scripts")
    for header in ("core/tensor.h", "core/cuda/launch.h", "kernels/pool/max.h", "kernels/pool/max_implementations.h", "kernels/pool/loop.h"):
        (root / header).write_text("#pragma once\n")

    def expect(code, wanted, *arguments):
        done = subprocess.run([sys.executable, root / "scripts/umbrella_headers.py", *arguments], capture_output=True, text=True)
        if done.returncode != code or wanted not in done.stderr:
            failures.append(f"{arguments}: expected exit code {code} and '{wanted}', got {done.returncode} and '{done.stderr}'")

    expect(1, 'include/tandem/core.h: lacks #include "tandem/core/tensor.h"')
    expect(0, "", "--fix")
    expect(0, "")
    core, kernels = root / "include/tandem/core.h", root / "include/tandem/kernels.h"
    if "launch.h" in core.read_text() or "loop.h" in kernels.read_text() or '"tandem/kernels/pool/max.h"' not in kernels.read_text():
        failures.append(f"not what users include:\n{core.read_text()}{kernels.read_text()}")
    core.write_text("// A comment.\n" + core.read_text())
    (root / "core/shape.h").write_text("#pragma once\n")
    expect(1, 'include/tandem/core.h: lacks #include "tandem/core/shape.h"')
    expect(0, "", "--fix")
    if not core.read_text().startswith("// A comment.\n"):
        failures.append("--fix lost the comment")
    (root / "core/shape.h").unlink()
    expect(1, '#include "tandem/core/shape.h" is not for users')
    expect(0, "", "--fix")
    core.write_text(core.read_text() + "\n")
    expect(1, "not as --fix would write it")
    expect(2, "error: ", "--unknown")
for failure in failures:
    print(f"FAILED: {failure}")
sys.exit(1 if failures else 0)
