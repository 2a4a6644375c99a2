#!/usr/bin/env python3
"""Writes train/character_width_table.h, the columns that characters take on a terminal: scripts/character_widths.py

By the Unicode data of the Python that runs it, as wcwidth() of C libraries has them: 2 for wide and full-width characters
(East_Asian_Width W or F), 0 for marks that are drawn onto the character before them (categories Mn and Me), for the vowels and
ends of Hangul syllables, and for invisible characters of formats (Cf, but for the soft hyphen); all others take 1. Places
without a character take what those around them do, so that ranges are few.
"""
import pathlib
import unicodedata

TABLE = pathlib.Path(__file__).resolve().parent.parent / "train" / "character_width_table.h"
HANGUL_VOWELS_AND_ENDS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FB))
IDEOGRAPHS = (0x20000, 0x3FFFD)  # two planes, wide also where there is no character yet
SOFT_HYPHEN = 0xAD


def is_in(code, *ranges):
    return any(first <= code <= last for first, last in ranges)


def columns(code):
    """None: there is no such character."""
    character = chr(code)
    category = unicodedata.category(character)
    if category in ("Mn", "Me") or (category == "Cf" and code != SOFT_HYPHEN) or is_in(code, *HANGUL_VOWELS_AND_ENDS):
        return 0
    if is_in(code, IDEOGRAPHS):
        return 2
    if category in ("Cn", "Co", "Cs"):
        return None
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def ranges_of(width):
    found, first = [], None
    for code in range(0x80, 0x110000):
        own = columns(code)
        if own == width:
            first, last = code if first is None else first, code
        elif own is not None and first is not None:
            found.append((first, last))
            first = None
    return found + ([(first, last)] if first is not None else [])


def lines_of(width):
    entries = [f"{{0x{first:x}, 0x{last:x}}}," for first, last in ranges_of(width)]
    lines, line = [], "   "
    for entry in entries:
        if len(line) + 1 + len(entry) > 120:
            lines.append(line)
            line = "   "
        line += " " + entry
    return "\n".join([*lines, line])


def main():
    TABLE.write_text(f"""// Made by scripts/character_widths.py, of Unicode {unicodedata.unidata_version}: do not edit.
#pragma once

namespace tandem::train::detail {{

/// The first and the last of a row of characters.
struct CharacterRange {{
  char32_t first, last;
}};

// clang-format off
/// Those that take no column.
inline constexpr CharacterRange kZeroWidth[] = {{
{lines_of(0)}
}};

/// Those that take two.
inline constexpr CharacterRange kDoubleWidth[] = {{
{lines_of(2)}
}};
// clang-format on

}}  // namespace tandem::train::detail
""")


main()
