#!/usr/bin/env python3
"""Compiles and runs what pages show: every fenced block of README.md, CONTRIBUTING.md and docs/ (not docs/results/).

    scripts/check_snippets.py [--quick] [--build BUILD] [PAGE ...]

BUILD is a built preset cpu (build/cpu). Commands run in a copy of the tree, with the build's programs in PATH, without network, and shorter
where they would take long: scripts/snippet_rules.py lists what is changed, what is not run and why, and which pages other tests run.
--quick runs no command and no program: it says what would be done with each block, and has the compiler and the parsers look at all.
What is done with a block:

    sh       each command runs; it must end with exit code 0
    text     is output of the commands in front of it: each of its lines must be printed, figures aside. "..." stands for anything.
             Lines that begin with "$ " are commands, and the lines behind each are its output; a block of console is the same
    cpp      a program with main() as it is; anything else within a function, where a model, an optimizer, a loader, images and a
             group are at hand (tests/consumer/snippet_context.h). Without --quick all these functions run
    dockerfile    is the tree's Dockerfile, but for comments
    python, json, toml, cmake    are parsed; a project with the lines of cmake is configured. Files that a command names are written before

Each program of examples/ must be named by a file of tests/consumer/, which runs it.

Comments right above a block say what the block does not:

    <!-- not run: REASON -->        nothing is done with it
    <!-- checked by: NAME -->       a test, or a file of tests/, does it
    <!-- prepare: COMMANDS -->      what runs before, such as making the run that a command names
    <!-- given: CODE -->            what stands before a fragment; a line "..." is where the fragment stands, outside of functions
    <!-- file: NAME -->             the block is this file, in the folder of the page's commands
    <!-- output of: COMMANDS -->    what prints the text, where that is no command of the page
    <!-- exact -->                  the output is the same in every run, so its figures count, too
    <!-- drawing -->                the text is no output
    <!-- fails -->                  the last command of the block ends with another exit code than 0
    <!-- quoted -->                 scripts/check_docs.py finds it in the sources

Prints how many blocks and commands there are of each kind. Exit code 1 if something is wrong, a block has no rule, or a rule has no block.
"""
import ast
import collections
import json
import pathlib
import re
import subprocess
import tempfile
import tomllib

import command_line
import page_blocks
import scratch_tree
import snippet_programs
import snippet_rules

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIGURE = re.compile(r"-?\d[\d,.:]*(e[+-]?\d+)?(s\b)?|[KMG](?=iB\b)")  # a duration is 21s or 1:20


def tests_of(build):
    """The names of the build's tests."""
    listed = subprocess.run(["ctest", "--test-dir", str(build), "-N"], capture_output=True, text=True)
    return set(re.findall(r"Test +#\d+: (.*)", listed.stdout))


def statements_of(block):
    """Line number and text of each command of a block of sh: lines up to where the shell can read them as a whole, and comments
    alone left out."""
    command, begin = "", block.line
    for number, line in enumerate(block.text.splitlines(), block.line):
        begin = begin if command else number
        command += line + "\n"
        if not command.rstrip().endswith("\\") and is_whole(command):
            if re.sub(r"^\s*#.*$", "", command, flags=re.MULTILINE).strip():
                yield begin, command
            command = ""
    if command:
        raise page_blocks.PageError(f"{block.page}:{begin}: the shell cannot read this command")


def sessions_of(block):
    """Line number, command and output of each part of a text that begins with "$ "."""
    for part in re.finditer(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        yield block.line + block.text.count("\n", 0, part.start()), part[1], part[2]


def needs_tree(block):
    """Whether something of a block may run, or be there for what runs."""
    return block.kind in ("sh", "console", "cmake") or block.text.startswith("$ ") or bool(block.marks.keys() & {"file", "output of"})


def is_whole(command):
    return subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True).returncode == 0


def untested_examples():
    """What is wrong with examples/, if a program there is one that no test runs."""
    tests = "\n".join(file.read_text() for file in (ROOT / "tests/consumer").glob("*.*") if file.suffix in (".sh", ".cmake"))
    for file in sorted((ROOT / "examples").rglob("*.c*")):
        if file.suffix in (".cpp", ".cu") and not re.search(rf"\b({file.stem}|{file.parent.name}/)", tests.replace("examples/", "")):
            yield f"{file.relative_to(ROOT)}: no file of tests/consumer/ names it"


