#!/usr/bin/python3
"""Times whole training steps of two builds of train_bench, in turn: before and after a change, or native and portable.

  scripts/compare_builds.py build/cpu build/portable-shared
  scripts/compare_builds.py ../before/build/cpu build/cpu --models resnet18 --batch-size 32 --threads 1

A line has, of each build, the median seconds of a step and the fastest tenth of them, and the second build's time over
the first's by both measures. The fastest tenth is the steadier one on a machine with other work. The last line is the
geometric mean.
"""

import math
import statistics
import sys
from pathlib import Path

from command_line import Parser, program, run, whole_number
from turns import Party, environment_for

BUILD = "cmake --preset cpu && cmake --build --preset cpu --target train_bench"


def parse_arguments():
    parser = Parser(__doc__)
    parser.add_argument("builds", nargs=2, metavar="BUILD", help="folder of a build")
    parser.add_argument("--models", default="small_cnn,resnet18,vgg_lite", help="separated by commas")
    parser.add_argument("--batch-size", type=whole_number(1), default=32, help="images of a step (default 32)")
    parser.add_argument("--threads", type=whole_number(1, 4096), default=1, help="of each process (default 1)")
    parser.add_argument("--rounds", type=whole_number(1), default=15, help="turns of each build (default 15)")
    parser.add_argument("--steps", type=whole_number(1), default=4, help="steps of a turn (default 4)")
    return parser.parse_args()


def fastest_tenth(seconds):
    return statistics.fmean(sorted(seconds)[: max(1, len(seconds) // 10)])


def compare(benches, model, arguments):
    """Prints the line of one model; the ratios by the median and by the fastest tenth."""
    options = ["--serve", "--model", model, "--batch-size", str(arguments.batch_size), "--threads", str(arguments.threads)]
    parties = [Party([bench, *options], environment_for(arguments.threads)) for bench in benches]
    for party in parties:
        party.request(f"step {arguments.steps}")  # the first ones allocate and choose
    seconds = [[], []]
    for turn in range(arguments.rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            seconds[which] += parties[which].request(f"step {arguments.steps}")["seconds"]
    for party in parties:
        party.quit()
    by_median = [1e3 * statistics.median(times) for times in seconds]
    by_tenth = [1e3 * fastest_tenth(times) for times in seconds]
    ratios = by_median[1] / by_median[0], by_tenth[1] / by_tenth[0]
    print(f"{model:<14}" + "".join(f"{a:10.2f} ms {b:10.2f} ms" for a, b in zip(by_median, by_tenth)) +
          f"{ratios[0]:9.3f} {ratios[1]:9.3f}", flush=True)
    return ratios


def main():
    arguments = parse_arguments()
    benches = [str(Path(build) / "apps/train_bench") for build in arguments.builds]
    for bench in benches:
        program(bench, BUILD)
    print(f"batches of {arguments.batch_size}, {arguments.threads} thread(s); median and fastest tenth of A, of B, B over A by each")
    ratios = [compare(benches, model, arguments) for model in arguments.models.split(",")]
    means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios)]
    print(f"geometric means {means[0]:.3f} {means[1]:.3f}")
    return 0


if __name__ == "__main__":
    run(main)
