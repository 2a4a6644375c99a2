#!/usr/bin/env python3
"""Hashes of what short trainings give, bit for bit: to show that a change of the code changes no result.

    scripts/training_hashes.py BUILD [--device cpu|cuda] [--steps N] [--batch N] [--only TEXT] [--compare FILE]

Each line is a SHA-256 and the run's name: the loss of every step and the weights at the end (with them batch norm's
statistics), which hold the bits of every output and gradient before. Runs are each network, in fp32 and fp16, on 1 and
2 ranks, on synthetic images. BUILD is a build folder (build/cpu, or build/simulated with --device cuda). With --compare, lines are also
held against those of FILE. Exit code 1 if a line differs or is missing there, or a run fails; 2 for wrong arguments.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import command_line

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "apps"))
from run_case import environment, mpirun  # noqa: E402

# The options that make one code path or another run, beside the network's own.
NETWORKS = {
    "mnist_cnn": ["--model", "mnist_cnn", "--layers", "3"],
    "small_cnn": ["--model", "small_cnn", "--augment", "crop,flip", "--grad-accumulation", "2"],
    "vgg_lite": ["--model", "vgg_lite", "--dropout", "0.3", "--clip-norm", "1", "--optimizer", "adamw"],
    "resnet9": ["--model", "resnet9"],
    "resnet18": ["--model", "resnet18", "--schedule", "cosine", "--label-smoothing", "0.1", "--nesterov"],
}


# Own convolutions, whatever library would be chosen.
OWN_KERNELS = {"cpu": "direct", "cuda": "fused"}


def hash_of(command, folder):
    """SHA-256 of a training's losses and weights."""
    log, weights = folder / "log.jsonl", folder / "weights.safetensors"
    for file in (log, weights):
        file.unlink(missing_ok=True)
    done = subprocess.run(command + ["--log", log, "--log-every", "1", "--save-weights", weights], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment())
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}")
    digest = hashlib.sha256(weights.read_bytes())
    for line in log.read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "step":
            digest.update(repr((record["loss"], record["skipped_steps"])).encode())
    return digest.hexdigest()


def runs(arguments):
    """Name and command of each."""
    program = pathlib.Path(arguments.build).resolve() / "apps" / "cifar_train"
    images = arguments.steps * arguments.batch
    for network, options in NETWORKS.items():
        if network == "resnet9":
            options = [*options, "--conv-impl", OWN_KERNELS[arguments.device]]
        for precision in ("fp32", "fp16"):
            for ranks in (1, 2):
                name = f"{arguments.device} {network} {precision} {ranks}"
                start = [] if ranks == 1 else mpirun() + ["-np", str(ranks)]
                yield name, start + [
                    program, "--no-run-dir", "--dataset", "synthetic", "--limit-train", str(images), "--limit-test", "8", "--epochs", "1",
                    "--global-batch-size", str(arguments.batch), "--threads", "1", "--precision", precision,
                    "--device", arguments.device, "--progress", "none", *options]


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("build")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--steps", type=command_line.whole_number(1), default=50)
    parser.add_argument("--batch", type=command_line.whole_number(4), default=16, help="images per step, over all ranks")
    parser.add_argument("--only", default="", metavar="TEXT", help="runs whose name holds TEXT")
    parser.add_argument("--compare", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.batch % 4 != 0:
        command_line.complain(f"--batch {arguments.batch}: must be a multiple of 4")  # 2 ranks, 2 micro-batches
    command_line.program(f"{arguments.build}/apps/cifar_train", "build it first (scripts/build.sh)")
    chosen = [(name, command) for name, command in runs(arguments) if arguments.only in name]
    if not chosen:
        command_line.complain(f"--only {arguments.only}: no run holds this in its name")
    expected = {}
    if arguments.compare:
        try:
            lines = arguments.compare.read_text().splitlines()
            expected = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        except (OSError, ValueError) as error:
            command_line.complain(f"--compare {arguments.compare}: {error}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, command in chosen:
            try:
                digest = hash_of(command, pathlib.Path(folder))
            except RuntimeError as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed += 1
                continue
            print(f"{digest}  {name}", flush=True)
            if arguments.compare and expected.get(name) != digest:
                print(f"{name}: {arguments.compare} has {expected.get(name, 'no such line')}", file=sys.stderr)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    command_line.run(main)
