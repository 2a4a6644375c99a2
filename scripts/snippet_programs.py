"""Fragments of C++ of pages as programs (scripts/check_snippets.py): in a function each, where what tests/consumer/snippet_context.h
declares is at hand, and what the comment 'given' of the page says; or in the code of that comment, where it has a line '...'."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONTEXT = ROOT / "tests/consumer/snippet_context.h"
INCLUDE = re.compile(r"\s*#\s*include\b")
PARAMETERS = ("[[maybe_unused]] comm::ProcessGroup& group, [[maybe_unused]] layers::Sequential& model, "
              "[[maybe_unused]] optim::Optimizer& optimizer, [[maybe_unused]] data::Loader& loader, "
              "[[maybe_unused]] const data::ImageDataset& images")
HERE = re.compile(r"^\s*\.\.\.\s*$", re.MULTILINE)


def is_program(block):
    return bool(re.search(r"^int main\(", block.text, re.MULTILINE))


def has_surroundings(block):
    """Whether its comment 'given' says where in a file it stands: such a fragment may use what is not installed, and is not run."""
    return bool(HERE.search(block.marks.get("given", "")))


def numbered(block):
    """Its text with its lines' places in the page."""
    lines = block.text.splitlines()
    return "".join(f'#line {block.line + at} "{block.page}"\n{line}\n' for at, line in enumerate(lines)
                   if line.strip() and not INCLUDE.match(line)) + f'#line 1 "{block.page}: given"\n'


def includes(text):
    return "".join(line.strip() + "\n" for line in text.splitlines() if INCLUDE.match(line))


def without_includes(text):
    return "".join(line + "\n" for line in text.splitlines() if not INCLUDE.match(line))


def functions_of(blocks):
    """One file with a function for each of these fragments, and a main() that calls all of them, each with new objects."""
    text = '#include "snippet_context.h"\n' + "".join(includes(block.marks.get("given", "") + block.text) for block in blocks)
    calls = ""
    for at, block in enumerate(blocks):
        given = without_includes(block.marks.get("given", ""))
        text += f"\nstatic void snippet_{at}({PARAMETERS}) {{\n{{\n{given}{{\n{numbered(block)}}}\n}}\n}}\n"
        calls += f'  run_snippet("{block.place}", snippet_{at}, group);\n'
    return text + "\nint main() {\n  return comm::run_program([](comm::ProcessGroup& group) {\n" + calls + "  });\n}\n"


def file_of(blocks):
    """The fragments of one page that have surroundings, one after another."""
    parts = [HERE.sub(lambda _: numbered(block), without_includes(block.marks["given"]), count=1) for block in blocks]
    return "".join(includes(block.marks["given"] + "\n" + block.text) for block in blocks) + "\n".join(parts)



def check_syntax(text, folders):
    """What the compiler says of this text; nothing where it is right."""
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-DFMT_SHARED", "-Wall", "-Wextra", "-Wno-unused", "-fmax-errors=5", "-fsyntax-only", "-x", "c++", "-"]
    command[1:1] = [option for folder in folders for option in ("-I", str(folder))]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""
