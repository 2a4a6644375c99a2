#!/usr/bin/env python3
"""Tests of merge_conv_bench.py: test_merge_conv_bench.py SCRIPTS_FOLDER CONV_BENCH"""

import json
import pathlib
import subprocess
import sys
import tempfile

script, bench = pathlib.Path(sys.argv[1]) / "merge_conv_bench.py", sys.argv[2]
QUICK = ["--groups", "2", "--launches", "1", "--warmup", "0", "--peak-flops", "1e11", "--peak-bandwidth", "1e10"]


def run(*arguments):
    done = subprocess.run([sys.executable, script, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def refuses(text, *arguments):
    code, _, errors = run(*arguments)
    check(code == 2 and text in errors and "Traceback" not in errors, f"expected '{text}', got {code}: {errors}")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for impl in ("ours", "reference"):
        subprocess.run([bench, "--shape", "2,3,6,6,8,3,3,1,1", *QUICK, "--impl", impl, "--json", folder / f"{impl}.json"],
                       check=True, capture_output=True)
    ours, other = folder / "ours.json", folder / "reference.json"
    report = json.loads(other.read_text())
    check(report["complete"] is True, "a finished run says so")
    for result in report["results"]:
        result["library"] = True  # stands for one
    report["complete"] = False
    other.write_text(json.dumps(report))

    code, out, errors = run(ours, other, "--json", folder / "all.json")
    check(code == 0 and errors == "", errors)
    check(f"note: {other}: not complete" in out, out)
    for name in ("fwd", "dgrad", "wgrad", "bwd", "both"):
        rows = [line for line in out.splitlines() if line.split()[0] == name]
        check([row.split()[1] for row in rows] == ["ours", "reference"], out)
        check(rows[1].split()[-1] == "1.00", out)
    whole = json.loads((folder / "all.json").read_text())
    for result in whole["results"]:  # in the columns and units of conv_bench's own table
        row = next(line.split() for line in out.splitlines() if line.split()[:2] == [result["pass"], result["impl"]])
        rates = [f"{1e-9 * result[work] / result['hot_seconds']['median']:.1f}" for work in ("flops", "done_flops", "bytes")]
        check(row[4:7] == rates, f"{row} does not have {rates}")
    check("GFLOP/s     done     GB/s  % floor  library" in out, out)
    check(len(whole["results"]) == 10 and whole["complete"] is False, "all results, and that they are not complete")
    for mine, theirs in zip(whole["results"][::2], whole["results"][1::2]):
        expected = theirs["hot_seconds"]["median"] / mine["hot_seconds"]["median"]
        check(abs(mine["ratio_to_best_library"] - expected) < 1e-9 * expected, "the ratio is to the library's time")
    check(sorted(path.name for path in folder.iterdir()) == ["all.json", "ours.json", "reference.json"], "nothing else")

    check(whole["ceilings"]["source"] == "given" and "ceilings" not in out, "one set of ceilings is that of the whole")

    # Ceilings of one process say nothing of another's results.
    report["ceilings"] = {"flops_f32": 2e11, "flops_half": 3e11, "bandwidth": 4e10, "source": "measured elsewhere"}
    other.write_text(json.dumps(report))
    code, out, errors = run(ours, other, "--json", folder / "all.json")
    check(code == 0 and "note: ceilings differ: each share of the floor is of the ceilings of its own process" in out, out + errors)
    check(f"note: {other}: ceilings 0.2 TFLOP/s f32, 0.3 half, 40 GB/s (measured elsewhere)" in out, out)
    check(f"note: {ours}: ceilings 0.1 TFLOP/s f32, 0.1 half, 10 GB/s (given)" in out, out)
    whole = json.loads((folder / "all.json").read_text())
    check(whole["ceilings"] is None, "no ceilings of the whole where they differ")
    for result in whole["results"]:
        check(result["ceilings"]["flops_f32"] == (1e11 if result["impl"] == "ours" else 2e11), "each result keeps its own")

    refuses("ours has timed fwd of", ours, ours)
    refuses("none.json: No such file", folder / "none.json")
    (folder / "text.json").write_text("{")
    refuses("text.json: no JSON", folder / "text.json")
    (folder / "text.json").write_text('{"program": "other"}')
    refuses("text.json: not written by conv_bench", ours, folder / "text.json")
    refuses("--json", ours, "--json", folder / "nowhere/all.json")
print("ok")
