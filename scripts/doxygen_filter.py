#!/usr/bin/env python3
"""What Doxygen reads in place of a header: doxygen_filter.py HEADER

Lines stay where they are. The comment at the top of the file is the file's; lines behind "Example:" are code; an overload that
stands directly below another one has its comment, and so has each variable of a declaration of several. Left out are names that nobody writes: members that are deleted or as the
compiler makes them, and what tells fmt how to print a type.
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


def declarations(lines):
    """Of each declaration with parentheses: its first and its last line, and the name in front of them."""
    at = 0
    while at < len(lines):
        first = at
        if re.match(r"\s*(//|#|$)", lines[at]) or not re.match(r"\s*(template\b|[\w:~\[])", lines[at]):
            at += 1
            continue
        depth, text = 0, ""
        while at < len(lines):
            code = re.sub(r"//.*", "", lines[at])
            depth += code.count("{") - code.count("}")
            text += code.strip() + " "
            at += 1
            # A class or a namespace is entered, a function is passed over with its body.
            if depth > 0 and re.match(r"(template <.*> )?(class|struct|namespace|enum|union|extern)\b", text):
                break
            if depth <= 0 and re.search(r"[;}:]\s*$", code) and text.count("(") == text.count(")"):
                break
        found = re.search(r"(operator\W+|[\w~]+)\(", re.sub(r"\b(requires|explicit|noexcept|decltype)\b ?(\([^()]*\))?", "", text))
        if found:
            yield first, at, found[1]


def with_comments_of_overloads(text):
    lines = text.split("\n")
    end, name, comment = None, None, []
    for first, last, declared in declarations(lines):
        above = first
        while above > 0 and re.match(r"\s*///(?!<)", lines[above - 1]):
            above -= 1
        if above < first:
            comment = [line.strip()[3:].strip() for line in lines[above:first]]
        elif first == end and declared == name and comment:
            words = " ".join(comment).split("Example: @code")[0]
            lines[first] = re.match(r"\s*", lines[first])[0] + f"/** {words} */ " + lines[first].lstrip()
        else:
            comment = []
        end, name = last, declared
    return "\n".join(lines)


SEVERAL = re.compile(r"^( *)((?:[\w:]|<[^;]*?>)+) (\w+(?:\{[^{}]*\}| = [^,;]+)?(?:, \w+(?:\{[^{}]*\}| = [^,;]+)?)+);\s*(?:///< ?(.*))?$")


def with_single_variables(text):
    lines = text.split("\n")
    for i, line in enumerate(lines):
        found = SEVERAL.match(line)
        if not found or found[2] in ("return", "using"):
            continue
        above = i
        while above > 0 and re.match(r"\s*///(?!<)", lines[above - 1]):
            above -= 1
        comment = found[4] or " ".join(part.strip()[3:].strip() for part in lines[above:i])
        if comment:
            lines[i] = found[1] + " ".join(f"/** {comment} */ {found[2]} {variable};" for variable in found[3].split(", "))
    return "\n".join(lines)


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
    return with_comments_of_overloads(with_single_variables("".join(parts)))


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        sys.stdout.write(filtered(header.read(), sys.argv[1].split("/headers/tandem/")[-1]))
