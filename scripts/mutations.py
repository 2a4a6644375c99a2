#!/usr/bin/env python3
"""Plants faults in a copy of the committed tree, one at a time, and tells which of them the tests notice.

    scripts/mutations.py [--list] [--only TEXT] [--graphs] [--jobs N]

Each fault of tests/mutations/mutations.py is compiled and tested by the programs of its library first, then by the others;
the first failure ends it. Faults of CUDA sources and of CUDA graphs are tested in the simulator. --only takes faults whose
file holds TEXT, --graphs those of recorded steps (CUDA graphs) alone.
--list prints them and plants none. Needs git, CMake and preset cpu's libraries; the copy lies in build/mutations. Exit code 1
if fewer than 95 % are noticed, 2 if a fault of the list has not its one place in the sources, or if the tests fail without
any fault.
"""
import os
import pathlib
import subprocess
import sys
import time

import command_line

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "mutations"
sys.path[:0] = [str(ROOT / "tests" / "mutations"), str(ROOT / "tests" / "apps")]
from mutations import GRAPH_MUTATIONS, MUTATIONS  # noqa: E402
from run_case import environment, mpirun  # noqa: E402

WANTED_SHARE = 0.95
# A program that takes so many times as long as without a fault, and this long at least, has noticed a hang.
SLOWDOWN = 5
LEAST_SECONDS = 30
LIBRARIES = ["core", "kernels", "autograd", "op_cases", "layers", "optim", "comm", "data", "train", "errors"]
PROGRAMS = {name: [f"tests/tandem_{name}_tests"] for name in LIBRARIES}
PROGRAMS["mpi"] = mpirun() + ["-np", "3", "tests/tandem_comm_mpi_tests"]
# What runs on the simulated device: "simulated op_cases", ...
SIMULATED = "simulated "
PROGRAMS |= {SIMULATED + name: [f"tests/tandem_{name}_tests", "[cuda]"] for name in LIBRARIES if name != "errors"}
RANKS = SIMULATED + "cuda_graph_mpi"  # two of them, whose steps are graphs
PROGRAMS[RANKS] = mpirun() + ["-np", "2", "tests/tandem_cuda_graph_mpi_tests"]
# Which programs are asked, and in which order: those nearest to the fault come first.
ORDER = {
    "core": ["core", "autograd", "op_cases", "layers", "optim", "comm", "data", "train", "mpi", "errors"],
    "kernels": ["op_cases", "kernels", "autograd", "layers", "train", "errors"],
    "device": [SIMULATED + name for name in ("op_cases", "kernels", "autograd")],
    "graph": [SIMULATED + name for name in ("train", "optim", "core", "layers", "kernels", "autograd")] + [RANKS],
    "autograd": ["autograd", "op_cases", "layers", "optim", "train", "comm", "mpi", "errors"],
    "data": ["data", "train", "errors"],
    "layers": ["layers", "optim", "train", "errors"],
    "optim": ["optim", "train", "errors"],
    "train": ["train", "errors"],
    "comm": ["comm", "mpi", "train", "errors"],
}


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)


def preset_of(program):
    return "simulated" if program.startswith(SIMULATED) else "cpu"


def order_of(mutation):
    """The programs that are asked about a fault."""
    library = mutation[0].split("/")[0]
    if mutation in GRAPH_MUTATIONS:
        nearest = RANKS if library == "comm" else SIMULATED + library
        return sorted(ORDER["graph"], key=lambda name: name != nearest)
    return ORDER["device" if mutation[0].endswith((".cu", ".cuh", "_cuda.cpp")) else library]


def build(jobs, programs):
    """Builds programs of one preset or more; the first build that fails, or the last."""
    for preset in sorted({preset_of(name) for name in programs}):
        names = [name.removeprefix(SIMULATED) for name in programs if preset_of(name) == preset]
        targets = ["tandem_comm_mpi_tests" if name == "mpi" else f"tandem_{name}_tests" for name in names]
        built = run(["cmake", "--build", f"build/{preset}", "--parallel", str(jobs), "--target"] + targets, cwd=COPY)
        if built.returncode != 0:
            break
    return built


