#!/usr/bin/env python3
"""Writes the program that runs the examples in the comments of headers, a test case each.

    make_program.py SCRIPTS OUTPUT [ROOT]

The headers are those of the libraries' folders below ROOT, by default the repository's.
"""
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import header_examples  # noqa: E402

if len(sys.argv) > 3:
    header_examples.ROOT = pathlib.Path(sys.argv[3])
# Examples that are compiled, but need what a test does not have.
NOT_RUN = {
    "data/cifar.h": "the data set",
    "data/idx.h": "the data set",
}

includes, sources, cases = set(), [], []
for header in header_examples.headers():
    for example in header_examples.examples_of(header):
        includes |= {f'#include "tandem/{header}"', *(text for _, text in example.parts()[0])}
        sources.append(example.source(check_claims=True))
        if example.parts()[2] and header not in NOT_RUN:
            cases.append(f'TEST_CASE("{header}:{example.line}") {{ {example.namespace}::run(); }}\n')
text = '#include "tests/examples/shown.h"\n#include "tests/support/catch.h"\n\n' + "\n".join(sorted(includes)) + "\n\n"
# Examples show what they make, and do not use it. An option would come before -Wall, which clang then goes by.
for warning in "variable", "but-set-variable", "function":
    text += f'#pragma GCC diagnostic ignored "-Wunused-{warning}"\n'
text += "\n" + "\n".join(sources) + "\n#line 1 \"cases\"\n" + "".join(cases)
output = pathlib.Path(sys.argv[2])
output.parent.mkdir(parents=True, exist_ok=True)
output.write_text(text)
