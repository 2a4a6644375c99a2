#!/usr/bin/env python3
"""Trains airbench94 with its ideas one after another, and says what each of them gains.

  scripts/speed_run_ladder.py --runs 4 --out runs/ladder -- --width 0.5 --data datasets/cifar10
  scripts/speed_run_ladder.py --list

The first rung is the network with PyTorch's initialisation, one learning rate, random flips and a test by one view, in
as many steps; each further rung has one idea more, and the last is the recipe. The test by six views is of the weights
of the rung below. Each run has a folder of its own, OUT/RUNG/seed-N; one that is complete is not repeated, and one that
was interrupted goes on from its last checkpoint. Seeds are done one after another, each on all rungs. What stands behind
`--` goes to cifar_train; a folder OUT is for one set of these options. Leaves OUT/ladder.json and OUT/ladder.svg.
"""

import argparse
import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from command_line import Parser, call, complain, folder_name, make_folder, program, run, whole_number, write_json, write_text
from speed_run import OWN_OPTIONS, STOPPED, check_settings, claim, figures_of, options_behind, records_of, settings_of, train_once
from svg import COLOURS, FAINT, GRID, INK, path, svg, text

ROOT = Path(__file__).resolve().parent.parent
RECIPE = "airbench94"


@dataclass
class Idea:
    """What a rung adds to the one below it."""

    name: str  # of the rung, and of its folder
    title: str
    without: list  # options of cifar_train that leave it out


# The bias behind the whitening is frozen in the recipe, which is a part of that idea. A group that changes nothing stands
# for none.
IDEAS = [
    Idea("whitening", "the first layer whitens patches", ["--no-whitening", "--param-group", "0.bias:lr-factor=1"]),
    Idea("identity", "convolutions begin as the identity", ["--no-identity-filters"]),
    Idea("bias-rate", "biases of batch norm learn 64 times as fast", ["--param-group", "0.bias:freeze-step=144"]),
    Idea("lookahead", "Lookahead", ["--lookahead", "0"]),
    Idea("views", "the test is by six views", ["--tta", "none"]),
    Idea("alternating-flip", "images are mirrored in every second epoch", ["--augment", "crop-reflect=2,flip"]),
]
PLAIN = Idea("plain", "none of these", [])
BY_VIEWS = "views"  # of the weights of the rung below
EVALUATION = ["--epochs", "0", "--steps", "0", "--no-run-dir"]
OF_RUN_DIRECTORIES = {"--checkpoint-every", "--histograms", "--keep", "--log-every", "--profile"}  # which that evaluation has not


def rungs():
    """(idea, options) from the plain network to the recipe."""
    result = []
    for number, idea in enumerate([PLAIN, *IDEAS]):
        options = {}
        for left_out in reversed(IDEAS[number:]):  # the lowest of those that set the same option
            for name, *values in split_options(left_out.without):
                options[name] = values
        result.append((idea, [word for name, values in options.items() for word in (name, *values)]))
    return result


def split_options(words):
    options = []
    for word in words:
        if word.startswith("--"):
            options.append([word])
        else:
            options[-1].append(word)
    return options


def set_by_rungs():
    """Options that tell rungs apart, with and without their no-."""
    names = [word for idea in IDEAS for word in idea.without if word.startswith("--")]
    return {*names, *(name.replace("--no-", "--") for name in names)}


def command_of(arguments, idea, options):
    """cifar_train for a rung, but what is of one seed."""
    command = [arguments.program, "--recipe", RECIPE]
    if idea.name == BY_VIEWS:
        return [*command, *arguments.rest, *EVALUATION]
    return [*command, "--rehearsal-steps", "3", *options, *arguments.rest]


