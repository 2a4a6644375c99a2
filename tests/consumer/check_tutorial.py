#!/usr/bin/env python3
"""Follows pages of docs/tutorial as a reader does: builds their programs with the installed library, and compares what they print.

    tests/consumer/check_tutorial.py SOURCE_DIR PREFIX WORK_DIR PAGE ...

PREFIX is where Tandem is installed. In a page
  <!-- program: examples/NAME.cpp -->  names the program. The C++ blocks behind <!-- quoted --> are that file from its first line to its
                                 last, in pieces; only closing braces are left out.
  <!-- answer -->                before a C++ block: lines to be put before the last brace of main()
  <!-- prints -->                before a text block: a part of what the program with all answers prints, in order, nothing left out
  ```text with "$ COMMAND" in its first line: run in the reader's folder, where the page's program is in build/; the lines up to the next
                                 "$ " are the beginning of what it prints, and "..." stands for lines that are not shown.
<!-- prints, numbers within 5 % --> compares numbers with that tolerance, <!-- prints, numbers vary --> only the words, and the same stand
before blocks with a command, as <!-- numbers within 5 % -->, <!-- numbers vary --> and <!-- fails -->, which wants an exit code other
than 0. The page of a kernel, whose program is a .cu file, is followed in a copy of the program's folder, by its commands alone; PREFIX is
~/tandem-simulated there, and <!-- fails, from the file as it was --> begins with a fresh copy of the program. Exit code 1 where a page is wrong.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

BLOCK = re.compile(r"^(?:<!-- ([^\n]*) -->\n)?```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d+(?:[.,]\d+)*\.?|\.\d+)(?:e[+-]?\d+)?")
CLOSING = re.compile(r"[\s})\];]*")


class WrongPage(Exception):
    pass


def numbers_of(line):
    return [float(text.replace(",", "")) for text in NUMBER.findall(line)]


def words_of(line):
    return re.sub(r"\s+", " ", re.sub(NUMBER.pattern + "k?", "0", line)).strip()


def agrees(shown, printed, comment):
    """Whether a line of a page is what was printed, as exactly as the comment above the block asks for."""
    if shown == printed:
        return True
    within = re.search(r"numbers within (\d+) %", comment)
    if not within and "numbers vary" not in comment or words_of(shown) != words_of(printed):
        return False
    if not within:
        return True
    share = int(within[1]) / 100
    return all(abs(a - b) <= share * max(abs(a), abs(b)) for a, b in zip(numbers_of(shown), numbers_of(printed)))


def compare(shown, printed, comment):
    """Matches the beginning of `printed` with lines of a page; returns what is left. "..." passes over any lines."""
    at, skips = 0, False
    for line in shown:
        if line.strip() == "...":
            skips = True
            continue
        while skips and at < len(printed) and not agrees(line, printed[at], comment):
            at += 1
        if at == len(printed) or not agrees(line, printed[at], comment):
            raise WrongPage(f"the page shows '{line}', and the program prints '{printed[at] if at < len(printed) else 'nothing more'}'")
        at, skips = at + 1, False
    return printed[at:]


def check_quotes(blocks, program):
    """The blocks, one after another, are the program but for closing braces."""
    lines = [line.strip() for line in program.splitlines() if line.strip()]
    at = 0
    for block in blocks:
        wanted = [line.strip() for line in block.splitlines() if line.strip()]
        while lines[at:at + len(wanted)] != wanted:
            if at == len(lines) or not CLOSING.fullmatch(lines[at]):
                raise WrongPage(f"the program has '{lines[at] if at < len(lines) else 'nothing'}' where the page shows '{wanted[0]}'")
            at += 1
        at += len(wanted)
    if not all(CLOSING.fullmatch(line) for line in lines[at:]):
        raise WrongPage(f"the page does not show {lines[at:]}")


def with_answers(program, answers):
    """The program with the answers before the last brace of main(), or the last }); where it has one."""
    end = program.rindex("  });\n}") if program.rstrip().endswith("  });\n}") else program.rindex("}")
    return program[:end] + "".join(answers) + program[end:]


class Page:
    def __init__(self, path, source_dir):
        text = path.read_text()
        self.path, self.quotes, self.answers, self.prints, self.commands = path, [], [], [], []
        found = re.search(r"^<!-- program: (\S+) -->$", text, re.MULTILINE)
        if not found:
            raise WrongPage(f"{path.name}: names no program")
        self.program = source_dir / found[1]
        name, exercises = self.program.stem, text.index("## Exercises")
        for found in BLOCK.finditer(text):
            comment, language, block = found.groups(default="")
            lines = block.splitlines()
            if found.start() > exercises and self.answers:  # the reader's program has them by now
                lines = [line.replace(f"build/{name}", f"build/{name}_answers") for line in lines]
            if comment == "quoted":
                self.quotes.append(block)
            elif comment == "answer":
                self.answers.append(block)
            elif comment.startswith("prints"):
                self.prints.append((lines, comment))
            elif language == "text" and lines[0].startswith("$ "):
                for line in lines:
                    if line.startswith("$ "):
                        self.commands.append((line[2:], [], comment))
                    else:
                        self.commands[-1][1].append(line)

        try:
            check_quotes(self.quotes, self.program.read_text())
        except WrongPage as problem:
            raise WrongPage(f"{path.name}: {problem}") from None

    def is_of_kernel(self):
        return self.program.suffix == ".cu"

    def sources(self):
        """The programs that this page needs, by name."""
        name, text = self.program.stem, self.program.read_text()
        sources = {name: text} if any(name in command for command, _, _ in self.commands) or not self.answers else {}
        return {**sources, **({name + "_answers": with_answers(text, self.answers)} if self.answers else {})}

    def run(self, folder):
        if self.prints:
            name = self.program.stem + ("_answers" if self.answers else "")
            printed = output_of(f"build/{name}", folder)
            for shown, comment in self.prints:
                printed = compare(shown, printed, comment)
            if printed:
                raise WrongPage(f"the page does not show {printed}")
        for command, shown, comment in self.commands:
            if "from the file as it was" in comment:
                shutil.copy(self.program, folder)
            compare(shown, output_of(command, folder, "fails" in comment), comment)


def output_of(command, folder, fails=False):
    environment = {**os.environ, "HOME": str(folder.parent / "home")}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if (done.returncode != 0) != fails:
        raise WrongPage(f"{command}: exit code {done.returncode}: {done.stdout}")
    return done.stdout.replace(f"{folder}/", "").splitlines()


def build(pages, folder, prefix):
    """Builds what the pages need by the command that the reader uses."""
    sources = {name: text for page in pages for name, text in page.sources().items()}
    for old in folder.glob("*.cpp"):
        if old.stem not in sources:
            old.unlink()
    for name, text in sources.items():
        path = folder / f"{name}.cpp"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
    configure = ["cmake", "-B", "build", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={prefix}"]
    launcher = os.environ.get("LAUNCHER")
    configure += [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []
    for command in configure, ["cmake", "--build", "build"]:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise WrongPage(f"{' '.join(command)}: {done.stdout}{done.stderr}")


def resolved(path):
    return pathlib.Path(path).resolve()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source_dir", type=resolved)
    parser.add_argument("prefix", type=resolved)
    parser.add_argument("work_dir", type=resolved)
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.source_dir / "scripts"))
    import extract_example  # pylint: disable=import-outside-toplevel

    tutorial = arguments.source_dir / "docs/tutorial"
    folder = arguments.work_dir / "tutorial"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = f"{arguments.prefix / 'bin'}:{os.environ['PATH']}"
    home = arguments.work_dir / "home"
    home.mkdir(exist_ok=True)
    for name in "tandem", "tandem-simulated":
        (home / name).unlink(missing_ok=True)
        (home / name).symlink_to(arguments.prefix)
    wrong = 0
    try:
        pages = [Page(tutorial / name, arguments.source_dir) for name in arguments.pages]
        if all(page.is_of_kernel() for page in pages):
            shutil.rmtree(folder)
            shutil.copytree(pages[0].program.parent, folder)
        else:
            files, _ = extract_example.example_of(tutorial / "README.md")
            extract_example.write_if_changed(folder / "CMakeLists.txt", files["tutorial/CMakeLists.txt"])
            build(pages, folder, arguments.prefix)
    except WrongPage as problem:
        print(f"check_tutorial: {problem}", file=sys.stderr)
        return 1
    for page in pages:
        try:
            page.run(folder)
        except WrongPage as problem:
            print(f"{page.path.name}: {problem}", file=sys.stderr)
            wrong += 1
    print(f"check_tutorial: {len(pages)} pages, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
