#!/usr/bin/env python3
"""What tandem_doctor tells of a run that is well, and of one whose rank is stopped: check_looks.py PROGRAM TANDEM_DOCTOR."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from run_case import environment, mpirun

LOOKS = 40
DEADLINE = 77
VERDICTS = ("a message may be lost", "does not end", "has not entered", "in a cycle", "longer deadline", "call the same collectives")


def check(is_so, what):
    if not is_so:
        raise SystemExit(f"check_looks: {what}")


def ranks_of(program, mark):
    """The processes of a run that has this word on its command line, without mpirun's."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].decode(errors="replace") == program and mark.encode() in words:
            found.append(int(process))
    return sorted(found)


def look(doctor, process):
    done = subprocess.run([doctor, str(process)], capture_output=True, text=True, env=environment(), timeout=60)
    return done.stdout if done.returncode == 0 else ""


def wait_for(what, is_so, seconds=60):
    deadline = time.monotonic() + seconds
    while not (result := is_so()):
        check(time.monotonic() < deadline, f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return result


def check_looks(program, doctor, folder):
    log = os.path.join(folder, "log.jsonl")
    command = [*mpirun(), "-np", "2", program, "--dataset", "synthetic", "--model", "mnist_cnn", "--limit-train", "512",
               "--limit-test", "64", "--epochs", "100000", "--threads", "1", "--no-run-dir", "--log", log,
               "--comm-timeout", str(DEADLINE)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(),
                          start_new_session=True) as run:
        try:
            ranks = wait_for("two ranks", lambda: len(found := ranks_of(program, log)) == 2 and found)
            wait_for("training", lambda: os.path.exists(log) and os.path.getsize(log) > 0 and look(doctor, ranks[0]))
            for _ in range(LOOKS):
                text = look(doctor, ranks[0])
                check(text, "nothing is told")
                # Of a busy machine a wait may be long; then it says who is late, and for how long.
                if not any(float(seconds) >= 1.0 for seconds in re.findall(r"for (\d+\.\d) s$", text, re.MULTILINE)):
                    check(not any(verdict in text for verdict in VERDICTS), f"a run that is well, and a verdict:\n{text}")
                deadlines = re.findall(r"^2 ranks, .*(?:deadline (\S+) s|no deadline)$", text, re.MULTILINE)
                check(deadlines and set(deadlines) == {str(DEADLINE)}, f"deadlines {deadlines}, also of the start:\n{text}")
            os.kill(ranks[1], signal.SIGSTOP)
            time.sleep(2.5)
            text = look(doctor, ranks[0])
            check(re.search(rf"-> rank \d \(host \S+, pid {ranks[1]}, stopped\) (has not entered|is in) ", text), f"no verdict:\n{text}")
            check(f"kill -CONT {ranks[1]}" in text, f"no remedy:\n{text}")
        finally:
            os.killpg(run.pid, signal.SIGKILL)
            for rank in ranks_of(program, log):
                os.kill(rank, signal.SIGKILL)


def main():
    folder = tempfile.mkdtemp()
    try:
        check_looks(sys.argv[1], sys.argv[2], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