def test(name, seconds=1200):
    """True if the tests pass in this time; the first failure ends them."""
    threads = {"OMP_NUM_THREADS": "1" if name in ("mpi", RANKS) else "2"}
    try:
        done = run(PROGRAMS[name] + ["--abort"], cwd=COPY / "build" / preset_of(name), env=environment() | threads,
                   timeout=seconds)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def remove_copy():
    run(["git", "worktree", "remove", "--force", str(COPY)], cwd=ROOT)


def make_copy(chosen):
    if COPY.exists():
        remove_copy()
    made = run(["git", "worktree", "add", "--detach", "--force", str(COPY), "HEAD"], cwd=ROOT)
    if made.returncode != 0:
        command_line.complain(f"no copy of the tree: {made.stdout}")
    os.environ.update(CCACHE_BASEDIR=str(COPY), CCACHE_NOHASHDIR="1")
    for preset in sorted({preset_of(name) for mutation in chosen for name in order_of(mutation)}):
        made = run(["cmake", "--preset", preset], cwd=COPY)
        if made.returncode != 0:
            print(made.stdout)
            sys.exit(2)


def misfits(mutations):
    """What is wrong with the list."""
    for file, before, after in mutations:
        path = ROOT / file
        count = path.read_text().count(before) if path.exists() else 0
        if count != 1:
            yield f"{file}: stands there {count} times, must be once: {before}"
        if before == after:
            yield f"{file}: changes nothing: {before}"


def verdict(mutation, jobs, limits):
    """Which tests noticed it, "" if none did, None if it does not compile."""
    file, before, after = mutation
    path = COPY / file
    original = path.read_text()
    path.write_text(original.replace(before, after))
    try:
        for name in order_of(mutation):
            if build(jobs, [name]).returncode != 0:
                return None
            if not test(name, limits[name]):
                return name
        return ""
    finally:
        path.write_text(original)


def plant(chosen, jobs):
    """Plants one after the other; the exit code."""
    needed = [name for name in PROGRAMS if any(name in order_of(mutation) for mutation in chosen)]
    built = build(jobs, needed)
    if built.returncode != 0:
        print(built.stdout)
        return 2
    limits, failing = {}, []
    for name in needed:
        begin = time.monotonic()
        if not test(name):
            failing.append(name)
        limits[name] = max(LEAST_SECONDS, SLOWDOWN * (time.monotonic() - begin))
    if failing:
        print(f"mutations: without any fault, these fail: {', '.join(failing)}")
        return 2

    survivors, broken = [], []
    for number, mutation in enumerate(chosen, 1):
        begin = time.monotonic()
        noticed = verdict(mutation, jobs, limits)
        text = {None: "DOES NOT COMPILE", "": "SURVIVES"}.get(noticed, f"noticed by {noticed}")
        print(f"{number:3}/{len(chosen)} {time.monotonic() - begin:5.0f}s {text:22} {mutation[0]}: {mutation[1].strip()[:80]!r}",
              flush=True)
        if noticed is None:
            broken.append(mutation)
        elif noticed == "":
            survivors.append(mutation)
    noticed = len(chosen) - len(survivors) - len(broken)
    print(f"{noticed} of {len(chosen)} faults noticed, {len(survivors)} survive, {len(broken)} do not compile")
    if broken:
        return 2
    return 0 if noticed >= WANTED_SHARE * len(chosen) else 1


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("--list", action="store_true", help="print the faults and exit")
    parser.add_argument("--only", default="", metavar="TEXT", help="only faults whose file holds TEXT")
    parser.add_argument("--graphs", action="store_true", help="only faults of CUDA graphs")
    parser.add_argument("--jobs", type=command_line.whole_number(1, 4096), default=os.cpu_count(), help="compilers at a time")
    options = parser.parse_args()
    mutations = MUTATIONS + GRAPH_MUTATIONS
    wrong = list(misfits(mutations))
    if wrong:
        print("\n".join(wrong))
        return 2
    among = GRAPH_MUTATIONS if options.graphs else mutations
    chosen = [mutation for mutation in among if options.only in mutation[0]]
    if options.list:
        for file, before, after in chosen:
            print(f"{file}: {before!r} -> {after!r}")
        return 0
    if not chosen:
        command_line.complain(f"--only {options.only}: no file with faults holds this in its name; --list lists them")

    try:
        make_copy(chosen)
        return plant(chosen, options.jobs)
    finally:
        remove_copy()


if __name__ == "__main__":
    command_line.run(main)