def is_printed(line, output, exact):
    """Whether a line of a page is among those of an output, but for spaces and, unless `exact`, figures."""
    masked = lambda text: " ".join((text if exact else FIGURE.sub("#", text)).split())
    words = masked(line)
    pattern = ".*".join(map(re.escape, words.split("...")))
    return any(re.fullmatch(pattern, masked(row)) for row in output.splitlines())


def parse(block):
    """What is wrong with a block of data, or None."""
    try:
        if block.kind == "json":
            json.loads(block.text)
        elif block.kind == "toml":
            tomllib.loads(block.text)
        elif block.kind == "python":
            ast.parse(block.text)
        elif block.kind == "dockerfile" and block.text != re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE):
            return f"{block.place}: Dockerfile has other lines"
    except (ValueError, SyntaxError) as error:
        return f"{block.place}: {error}"
    return None


class Checker:
    def __init__(self, rules, scratch, build, quick):
        self.rules, self.scratch, self.build, self.quick = rules, scratch, build, quick
        self.counts, self.reasons = collections.Counter(), collections.Counter()
        self.problems, self.fragments, self.exports = [], [], ""

    def count(self, what):
        self.counts[what] += 1

    def page(self, path, name):
        blocks = list(page_blocks.blocks_of(path, name))
        self.exports, self.output, surrounded = "", None, []  # what is exported, and printed by the last commands
        if self.scratch and any(map(needs_tree, blocks)):
            self.scratch.begin()
        for block in blocks:
            if "file" in block.marks and self.scratch:
                (self.scratch.tree / block.marks["file"]).write_text(block.text)
        for block in blocks:
            test = self.rules.tested(block)
            if "not run" in block.marks:
                self.count("blocks that are not run")
                self.reasons[block.marks["not run"]] += 1
                self.output = None
            elif test or "checked by" in block.marks:
                self.rules.known(test or block.marks["checked by"], block.place)
                self.count("blocks that another test has")
                self.output = None
            elif "quoted" in block.marks:
                self.count("blocks that scripts/check_docs.py finds in the sources")
            elif block.kind == "sh":
                self.commands(block)
            elif block.kind == "console" or block.text.startswith("$ ") and "output of" not in block.marks:
                self.sessions(block)
            elif block.kind == "text":
                self.text(block)
            elif block.kind in ("cpp", "cuda"):
                self.count("fragments and programs of C++")
                if snippet_programs.is_program(block):
                    self.compile(f'#line {block.line} "{block.page}"\n{block.text}', [ROOT / "include"], block)
                elif snippet_programs.has_surroundings(block):
                    surrounded.append(block)
                else:
                    self.fragments.append(block)
            elif block.kind in ("python", "json", "toml", "cmake", "dockerfile"):
                self.count(f"blocks of {block.kind}")
                problem = parse(block) if block.kind != "cmake" else self.cmake(block)
                if problem:
                    self.problems.append(problem)
            else:
                self.problems.append(f"{block.place}: there is no rule for a block of '{block.kind}'")
        if surrounded:
            self.compile(snippet_programs.file_of(surrounded), [ROOT, ROOT / "include", ROOT / "simulator/include"], surrounded[0])

    def compile(self, text, folders, block):
        wrong = snippet_programs.check_syntax(text, [*folders, self.build / "include", snippet_programs.CONTEXT.parent])
        if wrong:
            self.problems.append(f"{block.place}: the compiler says\n{wrong}")

    def commands(self, block):
        self.output = ""
        self.prepare(block)
        statements = list(statements_of(block))
        for number, command in statements:
            fails = "fails" in block.marks and number == statements[-1][0]
            self.output += self.command(command, f"{block.page}:{number}", fails) or ""

    def sessions(self, block):
        self.prepare(block)
        parts = list(sessions_of(block))
        for number, command, shown in parts:
            output = self.command(command, f"{block.page}:{number}", "fails" in block.marks and number == parts[-1][0])
            if output is not None:
                self.compare(shown, output, block.page, number + 1, "exact" in block.marks)

    def prepare(self, block):
        if "prepare" in block.marks and not self.quick:
            self.run(block.marks["prepare"], f"{block.place}: prepare")

    def command(self, command, place, fails):
        """What a command of a page prints, which must end with exit code 0 unless it `fails`; None where it does not run."""
        reason = self.rules.elsewhere(command)
        if reason:
            self.count("commands that are not run")
            self.reasons[reason] += 1
            return None
        shorter = self.rules.shortened(command)
        self.count("commands that run" + (", shortened" if shorter != command else ""))
        if re.match(r"(export|cd) ", command):
            self.exports += shorter
        return None if self.quick else self.run(shorter, place, fails)

    def run(self, command, place, fails=False):
        print(f"{place}: {command.rstrip()}", flush=True)
        output, code = self.scratch.run(self.exports + command)
        if (code != 0) != fails:
            self.problems.append(f"{place}: exit code {code} of: {command}{output[-3000:]}")
        return output

    def text(self, block):
        if "drawing" in block.marks:
            self.count("texts that are no output")
            return
        output = self.output
        if "output of" in block.marks:
            output = "" if self.quick else self.run(block.marks["output of"], block.place)
        if output is None:
            self.problems.append(f"{block.place}: no command of the page prints this text: a comment above it must say what does")
            return
        self.count("texts that commands print")
        shown = re.sub(r"^\$ .*", "", block.text, flags=re.MULTILINE)  # what the reader types, where the comment says another command
        if not self.quick:
            self.compare(shown, output, block.page, block.line, "exact" in block.marks)

    def compare(self, shown, output, page, first, exact):
        for number, line in enumerate(shown.splitlines(), first):
            if line.strip() and not is_printed(line, output, exact):
                self.problems.append(f"{page}:{number}: not printed: {line}\n    by: {output[-2000:]}")

    def cmake(self, block):
        """A part of a CMakeLists.txt configures a project, where there is more time."""
        if self.quick:
            return None
        folder = self.scratch.tree / "build/cmake-snippet"
        folder.mkdir(exist_ok=True)
        begin = "" if "cmake_minimum_required" in block.text else "cmake_minimum_required(VERSION 3.24)\nproject(snippet LANGUAGES CXX)\n"
        (folder / "CMakeLists.txt").write_text(begin + self.rules.shortened(block.text).replace("/path/to/tandem", str(self.scratch.tree)))
        output, code = self.scratch.run(f"cmake -S . -B build -DCMAKE_PREFIX_PATH=$HOME/tandem", folder)
        return f"{block.place}: cmake says\n{output[-2000:]}" if code != 0 else None

    def finish_fragments(self):
        """All fragments of all pages are one program."""
        if not self.fragments:
            return
        program = snippet_programs.functions_of(self.fragments)
        if not self.quick:
            self.scratch.begin()
            for block in self.fragments:
                self.prepare(block)
        if self.quick:
            self.compile(program, [ROOT / "include"], self.fragments[0])
            return
        source = self.scratch.home / "snippets.cpp"
        source.write_text(program)
        output, code = self.scratch.run(
            f"export PKG_CONFIG_PATH=$HOME/tandem/lib/pkgconfig; ${{CXX:-c++}} -std=c++20 -O1 -I {snippet_programs.CONTEXT.parent} $HOME/snippets.cpp "
            "-o $HOME/snippets $(pkg-config --cflags --libs tandem) && $HOME/snippets")
        if code != 0:
            self.problems.append(f"the fragments of all pages, as one program: exit code {code}\n{output[-5000:]}")


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default=str(ROOT / "build/cpu"), metavar="BUILD")
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build).resolve()
    command_line.program(str(build / "apps/tandem"), "build preset cpu first: scripts/build.sh cpu")
    pages = [pathlib.Path(page).resolve() for page in arguments.pages] or page_blocks.pages_of()
    for page in pages:
        if not page.is_file():
            command_line.complain(f"{page}: no such page")
    rules = snippet_rules.Rules(tests_of(build))
    with tempfile.TemporaryDirectory() as folder:
        scratch = None if arguments.quick else scratch_tree.ScratchTree(pathlib.Path(folder), build)
        checker = Checker(rules, scratch, build, arguments.quick)
        for page in pages:
            try:
                checker.page(page, str(page.relative_to(ROOT) if page.is_relative_to(ROOT) else page))
            except page_blocks.PageError as error:
                checker.problems.append(str(error))
        checker.finish_fragments()
    problems = checker.problems + rules.problems + ([] if arguments.pages else [*rules.idle(), *untested_examples()])
    for what, count in sorted(checker.counts.items()):
        print(f"{count:4} {what}")
    for reason, count in sorted(checker.reasons.items()):
        print(f"{count:4} not run: {reason}")
    for problem in problems:
        print(f"WRONG {problem}")
    print(f"check_snippets: {len(pages)} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    command_line.run(main)
