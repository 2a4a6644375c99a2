#!/usr/bin/env python3
"""Tests of new_op.py and extract_example.py: what they refuse, that nothing is half written, and what they write. That the files
compile and pass their tests is shown by tests/op_cases/adding_an_op.cmake.

    test_new_op.py REPOSITORY
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(REPOSITORY / "scripts"))
import llvm_tools  # noqa: E402

FOLDERS = ("core", "kernels", "autograd", "layers", "tests/op_cases", "tests/lint", "tests/layers", "scripts")
FILES = (".clang-format", "docs/adding-an-op.md")
FORMATTER = llvm_tools.find("clang-format")
failures = []


def copy_of_tree(root):
    for folder in FOLDERS:
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        (root / file).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / file, root / file)
    return root


def state_of(root):
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts}


def run(root, script, *arguments):
    return subprocess.run([sys.executable, root / "scripts" / script, *map(str, arguments)], capture_output=True, text=True)


def check(condition, what, done):
    if not condition:
        failures.append(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def check_refused(root, text, script, *arguments):
    """One line on standard error, exit code 2, and nothing is written."""
    before = state_of(root)
    done = run(root, script, *arguments)
    one_line = done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    check(done.returncode == 2 and one_line and text in done.stderr, f"{script} {arguments} is refused", done)
    check(state_of(root) == before, f"{script} {arguments} leaves the tree alone", done)


def check_formatted(root, files):
    if FORMATTER:
        done = subprocess.run([FORMATTER, "--dry-run", "--Werror", *files], cwd=root, capture_output=True, text=True)
        check(done.returncode == 0, "the files are formatted", done)


def refusals(root):
    for name, text in {"relu": "taken by kernels/activation/relu.h", "scale": "taken by kernels/elementwise/scale.h",
                       "leaky_relu": "taken by kernels/elementwise/unary_functions.h: struct LeakyRelu",
                       "batch_norm": "taken by kernels/norm/batch_norm.h", "detail": "namespace detail", "LeakyRelu": "not in snake_case",
                       "leaky__relu": "not in snake_case", "_leaky": "not in snake_case", "7up": "not in snake_case", "": "not in snake_case",
                       "../up": "not in snake_case", "template": "a meaning in C++", "xor": "a meaning in C++", "my_cuda": "CMake would take",
                       "my_cases": "CMake would take", "test_me": "CMake would take", "map": "another meaning", "x": "another meaning",
                       "tensor": "another meaning", "sgd": "kernels/optimizer/sgd.h"}.items():
        check_refused(root, text, "new_op.py", name)
    for arguments, text in {("--family", "nowhere"): "--family nowhere: choose from activation,", ("--option", "slope"): "give NAME=DEFAULT",
                            ("--option", "slope=-1"): "not a finite number above 0", ("--option", "Slope=1"): "not in snake_case",
                            ("--option", "x=1"): "another meaning", ("--option", "leaky=1"): "another meaning",
                            ("--option", "int=1"): "a meaning in C++", ("--layer", "leaky"): "not in PascalCase",
                            ("--layer", "ReLU"): "taken by layers/activation.h: class ReLU", ("--layer", "Tensor"): "another meaning",
                            ("--into", root): "has files in it", ("--foo",): "unrecognized arguments: --foo"}.items():
        check_refused(root, text, "new_op.py", "leaky", *arguments)
    check_refused(root, "the following arguments are required: NAME", "new_op.py")


def a_new_op(root):
    before = state_of(root)
    done = run(root, "new_op.py", "elu", "--family", "elementwise", "--option", "alpha=0.01", "--layer", "Elu")
    check(done.returncode == 0 and done.stderr == "", "a new op is made", done)
    after = state_of(root)
    new, changed = set(after) - set(before), {path for path in before if before[path] != after.get(path)}
    check(len(new) == 13 and "kernels/elementwise/elu.cu" in new and "tests/lint/elu_cases.cpp" in new, f"files {new}", done)
    check(changed == {"autograd/functions.h", "layers/layers.h"}, f"headers {changed}", done)
    for header, line in {"autograd/functions.h": '#include "tandem/autograd/functions/elu.h"\n',
                         "layers/layers.h": '#include "tandem/layers/elu.h"\n'}.items():
        text = after[header].decode()
        includes = [include for include in text.splitlines() if include.startswith("#include")]
        check(text.replace(line, "") == before[header].decode() and includes == sorted(includes), f"{header} has its line", done)
    words = "".join(after[path].decode() for path in new)
    check("EluOptions" in words and "double alpha = 0.01;" in words, "names and options are those that were given", done)
    check(not any(word in words for word in ("hard_tanh", "HardTanh", "ard tanh", "kernels/activation/elu")), "no name of the example", done)
    for path in new:
        marks = [number for number, line in enumerate(after[path].decode().splitlines(), 1) if "formula" in line.lower()]
        check(all(f"{path}:{number}: " in done.stdout for number in marks), f"the marks of {path} are listed", done)
    check_formatted(root, sorted(new | changed))
    check_refused(root, "taken by kernels/elementwise/elu.h", "new_op.py", "elu", "--family", "activation")
    check(FORMATTER or "Not formatted" in done.stdout, "a missing clang-format is said", done)


def crashing_formatter(root, folder):
    """One that says its version and then fails."""
    formatter = folder / "clang-format"
    formatter.write_text("#!/bin/sh\ncase $1 in --version) echo clang-format version 19.1.7 ;; *) echo out of memory >&2; exit 134 ;; esac\n")
    formatter.chmod(0o755)
    before = os.environ.get("CLANG_FORMAT")
    os.environ["CLANG_FORMAT"] = str(formatter)
    try:
        check_refused(root, f"{formatter} does not work here: out of memory; nothing was written", "new_op.py", "leaky")
    finally:
        del os.environ["CLANG_FORMAT"]
        if before is not None:
            os.environ["CLANG_FORMAT"] = before


def nothing_half_written(root):
    (root / "layers/layers.h").chmod(0o444)
    if not os.access(root / "layers/layers.h", os.W_OK):  # root may write everything
        check_refused(root, "layers/layers.h: Permission denied", "new_op.py", "leaky")
    (root / "layers/layers.h").chmod(0o644)
    shutil.rmtree(root / "tests/lint")
    check_refused(root, "not the source tree: tests/lint is missing", "new_op.py", "leaky")
    (root / "docs/adding-an-op.md").unlink()
    check_refused(root, "not the source tree: docs/adding-an-op.md is missing", "new_op.py", "leaky")


def pages(root, folder):
    page, out = folder / "page.md", folder / "out"
    example = root / "docs/adding-an-op.md"
    done = run(root, "extract_example.py", example, out)
    check(done.returncode == 0, "the example is extracted", done)
    files = (out / "files.txt").read_text().split()
    shutil.copy(root / ".clang-format", out)
    check_formatted(out, files)
    time = (out / files[0]).stat().st_mtime_ns
    page.write_text(example.read_text().replace("kernels/activation/hard_tanh.cu", "kernels/activation/other.cu"))
    done = run(root, "extract_example.py", page, out)
    check((out / "kernels/activation/other.cu").exists() and not (out / "kernels/activation/hard_tanh.cu").exists(), "an old file goes", done)
    check((out / files[0]).stat().st_mtime_ns == time, "a file that is the same stays", done)
    block = "\n\n```cpp\nint i;\n```\n"
    for text, problem in {"no example": "or has none", "**`a/b.h`**\n": "ends in the middle", "**`a/b.h`** as it is" + block: "neither the title",
                          "**`../b.h`**" + block: "neither the title", ("**`a/b.h`**" + block) * 2: "or twice",
                          "**`a/b.h`**\n\n```cpp\nint i;\n": "ends in the middle", "**`core/tensor.h`**" + block: "is a file of the tree",
                          "**`a/b.h`**" + block + "**`core/none.h`**, one more line:" + block: "core/none.h is to have one more line"}.items():
        page.write_text(text)
        check_refused(root, problem, "extract_example.py", page, folder / "new")
        if (folder / "new").exists():
            failures.append(f"{text}: something was written")
    check_refused(root, "has files in it that this script did not write", "extract_example.py", example, root)
    check_refused(root, "No such file", "extract_example.py", folder / "none.md", folder / "new")


with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    tree = copy_of_tree(folder / "tree")
    refusals(tree)
    pages(tree, folder)
    a_new_op(tree)
    crashing_formatter(tree, folder)
    nothing_half_written(tree)
for failure in failures:
    print(f"FAILED: {failure}")
if not failures and not FORMATTER:
    print("the format was not tried: no clang-format 19 here")
sys.exit(1 if failures else 0)
