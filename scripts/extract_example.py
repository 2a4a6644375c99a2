#!/usr/bin/env python3
"""Takes the files of an example out of a page of the documentation, so that they can be compiled.

    scripts/extract_example.py PAGE FOLDER

In the page, a line with a path in bold, **`kernels/activation/hard_tanh.h`**, says that the code block behind it is that file, whole.
**`layers/layers.h`**, one more line: says that the block is lines for the includes of a file of this tree. The files are written
to FOLDER, with their paths; those that are the same already are left alone, and those of an earlier call that the page has no more
are removed. FOLDER/files.txt lists what the page has whole. Includes of "tandem/..." are found where FOLDER/include comes before the
tree's include/. Exit code 2 for a page that has no such files, or has them where files of the tree are.
"""
import os
import pathlib
import re

import command_line

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = "files.txt"
TITLE = re.compile(r"\*\*`([^`]+)`\*\*(, one more line:)?$")
PATH = re.compile(r"\w[\w.-]*(/\w[\w.-]*)+")


def has_example(page):
    return any(TITLE.match(line) for line in page.read_text().splitlines())


def example_of(page):
    """The example of a page: the text of each file that it has whole, and the lines for others, by path."""
    files, lines, title, block = {}, {}, None, None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if block is not None:
            if line != "```":
                block.append(line + "\n")
                continue
            if title:
                path, is_line = title
                (lines if is_line else files)[path] = "".join(block)
            title = block = None
        elif line.startswith("```"):
            block = []
        elif line.startswith("**`"):
            found = TITLE.match(line)
            if not found or not PATH.fullmatch(found[1]):
                command_line.complain(f"{page}:{number}: neither the title of a file nor of one more line: {line}")
            if title or found[1] in files or found[1] in lines:
                command_line.complain(f"{page}:{number}: {found[1]}: a title without a code block, or twice")
            title = found[1], bool(found[2])
    if title or block is not None or not files:
        command_line.complain(f"{page}: ends in the middle of an example, or has none")
    return files, lines


def with_lines(text, lines):
    """The text of a header with more includes, in the order of the alphabet among those that are there."""
    for line in lines.splitlines(keepends=True):
        all_lines = text.splitlines(keepends=True)
        includes = [i for i, old in enumerate(all_lines) if old.startswith('#include "')]
        after = [i for i in includes if all_lines[i] > line]
        all_lines.insert(after[0] if after else includes[-1] + 1, line)
        text = "".join(all_lines)
    return text


def write_if_changed(path, text):
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def write_example(files, lines, folder):
    """Writes the files of an example below a folder, and headers of the tree with the lines that they get."""
    if folder.exists() and not (folder / LIST).is_file() and any(folder.iterdir()):
        command_line.complain(f"{folder}: has files in it that this script did not write")
    before = (folder / LIST).read_text().splitlines() if (folder / LIST).is_file() else []
    for path in set(before) - set(files):
        (folder / path).unlink(missing_ok=True)
    for path, text in {**files, **changed_headers(lines)}.items():
        write_if_changed(folder / path, text)
    (folder / "include").mkdir(exist_ok=True)
    if not (folder / "include/tandem").is_symlink():
        os.symlink("..", folder / "include/tandem")
    write_if_changed(folder / LIST, "".join(path + "\n" for path in files))


def changed_headers(lines):
    """The texts of these headers of the tree with more lines."""
    return {path: with_lines((ROOT / path).read_text(), more) for path, more in lines.items()}


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("page", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    files, lines = example_of(arguments.page)
    for path in files:
        if (ROOT / path).exists():
            command_line.complain(f"{arguments.page}: {path} is a file of the tree; the example must be a new op")
    for path in lines:
        if not (ROOT / path).is_file():
            command_line.complain(f"{arguments.page}: {path} is to have one more line, but is not there")
    write_example(files, lines, arguments.folder)


if __name__ == "__main__":
    command_line.run(main)
