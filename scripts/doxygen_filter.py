#!/usr/bin/env python3
"""What Doxygen reads in place of a header: doxygen_filter.py HEADER

Lines stay where they are. The comment at the top of the file is the file's; lines behind "Example:" are code. Left out are names
that nobody writes: members that are deleted or as the compiler makes them, and what tells fmt how to print a type.
"""
import html
import re
import sys

DEFAULTED = re.compile(r"^[^/\n]*= (?:delete|default);.*$", re.MULTILINE)
FORMATTER = re.compile(r"^template <[^\n]*>\nstruct fmt::formatter<.*?^};$", re.MULTILINE | re.DOTALL)
FILE_COMMENT = re.compile(r"\A(?://.*\n)+")
EXAMPLE = re.compile(r"(Example:)((?:\n *///(?:    .*)?(?=\n))+)")
NAME_IN_CODE = re.compile(r"`([^`\n]*::[^`\n]*)`")


def blank(found):
    return "\n" * found[0].count("\n")


def name_in_code(found):
    """Doxygen would look for the name, also where it is not ours."""
    return "<code>" + html.escape(found[1], quote=False).replace("::", r"\::") + "</code>"


def filtered(text, path):
    if not path.endswith(".h"):
        return text

    def comment_of_file(found):
        lines = re.sub("^///?", "///", found[0], flags=re.MULTILINE)
        return lines.replace("///", f"/// @fileof{{{path}}}", 1)

    text = FORMATTER.sub(blank, DEFAULTED.sub("", FILE_COMMENT.sub(comment_of_file, text)))
    parts = EXAMPLE.split(text)  # text, "Example:", its lines, text ...
    for i, part in enumerate(parts):
        if i % 3 == 0:
            parts[i] = re.sub(r"///.*", lambda comment: NAME_IN_CODE.sub(name_in_code, comment[0]), part)
        elif i % 3 == 1:
            parts[i] = part + " @code{.cpp}"
        else:
            parts[i] = part + " @endcode"
    return "".join(parts)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        sys.stdout.write(filtered(header.read(), sys.argv[1].split("/headers/tandem/")[-1]))
