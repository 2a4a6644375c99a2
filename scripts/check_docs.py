#!/usr/bin/env python3
"""Resolves every name that the documentation mentions: a name that the code no longer has is a page that misleads.

    scripts/check_docs.py [PAGE ...]

Pages are README.md and docs/ (not docs/results/: measurements keep the names of their day). In each, what stands in
`backticks` must be there: a path must be a tracked file or folder (also below a folder that the page names), --flags, environment
variables and identifiers must stand in a tracked file that is no page, name() must be called or declared there, and a
link must lead somewhere.
Words that are no names of ours (commands, numbers, formulas) are passed over, and those of an example that the page names in a comment
<!-- names of the example: A, B -->. Exit code 1 if something is not found, 2 for a page that is
not there.
"""
import pathlib
import re
import subprocess

import command_line

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Units, and names of other programs, that no source of ours holds.
FOREIGN = {"GFLOP/s", "TFLOP/s", "GB/s", "--cap-add", "cooperative_groups"}
# A page says so which names its example makes: <!-- names of the example: hard_tanh -->
EXAMPLE = re.compile(r"<!-- names of the example: ([\w ,]+) -->")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_~][A-Za-z0-9_]*)*")
CODE_SUFFIXES = ("cpp", "cu", "cuh", "h", "py", "sh", "cmake", "md", "txt", "json", "toml", "env", "in", "supp")
PATH = re.compile(r"[\w.{},*<>-]+(?:/[\w.{},*<>-]+)*/?")


def source_files():
    """Tracked files; where there is no git, all but those that building and running make."""
    try:
        listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
        files = listed.stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        made = {"build", "datasets", "offline", ".git"}
        files = [str(file.relative_to(ROOT)) for top in ROOT.iterdir() if top.name not in made
                 for file in ([top] if top.is_file() else top.rglob("*"))]
    return [file for file in files if (ROOT / file).is_file() and "__pycache__" not in file]


class Tree:
    """What there is to be named."""

    def __init__(self):
        files = source_files()
        self.paths = set(files)
        for file in files:
            self.paths.update(str(parent) for parent in pathlib.PurePosixPath(file).parents)
        sources = [file for file in files if not file.endswith(".md") and not file.startswith("docs/")]
        text = "\n".join((ROOT / file).read_text(errors="replace") for file in sources)
        self.named = {path[at:] for path in set(re.findall(r"[\w.-]+(?:/[\w.-]+)*", text))
                      for at in [0, *(slash.end() for slash in re.finditer("/", path))]}
        self.words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text))
        self.calls = set(re.findall(r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:<[^<>;(){}]*>)?\(", text))
        self.flags = set(re.findall(r"--[a-z][a-z0-9-]*", text)) | {
            "--" + name for name in re.findall(r'\.\w+\("([a-z][a-z0-9-]*)"', text)}  # table.real("lr", ...)

    def has_path(self, name, page):
        """A file or folder, or a file that a source names: one that it writes or includes."""
        name = name.rstrip("/")
        return name in self.named or any(any(re.fullmatch(pattern, path) for path in self.paths) for pattern in patterns(name, page))


def patterns(name, page):
    """Regular expressions for the paths that a page may mean: from the root, from the page, or the end of a longer path."""
    for choice in expanded(name):
        regex = re.escape(choice).replace(r"\*", "[^/]*")
        regex = re.sub(r"<[^<>]*>|\\<.*?\\>", "[^/]+", regex)
        yield regex
        yield re.escape(str(page.parent)) + "/" + regex
        yield ".*/" + regex


def expanded(name):
    """a{b,c} -> ab, ac"""
    found = re.search(r"\{([^{}]*)\}", name)
    if not found:
        return [name]
    return [rest for part in found.group(1).split(",") for rest in expanded(name[:found.start()] + part + name[found.end():])]


def looks_like_path(text):
    return PATH.fullmatch(text) and ("/" in text or text.rsplit(".", 1)[-1] in CODE_SUFFIXES and "." in text)


def problems(text, page, tree):
    """What is wrong with the text between two backticks."""
    if looks_like_path(text):
        if text in FOREIGN or text.startswith(".") or text.split("/")[0] in ("build", "datasets", "offline"):
            return  # a suffix, or made by running things
        if not tree.has_path(text, page):
            yield f"no file or folder {text}"
        return
    for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text):
        if flag not in tree.flags | FOREIGN and flag.replace("--no-", "--") not in tree.flags:
            yield f"no option {flag}"
    call = re.fullmatch(rf"({IDENTIFIER.pattern})\(.*\)", text)
    name = call.group(1) if call else text if IDENTIFIER.fullmatch(text) else None
    if name is None or name in FOREIGN:
        return
    last = name.split("::")[-1].lstrip("~")
    if call and last not in tree.calls:
        yield f"no function {name}()"
    elif ("_" in name or "::" in name or re.search(r"[a-z][A-Z]", name)) and last not in tree.words:
        yield f"no name {name}"


def code_spans(text):
    """Line number and text of each `span`; fenced blocks are left out."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            for span in re.findall(r"`([^`]+)`", line):
                yield number, span


def links(text, page):
    """Line number and target of each link to a file that is not there."""
    for number, line in enumerate(text.splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            target = target.split("#")[0]
            if target and not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                yield number, target


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    pages = [pathlib.Path(page).resolve() for page in parser.parse_args().pages] or [ROOT / "README.md"] + sorted(
        page for page in (ROOT / "docs").rglob("*.md") if "results" not in page.parts)
    tree, count, wrong = Tree(), 0, 0
    for page in pages:
        if not page.is_file():
            command_line.complain(f"{page}: no such page")
        text = page.read_text(errors="replace")
        relative = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
        found = [(number, f"no file {target}") for number, target in links(text, page)]
        example = re.split(r"[ ,]+", " ".join(EXAMPLE.findall(text)).strip()) if EXAMPLE.search(text) else []
        for number, span in code_spans(text):
            count += 1
            if any(name in span for name in example):
                continue
            found += [(number, problem) for problem in problems(span, relative, tree)]
        for number, problem in sorted(found):
            print(f"{relative}:{number}: {problem}")
        wrong += len(found)
    print(f"{count} names on {len(pages)} pages, {wrong} not found")
    return 1 if wrong else 0


if __name__ == "__main__":
    command_line.run(main)
