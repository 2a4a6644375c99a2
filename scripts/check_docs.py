#!/usr/bin/env python3
"""Resolves every name that the documentation mentions: a name that the code no longer has is a page that misleads.

    scripts/check_docs.py [PAGE ...]

Pages are README.md, CONTRIBUTING.md and docs/ (not docs/results/: measurements keep the names of their day). In each, what stands in
`backticks` must be there: a path must be a tracked file or folder (also below a folder that the page names), --flags, environment
variables and identifiers must stand in a tracked file that is no page, name() must be called or declared there, and a
link must lead somewhere: to a file, and behind a # to a heading of it, by the name that GitHub gives headings.
Each image wants a comment <!-- made by: COMMAND --> right above it, or one <!-- figures made by: COMMAND --> for all on its page, or on
the README.md of the page's folder.
What a page says of calls must be so: "`a()` calls `b()`" wants a function a() whose body calls b(); files in brackets behind a name say
where it is. In a table below the comment <!-- calls, at most N --> each numbered function must be defined in a file of its row, and be called by
one of a row above; functions without a number are the ones that begin. Below the comment <!-- quoted --> a code block must stand in
some source, but for spaces and comments.
Words that are no names of ours (commands, numbers, formulas) are passed over, and those of an example that the page names in a comment
<!-- names of the example: A, B -->. Exit code 1 if something is not found, 2 for a page that is
not there.
"""
import pathlib
import re
import subprocess

import command_line
import function_bodies

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Units, and names of other programs, that no source of ours holds.
FOREIGN = {"GFLOP/s", "TFLOP/s", "GB/s", "--cap-add", "--cpus", "cooperative_groups"}
# A page says so which names its example makes: <!-- names of the example: hard_tanh -->
EXAMPLE = re.compile(r"<!-- names of the example: ([\w ,]+) -->")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_~][A-Za-z0-9_]*)*")
CODE_SUFFIXES = ("cpp", "cu", "cuh", "h", "py", "sh", "cmake", "md", "txt", "json", "toml", "env", "in", "supp")
PATH = re.compile(r"[\w.{},*<>-]+(?:/[\w.{},*<>-]+)*/?")
CODE = (".cpp", ".cu", ".cuh", ".h")
# `name()` (`file`): a function, and where it is
FUNCTION = re.compile(r"`([\w:~]+)\(\)`(?: \(`([^`()]+)`\))?")
CALLS = re.compile(rf"{FUNCTION.pattern},? calls (?:only )?({FUNCTION.pattern}(?:(?:, and|,| and| or) {FUNCTION.pattern})*)")


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