def accuracy_by_views(command, trained, folder):
    """Of the weights that a run has left."""
    log, weights = folder / "log.jsonl", weights_of(trained)
    results = [record for record in records_of(log) if record["record"] == "result"]
    is_older = bool(results) and weights.exists() and log.stat().st_mtime < weights.stat().st_mtime  # that run was repeated
    if not results or is_older:
        if not weights.exists():
            complain(f"{weights} is not there, though its run came to an end: remove {trained} to repeat that")
        folder.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        command = [*command, "--load-weights", str(weights), "--log", str(log)]
        code = call(command)
        if code in STOPPED:
            complain(f"{folder} was stopped: the same command goes on with it", code=code)
        if code != 0:
            complain(f"{folder} failed: {' '.join(command)}", code=1)
        results = [record for record in records_of(log) if record["record"] == "result"]
    return results[-1]["test_accuracy"]


def weights_of(folder):
    return folder / "weights.safetensors"


def climb(arguments, seed, wanted):
    """The accuracy of each rung, and seconds of training, by name."""
    found = {}
    ladder = rungs()
    for number, (idea, options) in enumerate(ladder):
        if idea.name not in wanted:
            continue
        folder, command = arguments.out / idea.name / f"seed-{seed}", command_of(arguments, idea, options)
        if idea.name == BY_VIEWS:
            below = arguments.out / ladder[number - 1][0].name / f"seed-{seed}"
            found[idea.name] = {"seed": seed, "accuracy": accuracy_by_views(command, below, folder)}
        else:
            figures = figures_of(folder) or train_once([*command, "--save-weights", str(weights_of(folder))], seed, folder)
            found[idea.name] = {name: figures[name] for name in ("seed", "accuracy", "seconds")}
        print(f"seed {seed}, {idea.name}: {found[idea.name]['accuracy']:.2f} %", flush=True)
    return found


def totals_of(each):
    """The mean over seeds, and its standard error where there are several."""
    values = [figures["accuracy"] for figures in each]
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return {
        "accuracy_mean": statistics.fmean(values),
        "accuracy_standard_deviation": deviation,
        "accuracy_standard_error": deviation / math.sqrt(len(values)) if deviation is not None else None,
    }


def summary(by_rung):
    """A record for each rung that was climbed, from the lowest. A gain is over the rung below, seed by seed: where that was left
    out, there is none."""
    result, below = [], None
    for idea, options in rungs():
        each = by_rung.get(idea.name)
        if each:
            record = {"rung": idea.name, "adds": idea.title, "options": options, **totals_of(each), "each": each}
            if below:
                gain = totals_of([{"accuracy": one["accuracy"] - other["accuracy"]} for one, other in zip(each, below)])
                record |= {"gain": gain["accuracy_mean"], "gain_standard_error": gain["accuracy_standard_error"]}
            result.append(record)
        below = each
    return result


def table(records):
    lines = [f"{'rung':18}{'seeds':>6}{'accuracy':>11}{'std. error':>12}{'gain':>8}"]
    for r in records:
        error = "" if r["accuracy_standard_error"] is None else f"{r['accuracy_standard_error']:.2f}"
        gain = f"{r['gain']:+.2f}" if "gain" in r else ""
        lines.append(f"{r['rung']:18}{len(r['each']):>6}{r['accuracy_mean']:>9.2f} %{error:>12}{gain:>8}")
    return "\n".join(lines)


