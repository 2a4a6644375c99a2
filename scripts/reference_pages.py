#!/usr/bin/env python3
"""Makes docs/reference/flags.md of what the programs of a build say of their options, and docs/reference/environment.md of the
sources and of scripts/environment_variables.toml:

    reference_pages.py BUILD [--fix]      BUILD: a folder of preset cpu, with all of its programs

Says what differs from the pages that are there, and with --fix writes them anew. Exit code 1 if a page differs, if a source reads a
variable that the table lacks, or if the table has one that no source reads.
"""
import difflib
import os
import pathlib
import re
import subprocess
import tomllib

import check_docs
import command_line

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/reference"
TABLE = ROOT / "scripts/environment_variables.toml"

# Programs, and the commands of `tandem` that they are, in the order of the page.
PROGRAMS = {"cifar_train": "train", "tandem_report": "report", "tandem_predict": "predict", "tandem_data": "data", "tandem_doctor": "doctor",
            "study": "study", "sgd_lab": "lab", "allreduce_bench": "bench-comm", "conv_bench": "bench-conv", "train_bench": "bench-train",
            "device_query": "devices"}

FLAGS = """# Every flag

This page lists the options of all programs. It is made by `scripts/reference_pages.py` of what the programs of preset `cpu` print for `--help`; programs
of a build with CUDA, or without MPI, take other values of some of them, and say so. `tandem COMMAND` and the program of that command take the same options.

An option's value stands behind a space or behind `=`: `--epochs 3` and `--epochs=3` mean the same. Where an option is given twice, the last one counts,
unless its line says that it may be repeated. Each program also takes `-h` and `--help`, which print its options. Where an option or a value is not known, a
program names it, and ends with exit code 2.
"""
ENVIRONMENT = """# Every environment variable

This page lists the environment variables that programs, libraries and scripts of Tandem read, and the options of its CMake build. It is made by
`scripts/reference_pages.py`, which finds in the sources where each is read. An option on the command line goes before a variable that says the same.
"""


# --- What a program says of its options --------------------------------------------------------------------------------------

class Entry:
    """An option: its name and value, and what is said of it."""

    def __init__(self, name):
        self.name, self.words = name, []

    def row(self):
        text = " ".join(self.words)
        name, _, value = self.name.partition(" ") if self.name.startswith("--") else (self.name, "", "")
        default = re.search(r" \[([^\[\]]+)\]($| \()", text) if self.name.startswith("-") else None
        text = text.replace(default[0], default[2]) if default else text
        limits = re.search(r" \((-?[\d.]+ to -?[\d.]+)\)", text)
        text = text.replace(limits[0], "") if limits else text
        choices = re.search(r": (\w[\w-]*(?:, \w[\w-]*)+)$", text) if value == "NAME" else None
        text = text[:choices.start()] if choices else text
        if choices:
            takes = ", ".join(f"`{choice}`" for choice in choices[1].split(", "))
        else:
            takes = f"`{value}`" + (f", {limits[1]}" if limits else "") if value else ""
        return f"| `{name}` | {takes} | {code(default[1]) if default else ''} | {cell(text)} |"


def code(text):
    return f"`{text}`" if text else ""


def cell(text):
    """Words as a cell of a table, with options and other names as code."""
    text = re.sub(r"(?<![\w`-])(--?[a-z][\w-]*(?:=[\w.]+)?)", r"`\1`", text)
    text = re.sub(r"(?<![\w`/.-])([\w-]+\.(?:toml|html|json|jsonl|csv|svg|png|safetensors|bin|sh)|(?:[a-z]+_)+[a-z]+)(?![\w`/-])", r"`\1`", text)
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def help_of(program):
    """What the program prints for --help, in lines of at most 80 columns."""
    done = subprocess.run([program, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, "COLUMNS": "80"})
    if done.returncode:
        command_line.complain(f"{program} --help: exit code {done.returncode}: {done.stderr.strip()}", code=1)
    return done.stdout


def parsed(text):
    """What is said before the first group of options, and the groups: (title, entries), examples left out."""
    above, groups, title = [], [], ""
    for line in text.splitlines():
        found = re.match(r"  (\S.*?)(?:  +(\S.*))?$", line)
        if found and (groups or title or found[1].startswith("-")):
            if title is not None:
                groups.append((title, []))
                title = None
            groups[-1][1].append(Entry(found[1]))
            if found[2]:
                groups[-1][1][-1].words.append(found[2])
        elif groups and title is None and line.startswith("   "):
            groups[-1][1][-1].words.append(line.strip())
        elif line:
            title = line
            if not groups:
                above.append(line)
    return above, [(name, entries) for name, entries in groups if name != "Examples"]


