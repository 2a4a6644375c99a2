#!/usr/bin/env python3
"""One table of several conv_bench --json files: each contestant timed by a process of its own.

    for impl in warpgroup cudnn apex-like; do
      build/cuda/apps/conv_bench --device cuda --layers vgg_lite --precision fp16 --impl $impl --json $impl.json
    done
    scripts/merge_conv_bench.py warpgroup.json cudnn.json apex-like.json --json all.json

A file of a process that was ended early counts with the layers that it has; the table says so. Each process has
ceilings of its own, measured or raised by what it timed: every result keeps those that its floor comes from, and the
table names them where they differ. conv_bench --peak-flops and --peak-bandwidth give all processes the same.
"""

import json

import command_line
from command_line import complain


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except OSError as error:
        complain(f"{path}: {error.strerror}")
    except ValueError as error:
        complain(f"{path}: no JSON: {error}")
    if not isinstance(report, dict) or report.get("program") != "conv_bench" or not {"ceilings", "results"} <= set(report):
        complain(f"{path}: not written by conv_bench --json")
    try:
        table(dict(report, notes=[]))
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        complain(f"{path}: lacks what conv_bench --json writes: {type(error).__name__}: {error}")
    return report


def case_of(result):
    layer = result["layer"]
    return (layer["net"], layer["name"], layer["n"], result["dtype"])


def seconds_of(result):
    times = result["hot_seconds"] or result["cold_seconds"]
    return times["median"]


def ceilings_text(ceilings):
    return (f"{1e-12 * ceilings['flops_f32']:.4g} TFLOP/s f32, {1e-12 * ceilings['flops_half']:.4g} half, "
            f"{1e-9 * ceilings['bandwidth']:.4g} GB/s ({ceilings['source']})")


def merged(paths):
    """All reports as one, the results of each case beside each other; and notes about what is odd."""
    reports = [(path, read(path)) for path in paths]
    first = reports[0][1]
    notes, cases, seen = [], {}, {}
    one_ceiling = all(report["ceilings"] == first["ceilings"] for _, report in reports)
    if not one_ceiling:
        notes.append("ceilings differ: each share of the floor is of the ceilings of its own process")
    for path, report in reports:
        if not one_ceiling:
            notes.append(f"{path}: ceilings {ceilings_text(report['ceilings'])}")
        if not report.get("complete", False):
            notes.append(f"{path}: not complete: its process was ended early")
        for key in ("device_name", "cuda", "versions", "threads", "groups"):
            if report.get(key) != first.get(key):
                notes.append(f"{path}: {key} is {report.get(key)}, in {paths[0]} it is {first.get(key)}")
        notes += [f"{path}: wrong: {text}" for text in report.get("wrong", [])]
        notes += [f"{path}: left out: {text}" for text in report.get("skipped", [])]
        for result in report["results"]:
            key = (*case_of(result), result["pass"], result["impl"])
            if key in seen:
                complain(f"{path}: {result['impl']} has timed {result['pass']} of {' '.join(map(str, key[:4]))} in "
                         f"{seen[key]} already; give one of the two")
            seen[key] = path
            cases.setdefault(case_of(result), {}).setdefault(result["pass"], []).append(
                dict(result, file=path, ceilings=report["ceilings"]))
    results = []
    for passes in cases.values():
        for rivals in passes.values():
            libraries = [seconds_of(rival) for rival in rivals if rival["library"]]
            for rival in rivals:
                rival["ratio_to_best_library"] = min(libraries) / seconds_of(rival) if libraries else None
            results += rivals
    whole = dict(first, results=results, files=list(paths), notes=notes, ceilings=first["ceilings"] if one_ceiling else None)
    for key in ("wrong", "skipped"):
        whole[key] = [text for _, report in reports for text in report.get(key, [])]
    whole["complete"] = all(report.get("complete", False) for _, report in reports)
    return whole


def table(whole):
    def us(times):
        return "-" if times is None else f"{1e6 * times['median']:.1f}"

    lines = [f"{whole['device']} ({whole['device_name']}), {whole['time']}"]
    lines += [f"note: {note}" for note in whole["notes"]]
    lines.append(f"{'pass':<6}{'implementation':<18}{'hot us':>10}{'cold us':>10}{'GFLOP/s':>10}{'done':>9}"
                 f"{'GB/s':>9}{'% floor':>9}{'library':>9}")
    last = None
    for result in whole["results"]:
        if case_of(result) != last:
            last = case_of(result)
            layer = result["layer"]
            name = f"{layer['net']} {layer['name']}: " if layer["net"] else ""
            lines.append(f"{name}{layer['h']}x{layer['w']} {layer['c']}->{layer['k']} {layer['r']}x{layer['s']}, "
                         f"batch {layer['n']}, {result['dtype']}")
        seconds = seconds_of(result)
        floor, ratio = result["floor_seconds"], result["ratio_to_best_library"]
        lines.append(f"{result['pass']:<6}{result['impl']:<18}{us(result['hot_seconds']):>10}"
                     f"{us(result['cold_seconds']):>10}{1e-9 * result['flops'] / seconds:>10.1f}"
                     f"{1e-9 * result['done_flops'] / seconds:>9.1f}{1e-9 * result['bytes'] / seconds:>9.1f}"
                     f"{'-' if floor is None else f'{100 * floor / seconds:.1f}':>9}"
                     f"{'-' if ratio is None else f'{ratio:.2f}':>9}")
    return "\n".join(lines)


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", help="what conv_bench --json has written")
    parser.add_argument("--json", help="write all results to this file, too")
    arguments = parser.parse_args()
    if arguments.json is not None:
        command_line.check_output("--json", arguments.json)
    whole = merged(arguments.files)
    if arguments.json is not None:
        command_line.write_json("--json", arguments.json, whole)
    print(table(whole))


if __name__ == "__main__":
    command_line.run(main)
