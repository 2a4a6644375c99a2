"""The fenced blocks of pages, with what HTML comments right above them say of them (scripts/check_snippets.py lists these comments)."""
import dataclasses
import pathlib
import re
import textwrap

import extract_example

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Commands and code that stand in no fence, where this script would not see them.
BARE = re.compile(r"    (mpirun|srun|docker|cmake|tandem\w*|cifar_train|(scripts|build)/\S+|pip|export) .|    \w+::\w+ ")
FENCE = re.compile(r"( *)```+\s*([^`\s]*)")
MARKS = ("not run", "checked by", "prepare", "given", "file", "output of", "exact", "drawing", "fails", "quoted")
COMMENT = re.compile(rf"({'|'.join(MARKS)})\s*(?::\s*(.*))?", re.DOTALL)


class PageError(Exception):
    """What is wrong with a page, with its line."""


@dataclasses.dataclass
class Block:
    page: str    # its path in the tree
    line: int    # of the first line of the block's text
    kind: str    # behind the fence: sh, cpp ..., or "text" where there is nothing
    text: str
    title: str   # the file that the block is (scripts/extract_example.py), or ""
    marks: dict  # what the comments say, by their first words

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def marks_of(comment, place):
    """The mark that a comment is, as a dict of one; empty for a comment of another kind."""
    found = COMMENT.fullmatch(comment.strip())
    if not found:
        return {}
    name, words = found[1], textwrap.dedent(found[2] or "").strip()
    if bool(words) == (name in ("exact", "drawing", "fails", "quoted")):
        raise PageError(f"{place}: the comment '{name}' {'says nothing' if not words else 'takes no words'}")
    return {name: words}


def blocks_of(path, name):
    """The blocks of the page at `path`, which errors call `name`, in order."""
    lines, number, title, marks = path.read_text(errors="replace").splitlines(), 0, "", {}
    while number < len(lines):
        line = lines[number]
        number += 1
        fence, titled = FENCE.match(line), extract_example.TITLE.match(line)
        if fence:
            begin = number
            while number < len(lines) and lines[number].strip() != "```":
                number += 1
            if number == len(lines):
                raise PageError(f"{name}:{begin}: a block without an end")
            text = "".join(row.removeprefix(fence[1]) + "\n" for row in lines[begin:number])
            yield Block(name, begin + 1, fence[2] or "text", text, title, marks)
            number, title, marks = number + 1, "", {}
        elif line.lstrip().startswith("<!--"):
            begin = number
            comment = line
            while "-->" not in comment and number < len(lines):
                comment += "\n" + lines[number]
                number += 1
            marks = marks | marks_of(re.sub(r"^\s*<!--|-->.*$", "", comment, flags=re.DOTALL), f"{name}:{begin}")
        elif titled:
            title = titled[1]
        elif BARE.match(line) and not lines[number - 2].strip():
            raise PageError(f"{name}:{number}: commands and code stand between lines of ```")
        elif line.strip():
            if marks.keys() - {"quoted"}:
                raise PageError(f"{name}:{number}: no block behind the comment '{next(iter(marks))}'")
            title, marks = "", {}


def pages_of(tree=ROOT):
    """All pages that readers follow: not docs/results/, which keep the words of their day."""
    return [tree / "README.md", tree / "CONTRIBUTING.md"] + sorted(
        page for page in (tree / "docs").rglob("*.md") if "results" not in page.relative_to(tree).parts)
