#!/usr/bin/env python3
"""Trains a recipe with several seeds, and says how good and how fast it is.

  scripts/speed_run.sh --runs 4
  scripts/speed_run.sh --recipe airbench94 --runs 6 --out runs/narrow -- --width 0.5 --data datasets/cifar10

Each run has a folder of its own, OUT/seed-N. One that is complete is not repeated, and one that was interrupted goes on
from its last checkpoint, so that the same command may be given again, or with more runs. What stands behind `--` goes
to cifar_train; a folder OUT is for one set of these options.

Time is told twice. `seconds` are training, with its data and the wait for other ranks, and the evaluation behind the
last step; `published_seconds` have the initialisation by whitening as well, which the published rule of such records
counts (arXiv 2404.00498). Loading data, evaluations of earlier epochs and writing files are left out of both, and so is
a rehearsal of three steps, which are taken back (--rehearsal-steps).
The test is one-sided: how likely is a mean like this or above, where the true mean accuracy is the bound (Student's t).
"""

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from command_line import Parser, call, complain, folder_name, make_folder, positive_number, program, run, whole_number, write_json, write_text
from svg import COLOURS, FAINT, GRID, INK, path, svg, text

ROOT = Path(__file__).resolve().parent.parent
STOPPED = (129, 130, 143)  # exit codes of cifar_train behind SIGHUP, SIGINT and SIGTERM
OF_EACH_RUN = ("seed", "run-dir", "resume")  # settings that runs of a folder need not share
OF_TIME = {"threads", "cuda-graph", "resident-data", "rehearsal-steps"}  # without effect on accuracies, but on seconds
# What this script gives cifar_train, and what would keep that from training.
OWN_OPTIONS = ("--seed", "--run-dir", "--no-run-dir", "--resume", "--print-config", "--help", "-h", "--version")


def probability_above(t, freedom):
    """Of Student's t distribution: that a value is `t` or above; by Simpson's rule over its angle."""
    angle, pieces = math.atan2(t, math.sqrt(freedom)), 2000

    def integral(begin, end):
        step = (end - begin) / pieces
        values = [math.cos(begin + i * step) ** (freedom - 1) for i in range(pieces + 1)]
        return step / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))

    return integral(angle, math.pi / 2) / integral(-math.pi / 2, math.pi / 2)


def summary(accuracies, seconds, bound, published=()):
    """Means over the runs; what takes two of them is None where there is one, and what a run does not tell where one does not."""
    count, mean = len(accuracies), statistics.fmean(accuracies)
    deviation = statistics.stdev(accuracies) if count > 1 else None
    error = deviation / math.sqrt(count) if count > 1 else None
    above = probability_above((mean - bound) / error, count - 1) if error else None
    return {
        "runs": count,
        "accuracy_mean": mean,
        "accuracy_standard_deviation": deviation,
        "accuracy_standard_error": error,
        "bound": bound,
        "p_value": above,
        "seconds_mean": statistics.fmean(seconds),
        "seconds_median": statistics.median(seconds),
        "seconds_standard_deviation": statistics.stdev(seconds) if count > 1 else None,
        "published_seconds_mean": statistics.fmean(published) if published and None not in published else None,
        "published_seconds_median": statistics.median(published) if published and None not in published else None,
    }