def section(program, command, text):
    above, groups = parsed(text)
    first = groups[0][0] if groups else ""
    prose = [line for line in above if line != first and not line.startswith(("Usage:", "usage:", "  "))]
    rows = ["", f"## {program}", ""]
    usage = re.search(r"[Uu]sage: (.*(?:\n +\S.*)*)", text)[1]
    if prose and program != "tandem_data":
        rows += [cell(" ".join(prose).rstrip(".")) + ".", ""]
    rows += ["```text", re.sub(r"\n +", lambda found: "\n" if len(found[0]) == 8 else " ", usage), "```", ""]
    rows += [f"The same: `tandem {command}`." if program != "tandem_data" else "The program is the script `scripts/get_data.sh`."]
    for title, entries in groups:
        entries = [entry for entry in entries if entry.name != "-h, --help"]
        if not entries:
            rows[-1] += " It has no options of its own."
            continue
        if len(groups) > 1:
            rows += ["", f"### {program}: {title.lower()}"]
        rows += ["", "| option | takes | default | meaning |", "|---|---|---|---|"] + [entry.row() for entry in entries]
    return rows


def flags_page(build):
    rows = [FLAGS.rstrip("\n"), "", "| program | command |", "|---|---|"]
    rows += [f"| [`{program}`](#{program}) | `tandem {command}` |" for program, command in PROGRAMS.items()]
    for program, command in PROGRAMS.items():
        path = build / "apps" / program
        command_line.program(path, f"build it: cmake --build {build} --target {program}")
        rows += section(program, command, help_of(path))
    return "\n".join(rows) + "\n"


# --- Which variables the sources read ----------------------------------------------------------------------------------------

NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]*)*"
READING = re.compile(rf"(?:getenv|setenv|lookup|environment|variable|text_of|number)\((?:lookup, )?\s*\"({NAME})\"")
IN_LIST = re.compile(r"for \(const char\* ?(?:const )?\w+ : \{([^}]*)\}")
READS = re.compile(r"getenv|setenv|EnvironmentLookup|environment_variable|\.variable = ")
UNDERSCORED = re.compile(r"\"([A-Z][A-Z0-9]*_[A-Z0-9_]*)\"")
IN_SHELL = re.compile(rf"\$\{{({NAME})(?::?[-+])")
IN_PYTHON = re.compile(rf"(?:os\.environ\.get\(|os\.environ\[|os\.getenv\(|in os\.environ)\s*\"({NAME})\"|\"({NAME})\" (?:not )?in os\.environ")
OF_THE_SHELL = {"BASH_SOURCE", "PIPESTATUS", "SECONDS", "PWD", "CMAKE_PREFIX_PATH", "CPATH", "LD_LIBRARY_PATH", "LIBRARY_PATH"}


def read_in_cpp(text):
    if not READS.search(text):
        return set()
    found = set(READING.findall(text)) | set(UNDERSCORED.findall(text))
    for names in IN_LIST.findall(text):
        found |= set(re.findall(rf"\"({NAME})\"", names))
    return found


def variables_of(path, text):
    if path.startswith("tests/"):
        return {name for name in read_in_cpp(text) if name.startswith("TANDEM_")} if "getenv" in text and path.endswith((".cpp", ".h")) else set()
    if path.endswith((".cpp", ".h", ".cu")):
        return read_in_cpp(text)
    if path.startswith("scripts/") and path.endswith(".sh"):
        return set(IN_SHELL.findall(text)) - OF_THE_SHELL
    if path.startswith("scripts/") and path.endswith(".py"):
        return {name for pair in IN_PYTHON.findall(text) for name in pair if name}
    return set()


def readers():
    """Of each variable: the files that read it."""
    found = {}
    for path in sorted(check_docs.source_files()):
        if path == "scripts/reference_pages.py" or not path.endswith((".cpp", ".h", ".cu", ".sh", ".py")):
            continue
        for name in variables_of(path, (ROOT / path).read_text(encoding="utf-8", errors="replace")):
            found.setdefault(name, []).append(path)
    for name in ("CLANG_FORMAT", "CLANG_TIDY"):  # the script makes the name of the tool's
        found.setdefault(name, []).append("scripts/llvm_tools.py")
    return found


