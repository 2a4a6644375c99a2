#!/usr/bin/env python3
"""Runs of three ranks one of which does not do its part: the others must name it in time, and nothing may be left.

usage: check_hangs.py MPIRUN PROGRAM BACKEND [--algorithm A] [--checks] [--full-shm] [--no-reading] [--repeats N] [WAY...]
Exit code 77, and the reason, where --full-shm is asked for and /dev/shm cannot be another one for a program.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time

DEADLINE = 2  # seconds: of the program

# What a survivor says of rank 1, and within how many seconds of the start: the run takes about one to start.
EARLY, LATE = 5, DEADLINE + 2
NAMED = r"rank 1 \(host \S+, pid \d+{state}\) has not entered (all_reduce #\d+ sum f32\[1000\]|broadcast .*)"
WAYS = {
    "killed": (NAMED.format(state=", ended"), EARLY),
    "exits": (NAMED.format(state=", ended"), EARLY),
    "returns": (NAMED.format(state="(, ended)?") + ".* has left the group", EARLY),
    "stopped": (NAMED.format(state=", stopped"), LATE),
    "computes": (NAMED.format(state="") + ".* and is in backward conv2d of features.7", LATE),
    "receive": (NAMED.format(state="") + r".* and waits in receive of f32\[1000\] from rank 0", LATE),
    "cycle": (r"ranks wait for each other in a cycle: (0 -> 1 -> 2 -> 0|1 -> 2 -> 0 -> 1|2 -> 0 -> 1 -> 2)", LATE),
    "tags": (r"tags differ: rank . .* waits in .* \(tag [34]\), and rank . .* in .* \(tag [34]\)", LATE),
    # Of a group that rank 1 and rank 0 have besides, in this order: each survivor names it in its own one.
    "group": (NAMED.format(state="") + r"|rank 0 \(rank 1 of all, host \S+, pid \d+\) has not entered all_reduce #1 sum", LATE),
    "chain": (r"rank 1 \(host \S+, pid \d+, stopped\) has not sent to rank 2, which waits in receive", LATE),
    "waits": (r"rank 1 \(host \S+, pid \d+, stopped\) has not (sent to rank 0|entered)", LATE),
    "many": (NAMED.format(state=", ended"), EARLY),
    "stays": (r"rank 1 \(host \S+, pid \d+, stopped\) has not left the group", LATE),
    "throws": (r"rank 1: label 12 is out of range", EARLY),
    "root": (r"rank 1.* broadcast #\d+ f32\[1000\] from rank 2, and ranks? 0(, 2)? calls? broadcast .* from rank 0", EARLY),
    "count": (r"rank 1.* all_reduce #\d+ sum f32\[999\], and ranks? 0(, 2)? calls? all_reduce #\d+ sum f32\[1000\]", EARLY),
    "dtype": (r"rank 1.* all_reduce #\d+ sum i32\[1000\], and ranks? 0(, 2)? calls? all_reduce #\d+ sum f32\[1000\]", EARLY),
    "order": (r"rank 1.* broadcast #\d+ f32\[1000\] from rank 0, and ranks? 0(, 2)? calls? all_reduce", EARLY),
    "parts": (r"rank 0 has f32\[1000\] for rank 1 in all_to_all #\d+, and rank 1 expects f32\[999\]; ", EARLY),
    "message": (r"message #1 from rank 0 to rank 1 \(tag 0\) does not fit: rank 0 sends f32\[1000\], and rank 1 receives "
                r"f32\[999\]; ", EARLY),
}
ONLY_WITH_CHECKS = ("parts", "message")  # without them it is up to the backend
# Faults of the program, which no rank outlives, and none ends by a signal.
MISMATCHES = ("root", "count", "dtype", "order", "parts", "message")
# In shared memory ranks compare what they do by words of their own.
MEETS = r"all_reduce sum f32\[1000\] on rank 0 meets .* on rank 1|broadcast .* on rank 0 meets broadcast .* on rank 1"


# A /dev/shm of a program's own, after whose end it tells what is left there; the second one has no room.
LEFT = "left in /dev/shm: "
OWN_SHM, FULL_SHM = (
    ["unshare", "--mount", "sh", "-c", f"""mount -t tmpfs -o size={size} tmpfs /dev/shm || exit 77
    {fill}
    "$@"
    code=$?
    rm -f /dev/shm/full
    ls -A /dev/shm | sed 's|^|{LEFT}|' >&2
    exit $code""", "own-shm"] for size, fill in (("64m", ""), ("64k", "cat /dev/zero > /dev/shm/full 2>&-")))


def is_running(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def run(command, seconds):
    """Exit code, output, errors, and how long it took; None for a run that did not end."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            code = None
    return code, output, errors, time.monotonic() - begin


