#!/usr/bin/python3
"""Measures what log, events, progress bar, histograms and checkpoints cost a training run on this machine.

  scripts/measure_writers.py
  scripts/measure_writers.py --part writers --rounds 30 --steps 50 --batch-size 8
  scripts/measure_writers.py --part adam --every 1 --checkpoint-steps 60

Writers: one process trains small_cnn in blocks of steps, each block with another set of writers, in an order that is
drawn anew each round, so that what else the machine does falls on all alike. Two figures are given of each set: the
time that passed in the writers, as a share of the block's, by the clock, which holds only what they do themselves; and
the processor time of the whole process against that of the round's block without writers (median and quartiles of the
rounds), which holds what they do to the rest. Every step is logged, and the bar is drawn on a pseudo-terminal.

Checkpoints: steps of resnet18 with SGD and momentum and with Adam, a checkpoint due behind every --every-th. What is
done of checkpoints behind a step is the delay of that step; one of 1 ms or more has copied the state (which takes longer
than that, and all else much less) or waited for something. What the copy alone takes is measured inside.
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
    parser.add_argument("--every", type=whole_number(1), default=8, help="steps from checkpoint to checkpoint (default 8)")
    parser.add_argument("--checkpoint-steps", type=whole_number(8), default=64, help="of resnet18 (default 64)")
    parser.add_argument("--part", choices=("all", "writers", "sgd", "adam"), default="all", help="what to measure (default all)")
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


def first_and_later(times):
    later = times[1:]
    return f"first {times[0]:.1f} ms" + (
        f", later ones median {statistics.median(later):.1f} ms, most {max(later):.1f} ms" if later else "")


def report_checkpoints(optimizer, steps, copies):
    writing = [step for step in steps if step["delay_ms"] >= 1]
    if not writing:
        complain("no checkpoint was begun: take more --checkpoint-steps, or a smaller --every", code=1)
    after = {step["step"] + 1 for step in writing}
    others = statistics.median(step["step_ms"] for step in steps if step["step"] not in after)
    delays = [step["delay_ms"] for step in writing]
    following = [step["step_ms"] - others for step in steps if step["step"] in after]
    size = copies[0]["bytes"] / 2**20
    print(f"resnet18, {optimizer}, {size:.0f} MiB; other steps {others:.0f} ms (median)")
    print(f"  {sum(step['due'] for step in steps)} due, {len(writing)} steps with a delay of 1 ms or more, in sum {sum(delays):.0f} ms; "
          f"all steps took {sum(step['step_ms'] + step['delay_ms'] for step in steps) / 1e3:.2f} s")
    print(f"  delay of the step: {first_and_later(delays)}")
    if following:
        print(f"  the step behind it, with the writing beside it: median {statistics.median(following):+.1f} ms")
    for name, key in (("tensor by tensor into new memory", "ms"), ("as it is done, into memory that is kept", "kept_ms")):
        times = [copy[key] for copy in copies]
        print(f"  copy {name}: {first_and_later(times)}")


def measure_checkpoints(arguments, costs, folder, optimizer):
    place = str(Path(folder) / optimizer)
    every, count = str(arguments.every), str(arguments.checkpoint_steps)
    steps = records_of([costs, "checkpoints", place, optimizer, every, count], arguments.threads)
    copies = records_of([costs, "copies", optimizer, "8"], arguments.threads)
    report_checkpoints(optimizer, steps, copies)


def main():
    arguments = parse_arguments()
    costs = str(Path(arguments.build) / "tests/writer_costs")
    program(costs, f"build it: {BUILD}")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.part in ("all", "writers"):
            numbers = [str(number) for number in (arguments.rounds, arguments.steps, arguments.batch_size)]
            report_writers(records_of([costs, "writers", folder, *numbers], arguments.threads))
        for optimizer in ("sgd", "adam"):
            if arguments.part in ("all", optimizer):
                measure_checkpoints(arguments, costs, folder, optimizer)


if __name__ == "__main__":
    run(main)