def stands_for(pattern, name):
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def cmake_options():
    """Names, defaults, values and meanings in cmake/TandemOptions.cmake."""
    text = (ROOT / "cmake/TandemOptions.cmake").read_text(encoding="utf-8")
    own = {"${PROJECT_IS_TOP_LEVEL}": "`ON`, but `OFF` as a part of another project", "${BUILD_SHARED_LIBS}": "the value of `BUILD_SHARED_LIBS`",
           "${TANDEM_CAN_CHOOSE_INSTRUCTIONS}": "`ON` with `TANDEM_SHARED=ON` and `TANDEM_NATIVE=OFF` on Linux and x86_64"}
    features = re.search(r"foreach\(feature ([A-Z ]+)\)", text)[1].split()
    for line in re.finditer(r"(?:option\((\w+)\s+\"([^\"]*)\"\s+\"?([^\")\s]+)\"?\)|set\((TANDEM_\S+) (\S+) CACHE STRING\s+\"([^\"]*)\")", text):
        name, meaning, default = (line[1], line[2], line[3]) if line[1] else (line[4], line[6], line[5])
        for feature in features if "${feature}" in name else [""]:
            shown = name.replace("${feature}", feature)
            values = re.search(rf"CACHE {re.escape(name)} PROPERTY STRINGS ([^)]+)\)", text)
            listed = values[1].replace("${TANDEM_AUTO_VALUES}", "AUTO ON OFF").split() if values else ["ON", "OFF"]
            yield shown, ", ".join(map(code, listed)), own.get(default, code(default)), meaning.replace("${feature}", feature)


def environment_page():
    with open(TABLE, "rb") as file:
        groups = tomllib.load(file)["group"]
    found, used, rows, faults = readers(), set(), [ENVIRONMENT.rstrip("\n")], []
    for group in groups:
        rows += ["", f"## {group['title']}", ""] + ([group["text"], ""] if "text" in group else [])
        rows += ["| variable | values | default | meaning | read or set in |", "|---|---|---|---|---|"]
        for pattern, entry in group["variables"].items():
            names = {name for name in found if stands_for(pattern, name)}
            used |= names
            if not names:
                faults.append(f"{TABLE.relative_to(ROOT)}: {pattern}: no source reads it")
            files = sorted({file for name in names for file in found[name]}, key=lambda file: (file.startswith("tests/"), file))
            links = ", ".join(f"[{file}](../../{file})" for file in files[:3]) + (" ..." if len(files) > 3 else "")
            name = pattern.replace("*", "...")
            rows.append(f"| `{name}` | {entry['values']} | {entry['default']} | {entry['meaning']} | {links} |")
    for name in sorted(set(found) - used):
        faults.append(f"{found[name][0]}: reads {name}, which {TABLE.relative_to(ROOT)} lacks")
    rows += ["", "## Options of the build", "", "Given to CMake as `-DNAME=VALUE`; a preset sets some of them. They are declared in", "[cmake/TandemOptions.cmake](../../cmake/TandemOptions.cmake).", "",
             "| option | values | default | meaning |", "|---|---|---|---|"]
    rows += [f"| `{name}` | {values} | {default} | {meaning} |" for name, values, default, meaning in cmake_options()]
    return "\n".join(rows) + "\n", faults


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("build", metavar="BUILD", type=pathlib.Path)
    parser.add_argument("--fix", action="store_true", help="write the pages")
    arguments = parser.parse_args()
    environment, faults = environment_page()
    for name, text in (("flags.md", flags_page(arguments.build.resolve())), ("environment.md", environment)):
        path = PAGES / name
        there = path.read_text(encoding="utf-8") if path.is_file() else ""
        if there == text:
            continue
        if arguments.fix:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")
        else:
            faults += difflib.unified_diff(there.splitlines(), text.splitlines(), str(path.relative_to(ROOT)), "what the programs and sources say", n=0, lineterm="")
    print("\n".join(faults) or f"the pages of {len(PROGRAMS)} programs and of the environment are up to date")
    return 1 if faults else 0


if __name__ == "__main__":
    command_line.run(main)
