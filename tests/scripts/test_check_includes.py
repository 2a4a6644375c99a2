#!/usr/bin/env python3
"""Tests of check_includes.py: includes that are lacking in a small repository, and what looks as if they were.

    test_check_includes.py SCRIPTS
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(sys.argv[1])
if not shutil.which("git"):
    print("there is no git here, which tells the files of a repository")
    sys.exit(77)
HEADERS = {
    "core/tensor.h": "#include <vector>\nnamespace tandem {\nclass Tensor {\n  int deep_member() const;\n};\nTensor make_tensor(int size);\n}\n",
    "kernels/base.h": "namespace tandem::kernels {\nstruct Geometry {};\nconstexpr int kTile = 8;\ntemplate <typename T>\nvoid for_tiles(T t);\n}\n",
    "kernels/conv/conv.h": '#include "tandem/core/tensor.h"\n#include "tandem/kernels/base.h"\nnamespace tandem::kernels {\nenum class Pass { a };\n}\n',
    "kernels/conv/own/own.h": '#include "tandem/kernels/conv/conv.h"\nvoid own_run();\n',
    "kernels/gemm/gemm.h": '#include "tandem/kernels/conv/conv.h"\nvoid gemm_run();\n',
    "kernels/loss/loss.h": '#include "tandem/kernels/gemm/gemm.h"\nvoid loss_run();\n',
    "include/tandem/core.h": '#pragma once\n\n#include "tandem/core/tensor.h"\n',
    "include/tandem/kernels.h": '#pragma once\n\n#include "tandem/kernels/gemm/gemm.h"\n',
    "include/tandem/tandem.h": '#pragma once\n\n#include "tandem/core.h"\n#include "tandem/kernels.h"\n',
    "optim/sgd.h": "namespace tandem::optim {\nclass SGD {};\n}\n#define TANDEM_STEP 1\n",
}
OWN = '#include "tandem/kernels/conv/own/own.h"\n'
# A file, its text, and what it lacks.
LACKING = [
    ("kernels/a.cpp", "Tensor x;\n", 'a.cpp:1: Tensor needs #include "tandem/core/tensor.h"'),
    ("kernels/a.cpp", "int f() { return kTile; }\n", 'kTile needs #include "tandem/kernels/base.h"'),
    ("kernels/a.cpp", "\nauto x = tandem::make_tensor(3);\n", 'a.cpp:2: make_tensor needs #include "tandem/core/tensor.h"'),
    ("kernels/a.cpp", "void f() { for_tiles(3); }\n", 'for_tiles needs #include "tandem/kernels/base.h"'),
    ("kernels/a.cpp", "std::vector<int> x;\n", "std::vector needs #include <vector>"),
    ("kernels/gemm/a.cpp", '#include "tandem/kernels/gemm/gemm.h"\nstd::optional<Pass> x; Geometry y;\n', "std::optional needs #include <optional>"),
    ("train/a.cpp", '#include "tandem/kernels/loss/loss.h"\nPass p; Geometry y;\n', 'Pass needs #include "tandem/kernels/conv/conv.h"'),
    ("examples/a.cpp", "#include <tandem/core.h>\nTensor t; Geometry g;\n", 'Geometry needs #include "tandem/kernels/base.h"'),
    ("train/a.cpp", "int x = TANDEM_STEP;\n", 'TANDEM_STEP needs #include "tandem/optim/sgd.h"'),
]
COMPLETE = [
    ("core/tensor_cpu.cpp", '#include "tandem/core/tensor.h"\nstd::vector<Tensor> x;\n'),  # by its own header
    ("kernels/conv/own/a.cpp", OWN + "Pass p; Geometry g; Tensor x;\n"),  # by the folders above, and core
    ("examples/a.cpp", "#include <tandem/tandem.h>\nTensor t; Geometry g; std::vector<Pass> v;\n"),  # by the header of all
    ("kernels/a.cpp", "class SGD;\nSGD* x;\n"),  # a name of its own, and no library that it may use
    ("kernels/a.cpp", "// Tensor\nconst char* x = \"Tensor\";\n"),
    ("kernels/a.cpp", "struct A { int make_tensor(int); };\nint f(A a) { return a.make_tensor(1) + other::make_tensor(2); }\n"),
    ("kernels/a.cpp", "template <typename Geometry>\nvoid f(Geometry g) {}\n"),
]
failures = []

with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    (root / "scripts").mkdir()
    for name in ("check_includes.py", "command_line.py"):
        shutil.copy(SCRIPTS / name, root / "scripts")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)

    def write(file, text):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)

    def run(*arguments):
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        return subprocess.run([sys.executable, root / "scripts/check_includes.py", *arguments], capture_output=True, text=True)

    for file, text in HEADERS.items():
        write(file, text)
    for file, text, what in LACKING + [(file, text, "") for file, text in COMPLETE]:
        write(file, text)
        done = run()
        if what and (done.returncode != 1 or done.stderr.count("\n") != 1 or what not in done.stderr) or not what and done.returncode != 0:
            failures.append(f"{what or 'nothing lacks'} in {text!r}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        (root / file).unlink()
    done = run("missing.cpp")
    if done.returncode != 2 or "missing.cpp" not in done.stderr:
        failures.append(f"a file that is not there: exit code {done.returncode}\n{done.stderr}")
for failure in failures:
    print(f"FAILED: {failure}")
sys.exit(1 if failures else 0)
