"""What the command lines of these scripts have in common: one line on standard error for what is wrong, and exit code 2;
exit code 1 where a run fails."""

import argparse
import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path


def complain(what, code=2):
    print(f"error: {what}", file=sys.stderr)
    sys.exit(code)


class Parser(argparse.ArgumentParser):
    """Its description is the script's docstring, as it stands."""

    def __init__(self, description, hint=""):
        """`hint` goes to what is said of arguments that are unknown."""
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.hint = hint

    def error(self, message):
        named = re.sub("^argument ([^ ]+): ", r"\1 ", message)
        complain(f"{named}{self.hint if message.startswith('unrecognized') else ''}; --help lists what {self.prog} takes")


def whole_number(least, most=2**31 - 1):
    """An argument type: a decimal number within these limits."""

    def parse(text):
        if not re.fullmatch("[+-]?[0-9]{1,18}", text):
            raise argparse.ArgumentTypeError(f"'{text}': not a whole number")
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text}: must be at least {least}")
        if int(text) > most:
            raise argparse.ArgumentTypeError(f"{text}: must be at most {most}")
        return int(text)

    return parse


def positive_number(text):
    """An argument type: a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}': not a finite number above 0")
    return value


def folder_name(text):
    """An argument type: a path that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: name a folder, or leave it out")
    return Path(text)


def several(choices=None):
    """An argument type: words separated by commas, each once, of these choices where they are given."""

    def parse(text):
        words = text.split(",")
        for word in words:
            if not word or (choices and word not in choices):
                which = f"choose from {', '.join(choices)}" if choices else "give names with commas between them"
                raise argparse.ArgumentTypeError(f"'{word}': {which}")
        return list(dict.fromkeys(words))

    return parse


def tracked_files(root):
    """The files that git lists there, but links and what is deleted. Ends this script where there is no git, or no repository."""
    try:
        listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        complain(f"{root}: git lists no files here: this is for a checkout")
    return [file for file in listed.stdout.split("\0")[:-1] if os.path.isfile(f"{root}/{file}") and not os.path.islink(f"{root}/{file}")]


def program(path, remedy):
    """Ends this script unless `path` is a program."""
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        complain(f"{path} is not there, or no program: {remedy}")


def lines_of(path, columns):
    """The words of each line of a file, which has so many of them with tabs between."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            words = line.rstrip("\n").split("\t")
            if len(words) != columns:
                complain(f"{path}:{number}: has {len(words)} columns, not {columns}: not a file of this kind")
            yield number, words


def counts_of(path, number, words):
    """These words of a line as whole numbers."""
    if not all(word.isdecimal() and word.isascii() for word in words):
        complain(f"{path}:{number}: {' '.join(words)}: expected whole numbers: not a file of this kind")
    return [int(word) for word in words]


def check_output(option, path):
    """Ends this script where write_json could not write: before any work is done."""
    folder = os.path.dirname(path) or "."
    if not path or os.path.isdir(path) or not os.path.isdir(folder):
        complain(f"{option} '{path}': name a file in a folder that is there")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        complain(f"{option} {path}: cannot be written")


def make_folder(option, path):
    """With the folders above it; one that is there is taken."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        complain(f"{option} {path}: cannot make this folder: {error.strerror}; name another")


def call(command):
    """Runs a program to its end, and returns its exit code, or 128 and the signal that ended it. SIGINT (Ctrl-C) and SIGTERM
    go on to the program, which may take its time to end in order."""
    with subprocess.Popen(command) as process:
        before = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda received, _: process.send_signal(received))
        code = process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def write_json(option, path, value):
    """As write_text."""
    write_text(option, path, json.dumps(value, indent=1) + "\n")


def write_text(option, path, text):
    """The file appears as a whole or not at all."""
    special = os.path.exists(path) and not os.path.isfile(path)  # such as /dev/stdout
    written = path if special else f"{path}.{os.getpid()}.tmp"
    try:
        with open(written, "w", encoding="utf-8") as file:
            file.write(text)
        if not special:
            os.replace(written, path)
    except OSError as error:
        if not special and os.path.exists(written):
            os.unlink(written)
        complain(f"{option} {path}: {error.strerror}", code=1)


def run(main):
    """Ends this script with main's exit code; files that cannot be read, and a full disk, are told in one line."""
    try:
        code = main() or 0
        sys.stdout.flush()
    except BrokenPipeError:
        code = 1  # whoever reads has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"error: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        code = 2 if error.filename else 1
        if not error.filename:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