def records_of(log):
    """The records of a run's log, those before it was gone on with as well; none where there is no log. What is left of a line that a run was
    killed in is passed over: behind it there is nothing, or the record of a run that went on."""
    if not log.exists():
        return []
    records, torn = [], None
    for number, line in enumerate(log.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except ValueError:
            if line.startswith('{"record":'):
                torn = torn or number
                continue
            complain(f"{log}:{torn or number}: no JSON: the log is damaged; remove {log.parent} to repeat this run")
        if not isinstance(record, dict) or "record" not in record:
            complain(f"{log}:{number}: no record of a run: the log is damaged; remove {log.parent} to repeat this run")
        if record["record"] == "run" and not isinstance(record.get("config"), dict):
            complain(f"{log}:{number}: a run without its settings: the log is damaged; remove {log.parent} to repeat this run")
        if torn is not None and record["record"] != "run":
            complain(f"{log}:{torn}: no JSON: the log is damaged; remove {log.parent} to repeat this run")
        torn = None
        records.append(record)
    return records


def figures_of(folder):
    """Of a run that came to its end: its accuracy in percent, seconds, and settings; else None."""
    records = records_of(folder / "log.jsonl")
    try:
        return figures_in(records, folder)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        complain(f"{folder / 'log.jsonl'}: its records lack what a run writes: the log is damaged; remove {folder} to repeat this run")


def figures_in(records, folder):
    """Of these records."""
    results = [record for record in records if record["record"] == "result"]
    if not results or "test_accuracy" not in results[-1]:
        return None
    if results[-1].get("test_loss", 0.0) is None or not math.isfinite(results[-1]["test_accuracy"]):
        complain(f"{folder}: the run failed: its loss is not a finite number: name another --out for other options, or remove that folder", code=1)
    epochs = {record["epoch"]: record for record in records if record["record"] == "epoch"}
    if not epochs and results[-1].get("epoch", 0) == 0:
        complain(f"{folder}: the run has no epoch, and so no time: leave --epochs 0 out")
    missing = [number for number in range(1, max([*epochs, results[-1].get("epoch", 0)]) + 1) if number not in epochs]
    if missing:
        complain(f"{folder}: its log lacks epoch {missing[0]}, and so its time: remove that folder to repeat this run")
    seconds = sum(e["seconds"] - e["time"]["evaluation"] - e["time"]["writing"] for e in epochs.values())
    seconds += epochs[max(epochs)]["time"]["evaluation"]
    runs = [record for record in records if record["record"] == "run"]
    whitening = runs[0].get("whitening_seconds")  # what goes on from a checkpoint makes them again, to no end
    return {
        "seed": runs[-1]["config"]["seed"],
        "accuracy": results[-1]["test_accuracy"],
        "seconds": seconds,
        "whitening_seconds": whitening,
        "published_seconds": None if whitening is None else seconds + whitening,
        "loading_seconds": runs[0].get("loading_seconds"),
        "interrupted": len(runs) > 1,
        "config": runs[-1]["config"],
        "versions": runs[-1]["versions"],
        "host": runs[-1]["host"],
        "device": runs[-1]["device"],
    }


def picture(title, figures, totals):
    """A dot for each run, and the mean with its standard error."""
    values = [figure["accuracy"] for figure in figures]
    low, high = min([*values, totals["bound"]]), max([*values, totals["bound"]])
    margin = max(0.1 * (high - low), 0.05)
    low, high = low - margin, high + margin
    left, width, top, row = 70, 480, 56, 22
    height = top + row * len(values) + 60

    def x_of(value):
        return left + width * (value - low) / (high - low)

    parts = [text(14, 26, title, 13.5, INK, weight=600)]
    parts.append(path([(x_of(totals["bound"]), top - 14), (x_of(totals["bound"]), height - 44)], COLOURS[1], 1.5))
    parts.append(text(x_of(totals["bound"]), top - 18, f"bound {totals['bound']:g} %", colour=COLOURS[1], anchor="middle"))
    for i, figure in enumerate(figures):
        y = top + row * i + row / 2
        parts.append(path([(left, y), (left + width, y)], GRID, 1))
        parts.append(text(left - 8, y + 4, f"seed {figure['seed']}", anchor="end"))
        parts.append(f'<circle cx="{x_of(figure["accuracy"]):.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[0]}"/>')
        parts.append(text(x_of(figure["accuracy"]) + 8, y + 4, f"{figure['accuracy']:.2f}", colour=INK))
    y, mean, error = height - 38, totals["accuracy_mean"], totals["accuracy_standard_error"] or 0.0
    parts.append(path([(x_of(mean - error), y), (x_of(mean + error), y)], COLOURS[0], 5))
    spread = f" ± {error:.3f} (standard error)" if error else ""
    parts.append(text(left, height - 14, f"mean {mean:.3f} %{spread}, {totals['seconds_mean']:.2f} s a run", 11.5, FAINT))
    return svg(left + width + 40, height, title, parts)


def options_behind(rest, own=OWN_OPTIONS):
    """What stands behind `--` on the command line; ends this script where something else stands there, or an option of these."""
    if rest and rest[0] != "--":
        complain(f"'{rest[0]}': write -- in front of options for cifar_train")
    for word in rest[1:]:
        name = word.split("=")[0]
        if name in own:
            complain(f"-- {name}: this script decides that itself: leave it out behind --")
    return rest[1:]


def settings_of(command):
    """What cifar_train would run with, by name. It says itself what is wrong with its options, and this script ends."""
    asked = subprocess.run([command[0], "--print-config", *command[1:]], capture_output=True, text=True, errors="replace", check=False)
    if asked.returncode != 0:
        print(asked.stderr, end="", file=sys.stderr)
        sys.exit(2)
    settings = {}
    for line in asked.stdout.splitlines():  # of TOML, which Python has known since 3.11 alone; values are written as in JSON
        name, equals, value = line.partition(" = ")
        if not equals or name.startswith("#"):
            continue
        try:
            settings[name] = json.loads(value)
        except ValueError:
            complain(f"{command[0]} --print-config: '{line}' is no setting of cifar_train: name another by --program")
    return settings


def check_settings(folder, settings):
    """Ends this script where a run that is there, or a part of it, had other settings, as where a file of --config has changed since."""
    for record in records_of(folder / "log.jsonl"):
        if record["record"] != "run":
            continue
        had, other = record["config"], {*OF_EACH_RUN, *record.get("without_effect", ())} - OF_TIME
        for name in [name for name in had if name in settings and name not in other and had[name] != settings[name]]:
            complain(f"{folder} was trained with --{name} {had[name]}, which is {settings[name]} now: name another --out, or remove that folder")


def train_once(command, seed, folder):
    """Runs cifar_train, or goes on with a run that was interrupted."""
    command = [*command, "--seed", str(seed), "--run-dir", str(folder), "--resume", "auto"]
    code = call(command)
    if code in STOPPED:
        complain(f"seed {seed} was stopped: the same command goes on with it", code=code)
    if code == 2:
        sys.exit(2)  # bad input, and cifar_train has said which
    if code > 128:
        complain(f"seed {seed} was ended by signal {code - 128}: the same command goes on with it", code=1)
    if code != 0:
        complain(f"seed {seed} failed: {' '.join(command)}", code=1)
    figures = figures_of(folder)
    if figures is None:
        complain(f"{folder}: the run has no test accuracy", code=1)
    return figures


def claim(file, options):
    """A folder is for one set of options: what it has of others must not be told as of these. One without a run is free."""
    if file.exists() and len(list(file.parent.iterdir())) > 1:
        try:
            before = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            complain(f"{file}: no JSON: remove {file.parent} to begin anew")
        if not isinstance(before, dict) or {name: type(value) for name, value in before.items()} != {"recipe": str, "options": list}:
            complain(f"{file}: holds something else, which this script has not written: name another --out")
        if before != options:
            complain(f"{file.parent} has runs of {before['recipe']} {' '.join(map(str, before['options']))}: name another --out for other options")
    else:
        write_json("--out", str(file), options)


def words(totals):
    told = f"accuracy {totals['accuracy_mean']:.3f} %"
    if totals["accuracy_standard_error"] is not None:
        told += f", standard deviation {totals['accuracy_standard_deviation']:.3f}, standard error {totals['accuracy_standard_error']:.3f}"
    told += f", {totals['runs']} {'run' if totals['runs'] == 1 else 'runs'}, {totals['seconds_mean']:.2f} s a run"
    if totals["published_seconds_mean"] is not None:
        told += f" and {totals['published_seconds_mean']:.2f} with the whitening"
    if totals["p_value"] is not None:
        told += f"; above {totals['bound']:g} %: p = {totals['p_value']:.3g}"
    return told


def main():
    parser = Parser(__doc__, ": options of cifar_train go behind --")
    parser.add_argument("--recipe", default="airbench94", help="default airbench94")
    parser.add_argument("--runs", type=whole_number(1, 100000), default=1, help="seeds to train (default 1)")
    parser.add_argument("--seed", type=whole_number(0), default=1, help="the first of them (default 1)")
    parser.add_argument("--bound", type=positive_number, default=94.0, help="accuracy in percent that is tested against (default 94)")
    parser.add_argument("--out", type=folder_name, help="folder of the runs (default runs/speed-RECIPE)")
    parser.add_argument("--program", default=str(ROOT / "build/cpu/apps/cifar_train"), help="path of cifar_train")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="behind --: options of cifar_train")
    arguments = parser.parse_args()
    arguments.rest = options_behind(arguments.rest)
    program(arguments.program, "build it with scripts/build.sh, or name another by --program")
    out = arguments.out or Path("runs") / f"speed-{arguments.recipe}"
    command = [arguments.program, "--recipe", arguments.recipe, "--rehearsal-steps", "3", *arguments.rest]
    settings = settings_of(command)
    make_folder("--out", out)
    claim(out / "options.json", {"recipe": arguments.recipe, "options": arguments.rest})
    folders = {seed: out / f"seed-{seed}" for seed in range(arguments.seed, arguments.seed + arguments.runs)}
    for folder in folders.values():
        check_settings(folder, settings)
    figures = []
    for seed, folder in folders.items():
        figures.append(figures_of(folder) or train_once(command, seed, folder))
        accuracies, seconds, published = ([f[name] for f in figures] for name in ("accuracy", "seconds", "published_seconds"))
        totals = summary(accuracies, seconds, arguments.bound, published)
        print(f"seed {seed}: {figures[-1]['accuracy']:.2f} % in {figures[-1]['seconds']:.2f} s; {words(totals)}", flush=True)
    places = sorted({f"{f['device']} of {f['host']}" for f in figures})
    if len(places) > 1:
        print(f"note: runs are of {', '.join(places)}: seconds are of all of these together", file=sys.stderr)
    result = {"recipe": arguments.recipe, **totals, "each": figures}
    write_json("--out", str(out / "speed-run.json"), result)
    title = f"{arguments.recipe}: test accuracy of {len(figures)} {'run' if len(figures) == 1 else 'runs'}"
    write_text("--out", str(out / "speed-run.svg"), picture(title, figures, totals))
    print(f"  figures  {out}/speed-run.json\n  picture  {out}/speed-run.svg")


if __name__ == "__main__":
    run(main)