def picture(records):
    """A row for each rung: a dot for each seed, and a bar of the mean and its standard error."""
    values = [figures["accuracy"] for r in records for figures in r["each"]]
    margin = max(0.08 * (max(values) - min(values)), 0.05)
    low, high = min(values) - margin, max(values) + margin
    left, width, top, row = 290, 460, 50, 34
    height = top + row * len(records) + 46

    def x_of(value):
        return left + width * (value - low) / (high - low)

    title = f"{RECIPE}, idea by idea: test accuracy"
    parts = [text(14, 26, title, 13.5, INK, weight=600)]
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if (high - low) / s <= 8)
    for tick in range(math.ceil(low / step), math.floor(high / step) + 1):
        x = x_of(tick * step)
        parts.append(path([(x, top - 8), (x, height - 40)], GRID, 1))
        parts.append(text(x, height - 24, f"{tick * step:g} %", 11, FAINT, anchor="middle"))
    for number, r in enumerate(records):
        y = top + row * number + row / 2
        parts.append(text(left - 12, y + 4, ("+ " if "gain" in r else "") + (r["adds"] if r["rung"] != PLAIN.name else "plain"), 11.5, INK, anchor="end"))
        mean, error = r["accuracy_mean"], r["accuracy_standard_error"] or 0.0
        parts.append(path([(x_of(mean - error), y), (x_of(mean + error), y)], COLOURS[0], 6))
        for figures in r["each"]:
            parts.append(f'<circle cx="{x_of(figures["accuracy"]):.1f}" cy="{y:.1f}" r="3" fill="none" stroke="{INK}"/>')
        told = f"{mean:.2f}" + (f" ({r['gain']:+.2f})" if "gain" in r else "")
        parts.append(text(left + width + 12, y + 4, told, 11.5, INK))
    seeds = max(len(r["each"]) for r in records)
    parts.append(text(14, height - 6, f"circles: {seeds} {'seed' if seeds == 1 else 'seeds'}; bars: the mean and its standard error", 11, FAINT))
    return svg(left + width + 120, height, title, parts)


def main():
    names = [idea.name for idea, _ in rungs()]
    parser = Parser(__doc__, ": options of cifar_train go behind --")
    parser.add_argument("--runs", type=whole_number(1, 100000), default=4, help="seeds to train (default 4)")
    parser.add_argument("--seed", type=whole_number(0), default=1, help="the first of them (default 1)")
    parser.add_argument("--rungs", help=f"only these, joined by commas: {', '.join(names)}")
    parser.add_argument("--list", action="store_true", help="print the rungs and their options, and train nothing")
    parser.add_argument("--out", type=folder_name, default=Path("runs/ladder"), help="folder of the runs (default runs/ladder)")
    parser.add_argument("--program", default=str(ROOT / "build/cpu/apps/cifar_train"), help="path of cifar_train")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="behind --: options of cifar_train")
    arguments = parser.parse_args()
    arguments.rest = options_behind(arguments.rest, {*OWN_OPTIONS, *OF_RUN_DIRECTORIES, "--save-weights", "--load-weights", *set_by_rungs()})
    wanted = arguments.rungs.split(",") if arguments.rungs else names
    for name in wanted:
        if name not in names:
            complain(f"--rungs: '{name}' is none of {', '.join(names)}")
    if BY_VIEWS in wanted and names[names.index(BY_VIEWS) - 1] not in wanted:
        complain(f"--rungs: {BY_VIEWS} is of the weights of {names[names.index(BY_VIEWS) - 1]}: name that, too")
    if arguments.list:
        for idea, options in rungs():
            print(f"{idea.name:18}{idea.title}\n{'':18}{' '.join(options)}")
        return
    program(arguments.program, "build it with scripts/build.sh, or name another by --program")
    settings = {idea.name: settings_of(command_of(arguments, idea, options)) for idea, options in rungs() if idea.name in wanted}
    make_folder("--out", arguments.out)
    claim(arguments.out / "options.json", {"recipe": RECIPE, "options": arguments.rest})
    by_rung, seeds = {}, range(arguments.seed, arguments.seed + arguments.runs)
    for name in settings:
        for seed in seeds:
            check_settings(arguments.out / name / f"seed-{seed}", settings[name])
    for seed in seeds:
        for name, figures in climb(arguments, seed, wanted).items():
            by_rung.setdefault(name, []).append(figures)
        records = summary(by_rung)
        write_json("--out", str(arguments.out / "ladder.json"), {"recipe": RECIPE, "options": arguments.rest, "rungs": records})
        write_text("--out", str(arguments.out / "ladder.svg"), picture(records))
    print(table(records))
    print(f"  figures  {arguments.out}/ladder.json\n  picture  {arguments.out}/ladder.svg")


if __name__ == "__main__":
    run(main)