def faults_of(way, args):
    """What is wrong with a run; nothing where all is right."""
    expected, seconds = WAYS[way]
    if way in MISMATCHES:
        expected = f"{expected}|{MEETS}"
    command = [*args.shm, args.mpirun, "-np", "3", args.program, args.backend, args.algorithm, str(DEADLINE),
               "checks" if args.checks else "no", way,
               *(["no-reading"] if args.no_reading else ["device"] if args.device else [])]
    code, output, errors, took = run(command, 60)
    faults = []
    ends_by_library = args.backend == "gloo" and way == "count" and not args.checks  # Gloo ends the process for those
    if code is None:
        faults.append("did not end")
    elif code == 0 or way in MISMATCHES and code != 2 and not ends_by_library:
        faults.append(f"exit code {code}")
    if took > seconds + args.slack:
        faults.append(f"took {took:.1f} s, more than {seconds} and {args.slack} for the launcher")
    faults += [line for line in errors.splitlines() if line.startswith(LEFT)]
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    # An agreed error is told by one rank, what is wrong with a message by both of its, as far as the launcher lets them.
    if args.checks and way in MISMATCHES and len(lines) not in ((1, 2) if way == "message" else (1,)):
        faults.append(f"{len(lines)} errors are told")
    # A rank that fails says so itself; what a launcher does to the others is not for them to name.
    survivors = {"throws": ("1",), "message": ("0", "1")}.get(way, ("0", "2"))
    for rank in survivors:
        own = [line for line in lines if line.startswith(f"error: rank {rank}: ")]
        # One that has told what is wrong, and ends, is not at fault.
        faults += [f"rank {rank} blames another one" for line in own if re.search(r": rank [02] \((?!rank 1 of all)[^)]*\) (has|did|is|does) ", line)]
        if not any(re.search(expected, line) for line in own):
            # Of an agreed error one rank tells. Wrong dtypes of one size may end some ranks' part before anybody looks.
            # Who has left a group hears of what another one that has left finds.
            one_is_enough = args.checks or way in ("dtype", "stays")
            if not (one_is_enough and any(re.search(expected, line) for line in lines)):
                faults.append(f"rank {rank} does not name the fault")
    if way == "group" and not re.search(r"^  ranks? .* waits? in ", errors, re.MULTILINE):
        faults.append("nobody tells what the others do")
    deadline = time.monotonic() + 5
    processes = re.findall(r"is process (\d+)", output)
    if len(processes) != 3:
        faults.append(f"{len(processes)} ranks began")
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in filter(is_running, processes):
        faults.append(f"process {process} is still there")
        os.kill(int(process), signal.SIGKILL)
    if faults:
        print(f"--- {way}: {'; '.join(faults)}\nexit code {code} after {took:.1f} s\n{output}{errors}")
    return faults, took


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mpirun")
    parser.add_argument("program")
    parser.add_argument("backend")
    parser.add_argument("ways", nargs="*")
    parser.add_argument("--algorithm", default="auto")
    parser.add_argument("--checks", action="store_true", help="ranks compare operations before they begin")
    parser.add_argument("--full-shm", action="store_true", help="/dev/shm has no room")
    parser.add_argument("--no-reading", action="store_true", help="ranks may not read each other's memory")
    parser.add_argument("--device", action="store_true", help="tensors are on the first GPU")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--slack", type=float, default=20.0, help="seconds for the launcher, on a busy machine")
    args = parser.parse_intermixed_args()
    ways = args.ways or [way for way in WAYS if args.checks or way not in ONLY_WITH_CHECKS]
    if args.full_shm:
        os.environ.pop("OMPI_MCA_btl", None)  # Open MPI's messages need another way, or it ends by a signal itself
    args.shm = FULL_SHM if args.full_shm else OWN_SHM
    tried = subprocess.run([*args.shm, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        args.shm = []
        if args.full_shm:
            print(f"skipped: no /dev/shm of its own for a program ({tried.stderr.strip()}); it needs root, or CAP_SYS_ADMIN")
            sys.exit(77)
        print(f"what is left in /dev/shm is not looked at: {tried.stderr.strip()}")
    missed = 0
    for way in ways:
        took = []
        for _ in range(args.repeats):
            faults, seconds = faults_of(way, args)
            missed += bool(faults)
            took.append(seconds)
        print(f"{args.backend} {args.algorithm} {way}: {args.repeats} runs of {min(took):.1f} to {max(took):.1f} s",
              flush=True)
    if missed:
        sys.exit(f"check_hangs: {missed} runs were not as expected")


if __name__ == "__main__":
    main()
