#!/usr/bin/env python3
"""Makes the files of a new element-wise op: kernels for CPU and CUDA, differentiable function, layer, tests.

    scripts/new_op.py NAME [--family FOLDER] [--option NAME=DEFAULT] [--layer CLASS] [--into FOLDER]

They are the example of docs/adding-an-op.md under another name. It computes the example's formula, so that it compiles and its tests pass
from the first moment; the lines to change hold the word `formula`, and are printed. NAME is in snake_case. --family is the folder of
kernels/ (default: activation), --option the op's number and the layer's default for it (default: limit=1.0), --layer the class (default:
NAME in PascalCase). autograd/functions.h and layers/layers.h get a line each. With --into, all of this is written below another FOLDER and
the tree stays as it is. The files are formatted where clang-format 19 is at hand (see scripts/check_style.py). Exit code 2, and nothing
written, for a name that is taken or no name for an op.
"""
import argparse
import os
import pathlib
import re
import subprocess

import command_line
import extract_example
import llvm_tools

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/adding-an-op.md"
HEADERS = ("core", "kernels", "autograd", "layers")
SNAKE_CASE = re.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*")
PASCAL_CASE = re.compile("[A-Z][A-Za-z0-9]*")
KEYWORDS = set("""alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept
    const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else
    enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
    or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq assert errno stdin stdout stderr main""".split())
# Files are found by these (cmake/TandemLibraries.cmake, tests/CMakeLists.txt).
ENDINGS = re.compile("_(cpu|cuda|onednn|mpi|nccl|cublas|cudnn|reference|implementations|cases)$|^test_")


def snake_case(text):
    if not SNAKE_CASE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}': not in snake_case")
    if text in KEYWORDS:
        raise argparse.ArgumentTypeError(f"'{text}': has a meaning in C++")
    return text


def name_of_op(text):
    if ENDINGS.search(text):
        raise argparse.ArgumentTypeError(f"'{text}': CMake would take its files for others by this ending or beginning")
    return snake_case(text)


def option(text):
    """NAME=DEFAULT as the name and a literal of C++."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{text}': give NAME=DEFAULT")
    return snake_case(name), repr(command_line.positive_number(value))


def class_name(text):
    if not PASCAL_CASE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}': not in PascalCase")
    return text


def families():
    """Folders of kernels/ that hold ops."""
    return sorted({file.parent.name for file in (ROOT / "kernels").glob("*/*_implementations.h")})


def words_of(text):
    """The names in a source; comments, strings and names of headers are left out."""
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r'//.*|"[^"\n]*"', "", text)))


def check_free(name, layer, words):
    """Ends this script where something has these names already: `words` are those of the example that stay."""
    for text in (name, layer):
        if text in words:
            command_line.complain(f"'{text}' has another meaning in the files of an op: choose another name")
    function = re.compile(rf"^(?:[\w:<>,&*]+ )+{name}(?:_forward|_backward|_supports)?\(", re.M)
    type_or_space = re.compile(rf"^(?:class|struct|enum class|using) {layer}(?:Options|Gradient)?\b|^namespace (?:\w+::)*{name}\b", re.M)
    for library in HEADERS:
        # The header of this name first: of several that have it, that is the one to tell of.
        for file in sorted((ROOT / library).rglob("*"), key=lambda file: (file.stem != name, file)):
            if file.suffix not in (".h", ".cuh"):
                continue
            found = function.search(file.read_text()) or type_or_space.search(file.read_text())
            if found or (library, file.stem) == ("kernels", name):
                what = f": {found[0].strip(' (')}" if found else ""
                command_line.complain(f"the name {name} (layer {layer}) is taken by {file.relative_to(ROOT)}{what}")


def renamed(text, arguments):
    """A text of the example for the new op; in paths, too."""
    spoken = arguments.name.replace("_", " ")
    number, default = arguments.option
    for old, new in (("kernels/activation/", f"kernels/{arguments.family}/"), ("hard_tanh", arguments.name), ("HardTanh", arguments.layer),
                     ("hard tanh", spoken), ("Hard tanh", spoken.capitalize()), ("double limit = 1.0;", f"double limit = {default};")):
        text = text.replace(old, new)
    return re.sub(r"\blimit\b", number, text)


def formatted(files):
    """These files as clang-format writes them, or as they are where there is none."""
    formatter = llvm_tools.find("clang-format")
    if not formatter:
        return files
    command = [formatter, f"--style=file:{ROOT / '.clang-format'}"]
    try:
        return {path: subprocess.run(command + [f"--assume-filename={path}"], input=text, capture_output=True, text=True, check=True).stdout
                for path, text in files.items()}
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or "").strip()
        command_line.complain(f"{formatter} does not work here: {said or error}; nothing was written")


def write_all(files):
    """Writes all of these files of the tree, or none of them."""
    old = {path: (ROOT / path).read_text() if (ROOT / path).exists() else None for path in files}
    done = []
    try:
        for path, text in files.items():
            done.append(path)
            (ROOT / path).write_text(text)
    except BaseException:
        for path in done:
            if old[path] is None:
                (ROOT / path).unlink(missing_ok=True)
            else:
                (ROOT / path).write_text(old[path])
        raise


def report(files, lines, folder):
    print(f"{len(files)} files, and a line in {' and '.join(lines)}. They compute the example's formula; change these lines:")
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\bformula\b", line, re.I):
                print(f"{folder / path}:{number}: {line.strip()}")
    if not llvm_tools.find("clang-format"):
        print("Not formatted: there is no clang-format 19 here; see scripts/check_style.py")
    print(f"How to build and test it: {PAGE.relative_to(ROOT)}, section 9")


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("name", type=name_of_op, metavar="NAME")
    parser.add_argument("--family", default="activation", metavar="FOLDER")
    parser.add_argument("--option", type=option, default=("limit", "1.0"), metavar="NAME=DEFAULT")
    parser.add_argument("--layer", type=class_name, metavar="CLASS")
    parser.add_argument("--into", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    arguments.layer = arguments.layer or "".join(part.capitalize() for part in arguments.name.split("_"))
    if not PAGE.is_file():
        command_line.complain(f"{ROOT}: not the source tree: docs/adding-an-op.md is missing")
    if arguments.family not in families():
        command_line.complain(f"--family {arguments.family}: choose from {', '.join(families())}")
    files, lines = extract_example.example_of(PAGE)
    words = words_of("".join(files.values())) - {"hard_tanh", "HardTanh", "limit"}
    check_free(arguments.name, arguments.layer, words)
    if arguments.option[0] in words | {arguments.name}:
        command_line.complain(f"--option {arguments.option[0]}: has another meaning in the files of an op: choose another name")
    files = formatted({renamed(path, arguments): renamed(text, arguments) for path, text in files.items()})
    lines = {path: renamed(line, arguments) for path, line in lines.items()}
    for path in [*files, *lines]:
        if (ROOT / path).exists() == (path in files):
            command_line.complain(f"{path}: is {'there already' if path in files else 'missing'}")
    for folder in {os.path.dirname(path) for path in files}:
        if not (ROOT / folder).is_dir():
            command_line.complain(f"{ROOT}: not the source tree: {folder} is missing")
    if arguments.into:
        extract_example.write_example(files, lines, arguments.into)
    else:
        write_all({**files, **extract_example.changed_headers(lines)})
    report(files, lines, arguments.into or pathlib.Path())


if __name__ == "__main__":
    command_line.run(main)
