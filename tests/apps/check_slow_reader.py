#!/usr/bin/env python3
"""Ranks wait for as long as it takes for one that cannot write on: check_slow_reader.py PROGRAM

As when a terminal is halted (Ctrl-S), or a pager is not read on.
"""
import fcntl
import os
import subprocess
import sys
import time

from run_case import environment

DEADLINE = 1  # seconds
RUN = [sys.argv[1], "--no-run-dir", "--threads", "1", "--replicas", "2", "--comm-timeout", str(DEADLINE)] + (
    "--dataset synthetic --limit-train 100 --limit-test 20 --model mnist_cnn --layers 2 --global-batch-size 10 --epochs 1").split()


def full_pipe():
    """Its ends, and how much it holds."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    held = 0
    try:
        while True:
            held += os.write(writer, b" " * 512)
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    return reader, writer, held


def main():
    reader, writer, held = full_pipe()
    with subprocess.Popen(RUN, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        os.close(writer)
        time.sleep(DEADLINE + 6)
        has_waited = process.poll() is None
        with open(reader, encoding="utf-8") as file:
            output = file.read()[held:]
        errors = process.stderr.read()
        code = process.wait()
    if not has_waited or code != 0 or "test accuracy" not in output:
        sys.exit(f"FAILED: {'waited' if has_waited else 'did not wait'}, exit code {code}\n{output}{errors}")


if __name__ == "__main__":
    main()