def without_blocks(text):
    """The text with its fenced blocks blank, line by line."""
    return re.sub(r"^( *)```.*?^ *```", lambda block: re.sub(r"[^\n]", " ", block.group()), text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """What links to a page may name behind a #: its headings in lower case, without signs, with - for spaces; and ids."""
    text, names = without_blocks(page.read_text(errors="replace")), []
    for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        names.append(f"{name}-{names.count(name)}" if name in names else name)
    return {*names, *re.findall(r"""\bid=["']([^"']+)["']""", text)}


def wrong_links(text, page):
    """Line number and problem of each link to a file or a heading that is not there."""
    for number, line in enumerate(without_blocks(text).splitlines(), 1):
        targets = re.findall(r"\]\(([^)\s]+)\)", line) + re.findall(r"""\b(?:href|src|srcset)=["']([^"'\s]+)["']""", line)
        for target in targets:
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = page.parent / file if file else page
            if not path.exists():
                yield number, f"no file {file}"
            elif anchor and path.suffix == ".md" and anchor not in anchors(path):
                yield number, f"no heading for #{anchor} in {file or 'this page'}"


def images_without_source(text, page):
    """Line number and problem of each image that nobody could make again."""
    everywhere, readme = "<!-- figures made by: ", page.parent / "README.md"
    if everywhere in text or readme.is_file() and everywhere in readme.read_text(errors="replace"):
        return
    said = False
    for number, line in enumerate(without_blocks(text).splitlines(), 1):
        if line.lstrip().startswith("<!-- made by: "):
            said = True
        elif re.search(r"!\[[^\]]*\]\(|<img ", line):
            if not said:
                yield number, "no comment <!-- made by: COMMAND --> above this image"
            said = False
        elif line.strip() and not line.lstrip().startswith(("<", "[<")):
            said = False


def where(files, tree, page):
    """The sources that the text of a page names; None, for anywhere, if it names none."""
    found = [path for name in files for pattern in patterns(name, page) for path in tree.paths if re.fullmatch(pattern, path)]
    return [path for path in found if path.endswith(CODE)] or None


def wrong_call(callers, callee, sources):
    """callers: (name, files) of functions of which one must call it"""
    bodies = [body for name, files in callers for body in sources.definitions(name, files)]
    if any(function_bodies.calls(body, callee) for body in bodies):
        return None
    return f"no call of {callee}() in {callers[-1][0]}(){' or one above it' if len(callers) > 1 else ''}"


def wrong_sentences(text, page, tree, sources):
    """Line number and problem of each "`a()` calls `b()`" that is not so."""
    for found in CALLS.finditer(without_blocks(text).replace("\n", " ")):
        caller, file, callees = found.group(1), found.group(2), found.group(3)
        for callee in FUNCTION.finditer(callees):
            problem = wrong_call([(caller, where([file] if file else [], tree, page))], callee.group(1), sources)
            if problem:
                yield text.count("\n", 0, found.start()) + 1, problem


def wrong_tables(text, page, tree, sources):
    """Line number and problem of each row of a table of calls."""
    for table in re.finditer(r"^<!-- calls, at most (\d+) -->\n((?:\|.*\n?|\n)*)", text, re.MULTILINE):
        above, files, count = [], None, 0
        for at, row in enumerate(table.group(2).splitlines()):
            number = text.count("\n", 0, table.start(2)) + at + 1
            cells = [cell.strip() for cell in row.strip("|").split("|")]
            names = FUNCTION.findall(cells[1]) if len(cells) > 2 else []
            if not names:
                continue
            files = where(re.findall(r"`([^`]+)`", cells[2]), tree, page) or files
            for name, _ in names:
                problem = wrong_call(above, name, sources) if cells[0] and above else None
                if not any(sources.definitions(name, files)):
                    problem = f"no definition of {name}() in {', '.join(files or ['any source'])}"
                if problem:
                    yield number, problem
                above.append((name, files))
            if not cells[0]:
                continue
            numbers = re.findall(r"\d+", cells[0])
            listed = list(range(int(numbers[0]), int(numbers[-1]) + 1))
            if listed != list(range(count + 1, count + 1 + len(names))):
                yield number, f"{len(names)} functions behind number {count} are said to be {cells[0]}"
            count = listed[-1]
            if count > int(table.group(1)):
                yield number, f"more than {table.group(1)} calls"


        if count == 0:
            yield text.count("\n", 0, table.start()) + 1, "no table of calls behind this comment"


def wrong_quotes(text, sources):
    """Line number and problem of each quoted block that no source has."""
    for block in re.finditer(r"^<!-- quoted -->\n(?:\s*^```\w*\n(.*?)^```)?", text, re.DOTALL | re.MULTILINE):
        if block.group(1) is None:
            yield text.count("\n", 0, block.start()) + 1, "no code behind this comment"
            continue
        if not sources.quotes(block.group(1)):
            yield text.count("\n", 0, block.start(1)) + 1, "no source has this code"


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    pages = [pathlib.Path(page).resolve() for page in parser.parse_args().pages] or [ROOT / "README.md", ROOT / "CONTRIBUTING.md"] + sorted(
        page for page in (ROOT / "docs").rglob("*.md") if "results" not in page.parts)
    tree, count, wrong = Tree(), 0, 0
    sources = function_bodies.Sources({path: (ROOT / path).read_text(errors="replace") for path in sorted(tree.paths)
                                       if path.endswith(CODE) and not path.startswith("docs/") and (ROOT / path).is_file()})
    for page in pages:
        if not page.is_file():
            command_line.complain(f"{page}: no such page")
        text = page.read_text(errors="replace")
        relative = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
        found = [*wrong_links(text, page), *images_without_source(text, page)]
        example = re.split(r"[ ,]+", " ".join(EXAMPLE.findall(text)).strip()) if EXAMPLE.search(text) else []
        for number, span in code_spans(text):
            count += 1
            if any(name in span for name in example):
                continue
            found += [(number, problem) for problem in problems(span, relative, tree)]
        found += [*wrong_sentences(text, relative, tree, sources), *wrong_tables(text, relative, tree, sources),
                  *wrong_quotes(text, sources)]
        for number, problem in sorted(found):
            print(f"{relative}:{number}: {problem}")
        wrong += len(found)
    print(f"{count} names on {len(pages)} pages, {wrong} not found")
    return 1 if wrong else 0


if __name__ == "__main__":
    command_line.run(main)
