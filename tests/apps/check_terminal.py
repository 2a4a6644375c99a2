#!/usr/bin/env python3
"""What cifar_train writes to terminals of several kinds, and to files: check_terminal.py PROGRAM

A terminal is a pseudo-terminal of so many columns. A bar is what stands behind a carriage return, and ends by clearing the line.
"""
import fcntl
import os
import re
import subprocess
import sys
import tempfile
import termios
import time

from run_case import environment
from terminal import open_terminal, parts_of, set_width

PROGRAM = sys.argv[1]
RUN = [PROGRAM, "--no-run-dir", "--threads", "1"] + (
    "--dataset synthetic --limit-train 1500 --limit-test 50 --model mnist_cnn --layers 2 --global-batch-size 10 --epochs 2").split()
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def start_at(end, command, variables):
    """A program that a terminal of its own controls."""

    def own_the_terminal():
        os.setsid()
        fcntl.ioctl(end, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, preexec_fn=own_the_terminal,
                               env={**environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **variables})
    os.close(end)
    return process


def at_terminal(columns, variables, then=None):
    """The text of a run at a terminal, and its seconds; `then`: the columns from its first bar on."""
    terminal, end = open_terminal(columns)
    start = time.monotonic()
    process = start_at(end, RUN, variables)
    text = b""
    for part in parts_of(terminal):
        text += part
        if then and b"%" in text:
            set_width(terminal, then)
            text, then = b"", None  # what was drawn before does not count
    check(process.wait() == 0, f"exit code {process.returncode}: {text}")
    return text.decode().replace("\r\n", "\n"), time.monotonic() - start


def bars_of(text):
    """What was drawn, up to where the rest of the line is cleared."""
    parts = [part for line in text.split("\n") for part in line.split("\r")[1:]]
    return [part for part in parts if part.endswith("\x1b[K") and part != "\x1b[K"]


def check_bars(columns, variables, then=None):
    text, seconds = at_terminal(columns, variables, then)
    bars = bars_of(text)
    check(2 <= len(bars) <= 10 * seconds + 2, f"{len(bars)} bars in {seconds:.1f} s: {text!r}")
    for bar in bars[1:] if then else bars:  # one may have been under way when the width changed
        bar = ESCAPE.sub("", bar)
        check(len(bar) + len("^C") < (then or columns), f"{len(bar)} columns at a width of {then or columns}: {bar!r}")
    check("test accuracy" in text, text)
    return text, bars


def at_terminals():
    text, bars = check_bars(80, {})
    check(all(COLOUR.search(bar) for bar in bars) and "\u2588" in text, f"no colour, or no blocks: {bars[0]!r}")
    for columns in (50, 20, 200):
        check_bars(columns, {})
    for columns in (40, 80):  # header, epochs and summary, too
        text, _ = check_bars(columns, {})
        for line in text.split("\n"):
            shown = ESCAPE.sub("", line.split("\r")[-1])
            check(len(shown) <= columns, f"{len(shown)} columns at a width of {columns}: {shown!r}")
        check("\n           " in text or columns == 80, f"nothing is broken at {columns} columns: {text!r}")
    check_bars(120, {}, then=40)
    text, _ = check_bars(80, {"NO_COLOR": "1"})
    check(not COLOUR.search(text), f"NO_COLOR, and yet a colour: {text!r}")
    text, _ = check_bars(80, {"LC_ALL": "C"})
    check(text.isascii(), f"not ASCII in locale C: {text!r}")
    text, _ = at_terminal(80, {"TERM": "dumb"})
    check("\x1b" not in text and "\r" not in text and "test accuracy" in text, f"TERM=dumb: {text!r}")


def errors_at_terminals():
    """Errors and notes are broken where a terminal shows them, and nowhere else."""
    bad = [PROGRAM, "--dataset", "synthetic", "--schedule", "none"]
    lost = [PROGRAM, "--dataset", "mnist", "--data", "/no/such/folder", "--no-run-dir"]  # told where ranks agree
    for command in (bad, lost):
        whole = subprocess.run(command, capture_output=True, text=True, env=dict(environment(), COLUMNS="40"))
        check(whole.returncode == 2 and whole.stderr.startswith("error: ") and whole.stderr.count("\n") == 1, whole.stderr)
        terminal, end = open_terminal(40)
        process = start_at(end, command, {})
        text = b"".join(parts_of(terminal)).decode().replace("\r\n", "\n")
        check(process.wait() == 2 and " ".join(text.split()) == " ".join(whole.stderr.split()), f"{text!r} of {whole.stderr!r}")
        first, *others = text.splitlines()
        check(len(first) <= 40 and others and all(line.startswith("  ") for line in others), f"not broken at 40 columns: {text!r}")


def stopped_at_terminals():
    """Ctrl-C, which a terminal shows as ^C: what is said then begins on a line of its own."""
    for mode in ("bar", "plain", "none"):
        with tempfile.TemporaryDirectory() as folder:
            terminal, end = open_terminal(80)
            run = [*RUN, "--run-dir", os.path.join(folder, "run"), "--epochs", "1000", "--progress", mode]
            run.remove("--no-run-dir")
            process = start_at(end, run, {})
            text, is_stopped = b"", False
            for part in parts_of(terminal):
                text += part
                if not is_stopped and b"first step" in text:
                    os.write(terminal, b"\x03")
                    is_stopped = True
            check(process.wait() == 130 and text.count(b"^C") == 1, f"{mode}: {text!r}")
            behind = text.decode().split("^C")[1]
            check(behind.startswith("\r"), f"{mode}: behind ^C: {behind!r}")
            check("\n  kept in  " in behind or "\x1b[K  kept in  " in behind, f"{mode}: {behind!r}")


def into_files():
    """Into a file, a line in ten seconds tells how far it is, and nothing of what only terminals show."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # An epoch of this takes longer than that.
        process = subprocess.Popen(RUN + "--model resnet18 --layers 0 --limit-train 10000 --global-batch-size 16".split(), stdout=out, stderr=err, env=dict(environment(), COLUMNS="40"))
        begin = time.monotonic()
        time.sleep(8)
        early = os.fstat(err.fileno()).st_size
        while os.fstat(err.fileno()).st_size == 0 and time.monotonic() < begin + 100:
            time.sleep(0.2)
        process.terminate()
        process.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    for text in texts:
        check("\r" not in text and "\x1b" not in text, f"into a file: {text!r}")
    lines = [line for line in texts[1].splitlines() if " steps " in line]
    check(len(lines) == 1 and texts[1].count("\n") == 1, f"the first lines on standard error: {texts[1]!r}")
    check(early == 0, "a line before ten seconds")
    check(texts[0].startswith("Tandem "), texts[0])
    check("10,000 images for training, 50 for testing\n" in texts[0], f"a file's lines are broken: {texts[0]!r}")


errors_at_terminals()
stopped_at_terminals()
at_terminals()
into_files()
