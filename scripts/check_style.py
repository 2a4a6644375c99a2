#!/usr/bin/env python3
"""How the sources are written, and examples in pages (scripts/extract_example.py): in UTF-8 with Unix line ends, formatted by .clang-format,
includes by their full names, macros with the project's prefix, and no words that only its authors know.

    scripts/check_style.py [--fix] [FILE ...]

FILEs are tracked files; without any, all of them are checked. clang-format must be version 19, because versions differ in how
they lay out C++20: CLANG_FORMAT names one, else clang-format-19, then clang-format are looked for, then the one that
`pip install clang-format==19.1.7` brings. --fix formats instead of complaining about it. Each fault is one line, file:line:
what. Exit code 1 if there is one, 2 for wrong arguments, 77 where all else is in order but clang-format 19 is missing.
"""
import codecs
import pathlib
import re
import subprocess
import sys

import command_line
import extract_example
import llvm_tools

ROOT = pathlib.Path(__file__).resolve().parent.parent
CXX = {".h", ".cpp", ".cu", ".cuh"}
TEXT = CXX | {".cmake", ".md", ".py", ".sh", ".txt"}
LIBRARIES = "core|kernels|autograd|layers|optim|comm|data|train|simulator"
# <tandem/tandem.h> and <tandem/core.h> are for programs of others.
BARE_INCLUDE = re.compile(rf'\s*#\s*include\s*(?:["<](?:{LIBRARIES}|\.\.)/|<tandem/(?!\w+\.h>))')
MACRO = re.compile(r"\s*#\s*define\s+(?!TANDEM_)(\w+)")
# Headers that stand for those of others must define their macros, and some libraries are told what to do by macros.
FOREIGN_MACROS = re.compile(r"^(simulator/include/|kernels/conv/cudnn/frontend.h|tests/[^:]*:.*\b(CATCH_CONFIG_\w+|NVTX_\w+|FAKE_\w+))")
# Words that say nothing to a reader of the field, and what they should be.
HOUSE_WORDS = {
    r"rooms": "library",
    r"books": "statistics",
    r"parcels?": "message, batch",
    r"leftovers?": "results, remainder",
    r"told_\w*": "a name that says what was told",
    r"give_up": "cancel",
    r"sum_up": "the main loop",
    r"FlatSpan": "what a collective works on",
}
HOUSE_WORD = re.compile(r"\b(" + "|".join(HOUSE_WORDS) + r")\b", re.IGNORECASE)
# This file lists them; measurements keep the names of their day.
OWN_WORDS = re.compile(r"scripts/check_style.py|tests/scripts/test_check_style.py|docs/results/")


def tracked_files():
    return [pathlib.Path(file) for file in command_line.tracked_files(ROOT)]


def text_faults(data):
    """(line number, what) of bytes that no text file of ours holds."""
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        if b"\r" in line or line.startswith(codecs.BOM_UTF8):
            yield number, "a carriage return or a byte order mark"
            return
        if not line.endswith(b"\n"):
            yield number, "the last line has no end"
        try:
            line.decode()
        except UnicodeDecodeError:
            yield number, "not UTF-8"


def faults_of(file):
    """(line number, what) of all that is not the format."""
    data = (ROOT / file).read_bytes()
    if file.suffix in TEXT:
        yield from text_faults(data)
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        if file.suffix in CXX | {".md"} and BARE_INCLUDE.match(line):
            yield number, 'includes of the project begin with "tandem/"'
        macro = MACRO.match(line) if file.suffix in CXX else None
        if macro and not FOREIGN_MACROS.search(f"{file}:{line}"):
            yield number, f"macro {macro[1]} needs the prefix TANDEM_"
        if not OWN_WORDS.match(str(file)):
            for word in HOUSE_WORD.finditer(line):
                better = next(better for pattern, better in HOUSE_WORDS.items() if re.fullmatch(pattern, word[0], re.IGNORECASE))
                yield number, f"'{word[0]}' is no word of the field ({better})"


def format_example(page, formatter, fix):
    """The files of a page's example that are not formatted; with `fix`, they are formatted instead."""
    old = text = (ROOT / page).read_text()
    sources = {path: block for path, block in extract_example.example_of(ROOT / page)[0].items() if pathlib.Path(path).suffix in CXX}
    for path, block in sources.items():
        command = [formatter, f"--style=file:{ROOT / '.clang-format'}", f"--assume-filename={path}"]
        formatted = subprocess.run(command, input=block, capture_output=True, text=True, check=True).stdout
        if formatted != block and not fix:
            yield path
        text = text.replace(block, formatted)
    if fix and text != old:
        (ROOT / page).write_text(text)


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--fix", action="store_true")
    arguments = parser.parse_args()
    known = tracked_files()
    chosen = [pathlib.Path(file) for file in arguments.files] or known
    for file in set(chosen) - set(known):
        command_line.complain(f"{file}: not a tracked file")
    faults = 0
    for file in chosen:
        for number, what in faults_of(file):
            faults += 1
            print(f"{file}:{number}: {what}", file=sys.stderr)
    formatter = llvm_tools.find("clang-format")
    sources = [str(file) for file in chosen if file.suffix in CXX]
    if formatter and sources:
        mode = ["-i"] if arguments.fix else ["--dry-run", "--Werror"]
        # One fault per file is enough: what is wrong is seen by formatting it.
        done = subprocess.run([formatter] + mode + ["--ferror-limit=1"] + sources, cwd=ROOT, capture_output=True, text=True)
        for line in done.stderr.splitlines():
            found = re.match(r"(?:\./)?([^:\s]+):(\d+):\d+: error: ", line)
            if found:
                faults += 1
                print(f"{found[1]}:{found[2]}: not formatted (scripts/check_style.py --fix)", file=sys.stderr)
        if done.returncode != 0 and faults == 0:
            sys.exit(done.stderr)
    for page in chosen if formatter else []:
        if page.suffix == ".md" and extract_example.has_example(ROOT / page):
            for path in format_example(page, formatter, arguments.fix):
                faults += 1
                print(f"{page}: {path} is not formatted (scripts/check_style.py --fix)", file=sys.stderr)
    print(f"check_style: {len(chosen)} files, {faults} faults")
    if faults:
        sys.exit(1)
    if not formatter:
        print(f"check_style: the format was not checked: pip install {llvm_tools.requirement('clang-format')}", file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
