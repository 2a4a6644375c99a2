#!/usr/bin/python3
"""Measures what log, events, progress bar, histograms and checkpoints cost a training run on this machine.

  scripts/measure_writers.py
  scripts/measure_writers.py --build build/cpu --rounds 30 --steps 50 --batch-size 8

Writers: one process trains small_cnn in blocks of steps, each block with another set of writers, in an order that is
drawn anew each round, so that what else the machine does falls on all alike. Two figures are given of each set: the
time that passed in the writers, as a share of the block's, by the clock, which holds only what they do themselves; and
the processor time of the whole process against that of the round's block without writers (median and quartiles of the
rounds), which holds what they do to the rest. Every step is logged, and the bar is drawn on a pseudo-terminal.

Checkpoints: steps of resnet18 with SGD and momentum and with Adam, a checkpoint behind every eighth. A step with one is
compared with the median of the other steps; what the copy alone takes is measured inside.
"""

import json
import os
import pty
import statistics
import subprocess
import tempfile
import threading
from pathlib import Path

from command_line import Parser, complain, program, run, whole_number

BUILD = "cmake --preset cpu && cmake --build --preset cpu --target writer_costs"


def parse_arguments():
    parser = Parser(__doc__)
    parser.add_argument("--build", default="build/cpu", help="folder of the build (default build/cpu)")
    parser.add_argument("--rounds", type=whole_number(2), default=30, help="blocks with each set of writers (default 30)")
    parser.add_argument("--steps", type=whole_number(1), default=50, help="steps of a block (default 50)")
    parser.add_argument("--batch-size", type=whole_number(1), default=8, help="images of a step (default 8)")
    parser.add_argument("--checkpoints", type=whole_number(2), default=8, help="of each optimizer (default 8)")
    parser.add_argument("--threads", type=whole_number(1, 4096), default=2, help="of the process (default 2)")
    return parser.parse_args()


def drain(descriptor):
    """Reads a terminal's other end until it is closed."""
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:
        pass


def records_of(command, threads):
    """What the program prints in JSON. Its standard error is a terminal, which is read and forgotten."""
    terminal, other_end = pty.openpty()
    reader = threading.Thread(target=drain, args=(terminal,), daemon=True)
    reader.start()
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "TERM": "xterm"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=other_end, text=True, env=environment)
    os.close(other_end)
    if done.returncode != 0:
        complain(f"{command[0]} ended with {done.returncode}", code=1)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def report_writers(blocks):
    by_name = {}
    for block in blocks:
        by_name.setdefault(block["writers"], []).append(block)
    plain = by_name.pop("none")
    step = statistics.median(block["wall_ms"] / block["steps"] for block in plain)
    processor = statistics.median(block["processor_ms"] / block["steps"] for block in plain)
    print(f"a step without writers: {step:.2f} ms by the clock, {processor:.2f} ms of processor time (medians)")
    print(f"{'writers':<26}{'us a step':>11}{'share of it':>13}{'processor time against none, quartiles':>42}")
    for name, with_them in by_name.items():
        writing = statistics.median(1e3 * block["writing_ms"] / block["steps"] for block in with_them)
        share = statistics.median(100 * block["writing_ms"] / block["wall_ms"] for block in with_them)
        changes = [100 * (block["processor_ms"] / none["processor_ms"] - 1) for block, none in zip(with_them, plain)]
        low, middle, high = quartiles(changes)
        print(f"{name:<26}{writing:>11.1f}{share:>11.3f} %{middle:>+18.2f} % ({low:+.2f} to {high:+.2f})")


def report_checkpoints(optimizer, steps, copies):
    plain = [step["step_ms"] for step in steps if not step["checkpoint"]]
    others = statistics.median(plain)
    writing = [step for step in steps if step["checkpoint"]]
    after = {step["step"] + 1 for step in writing}
    delays = [step["delay_ms"] for step in writing]
    following = [step["step_ms"] - others for step in steps if step["step"] in after]
    size = copies[0]["bytes"] / 2**20
    print(f"resnet18, {optimizer}, {size:.0f} MiB; other steps {others:.0f} ms (median)")
    print(f"  delay of the step: first {delays[0]:.1f} ms, later ones median {statistics.median(delays[1:]):.1f} ms, "
          f"most {max(delays[1:]):.1f} ms")
    print(f"  the step behind it, with the writing beside it: median {statistics.median(following):+.1f} ms")
    for name, key in (("tensor by tensor into new memory", "ms"), ("as it is done, into memory that is kept", "kept_ms")):
        times = [copy[key] for copy in copies]
        print(f"  copy {name}: first {times[0]:.1f} ms, later ones median {statistics.median(times[1:]):.1f} ms")


def main():
    arguments = parse_arguments()
    costs = str(Path(arguments.build) / "tests/writer_costs")
    program(costs, f"build it: {BUILD}")
    with tempfile.TemporaryDirectory() as folder:
        numbers = [str(number) for number in (arguments.rounds, arguments.steps, arguments.batch_size)]
        report_writers(records_of([costs, "writers", folder, *numbers], arguments.threads))
        for optimizer in ("sgd", "adam"):
            place = str(Path(folder) / optimizer)
            count = str(arguments.checkpoints)
            steps = records_of([costs, "checkpoints", place, optimizer, count], arguments.threads)
            copies = records_of([costs, "copies", optimizer, count], arguments.threads)
            report_checkpoints(optimizer, steps, copies)


if __name__ == "__main__":
    run(main)
