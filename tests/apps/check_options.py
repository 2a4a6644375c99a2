#!/usr/bin/env python3
"""Every option that scripts and pages give to a program is one that the program has: check_options.py REPOSITORY PROGRAM...

Looks at lines with a program's name, and what follows it there and on continued lines, up to the end of that command.
"""
import glob
import os
import re
import subprocess
import sys

from run_case import environment


def commands(text, program):
    """What follows the program's name, for each place where it is called."""
    joined = re.sub(r"\\\n\s*", " ", text)
    for match in re.finditer(rf"(?<![\w.-]){program}(?![\w.-])(\"?[^\n`|;#&]*)", joined):
        yield match[1]


def main():
    repository, programs = sys.argv[1], sys.argv[2:]
    pages = [path for pattern in ("README.md", "docs/*.md", "docs/kernels/*.md", "scripts/*.sh")
             for path in sorted(glob.glob(os.path.join(repository, pattern)))]
    problems, seen = [], 0
    for program in programs:
        name = os.path.basename(program)
        shown = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True, env=environment()).stdout
        known = set(re.findall(r"--[a-z][a-z0-9-]*", shown))
        for path in pages:
            with open(path) as file:
                text = file.read()
                names = [name, "tandem train"] if name == "cifar_train" else [name]
                for words in (words for one in names for words in commands(text, one)):
                    for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", words):
                        seen += 1
                        if option not in known and option.replace("--no-", "--", 1) not in known:
                            problems.append(f"{os.path.relpath(path, repository)}: {name} has no {option}: {name}{words}")
    if seen < 20:
        problems.append(f"found {seen} options only: does this still read the pages as they are written?")
    if problems:
        sys.exit("FAILED:\n" + "\n".join(problems))
    print(f"{seen} options")


if __name__ == "__main__":
    main()
