#!/usr/bin/env python3
"""Steps of train_bench that are launches of a CUDA graph have the bits of others, and are told.

    check_graph_bench.py TRAIN_BENCH
"""

import json
import subprocess
import sys

NET = "--device cuda --model mnist_cnn --layers 2 --in-channels 1 --image-size 8 --batch-size 4 --threads 1".split()


def bench(program, options, text=""):
    done = subprocess.run([program, *NET, *options], input=text, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(options)}: exit code {done.returncode}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    program, failures = sys.argv[1], []

    def check(condition, what):
        if not condition:
            failures.append(what)
            print(f"FAILED: {what}")

    for options in (["--precision", "fp32"], ["--precision", "fp16", "--optimizer", "sgd"]):
        warmup, steps = 4, 3  # two before the recording, and some that a loss scale may skip
        (plain,) = bench(program, [*options, "--warmup", str(warmup), "--steps", str(steps)])
        (graph,) = bench(program, [*options, "--warmup", str(warmup), "--steps", str(steps), "--cuda-graph", "on"])
        check((plain["cuda_graph"], plain["graph_launches"]) == ("off", 0), f"{options}: {plain}")
        check((graph["cuda_graph"], graph["graph_launches"]) == ("on", steps), f"{options}: {graph}")
        check(plain["loss"] == graph["loss"], f"{options}: loss {plain['loss']}, by launches {graph['loss']}")
    _, *answers = bench(program, ["--serve", "--cuda-graph", "auto"], "step 3\nstep 2\nquit\n")
    check([answer["graph_launches"] for answer in answers] == [1, 2], f"--serve: {answers}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
