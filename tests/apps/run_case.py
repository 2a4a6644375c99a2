#!/usr/bin/env python3
"""Runs one command and checks its exit code and what it prints: a command-line test, for ctest.

    run_case.py [--exit N] [--out TEXT]... [--err TEXT]... [--not-err TEXT]... [--max-columns N] [--ranks N] \\
        [--needs-cuda DEVICE_QUERY] [--timeout SECONDS] -- COMMAND...

With --ranks, the command runs under mpirun (COMMAND may hold ':' to give ranks different arguments). --ranks together
with a missing mpirun ends with exit code 77: skipped. So does --needs-cuda where that program lists no CUDA device.
"""
import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

SKIPPED = 77


def mpirun():
    """The words that a command for several ranks begins with: TANDEM_MPIEXEC, else the mpirun in PATH."""
    program = os.environ.get("TANDEM_MPIEXEC") or shutil.which("mpirun")
    if program is None:
        print("skipped: there is no mpirun")
        sys.exit(SKIPPED)
    return [program, "--bind-to", "none"]


def shows_last_words(ranks):
    """Whether what the ranks write after mpirun was told to end is shown; Open MPI 5 shows nothing more."""
    if ranks == 1:
        return True
    done = subprocess.run([*mpirun(), "--version"], stdout=subprocess.PIPE, text=True, env=environment(), timeout=60)
    version = re.search(r"\(Open MPI\) ([0-9]+)", done.stdout)
    return version is None or int(version[1]) < 5


def launched(command, ranks):
    if ranks <= 1:
        return command
    start = mpirun()
    parts, part = [], []
    for word in command + [":"]:
        if word == ":":
            parts.append(part)
            part = []
        else:
            part.append(word)
    if len(parts) == 1:
        return start + ["-np", str(ranks)] + parts[0]
    # Not "-np 1 A : -np 1 B": mpirun of Open MPI 5.0.7 with PMIx 5.0.7 (Debian 13) crashes at that, whatever A and B are.
    choices = " ".join(f"{rank}) exec {shlex.join(part)} ;;" for rank, part in enumerate(parts))
    return start + ["-np", str(len(parts)), "sh", "-c", "case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in " + choices + " esac"]


def environment():
    values = dict(os.environ, OMPI_MCA_btl_vader_single_copy_mechanism="none")
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "mpi.env")) as lines:
        values.update(line.strip().split("=", 1) for line in lines if line[0].isupper())
    values.setdefault("OMP_NUM_THREADS", "1")
    return values


def run(command, timeout):
    """Exit code, stdout and stderr; a command that outlives `timeout` is killed with all its children."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                               env=environment(), start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        print(f"--- stdout\n{out}--- stderr\n{err}")
        sys.exit(f"FAILED: hangs: did not end in {timeout} s")
    return process.returncode, out, err


def main():
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("--exit", type=int, default=0)
    parser.add_argument("--out", action="append", default=[])
    parser.add_argument("--err", action="append", default=[])
    parser.add_argument("--not-err", action="append", default=[])
    parser.add_argument("--max-columns", type=int)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--needs-cuda")
    parser.add_argument("--timeout", type=float, default=100)
    options = parser.parse_args(sys.argv[1:split])
    command = launched(sys.argv[split + 1:], options.ranks)
    if options.needs_cuda:
        listed = subprocess.run([options.needs_cuda], stdout=subprocess.PIPE, text=True)
        if "cuda:0" not in listed.stdout:
            print("skipped: there is no CUDA device")
            sys.exit(SKIPPED)

    code, out, err = run(command, options.timeout)
    problems = []
    if code != options.exit:
        problems.append(f"exit code {code}, expected {options.exit}")
    problems += [f"stdout lacks: {text}" for text in options.out if text not in out]
    problems += [f"stderr lacks: {text}" for text in options.err if text not in err]
    problems += [f"stderr has: {text}" for text in options.not_err if text in err]
    if options.exit == 2:
        lines = [line for line in err.splitlines() if line.startswith("error: ")]
        if len(lines) != 1:
            problems.append(f"{len(lines)} lines begin with 'error: ', expected exactly one, of rank 0")
        elif not err.startswith("error: "):
            problems.append("the error is not the first line on stderr")
    if options.max_columns:
        problems += [f"wider than {options.max_columns} columns: {line}" for line in out.splitlines()
                     if len(line) > options.max_columns]
    if problems:
        print(f"{' '.join(command)}\n--- stdout\n{out}--- stderr\n{err}---")
        sys.exit("FAILED: " + "; ".join(problems))


if __name__ == "__main__":
    main()
