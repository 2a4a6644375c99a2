#!/usr/bin/env python3
"""Every collective of allreduce_bench: check_allreduce_bench.py PROGRAM RANKS BACKEND...

Each backend must give right results, and the files must be what they say they are.
"""
import csv
import json
import os
import sys
import tempfile
import xml.etree.ElementTree

from run_case import launched, run

PROGRAM, RANKS, BACKENDS = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
COLLECTIVES = ["all_reduce", "broadcast", "reduce", "all_gather", "all_gather_rows", "gather", "scatter", "reduce_scatter", "all_to_all",
               "all_to_all_rows", "send_receive", "barrier"]
IN_PLACE = {"all_reduce", "broadcast", "reduce"}
OUT_OF_PLACE = set(COLLECTIVES) - {"broadcast", "reduce"}
SIZES = ["--min-bytes", "4", "--max-bytes", "300000", "--factor", "250", "--rounds", "1"]  # 4, 1000 and 250000
OF_ALL_PARTS = {"all_gather", "all_gather_rows", "gather", "scatter", "reduce_scatter", "all_to_all", "all_to_all_rows"}


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def bench(*arguments):
    code, out, err = run(launched([PROGRAM, *arguments], RANKS), 100)
    check(code == 0, f"{arguments}: exit code {code}\n{out}{err}")
    return out


def factor(collective):
    others = (RANKS - 1) / RANKS
    return 2 * others if collective == "all_reduce" else others if collective in OF_ALL_PARTS else 1


def check_row(row):
    name = row["collective"]
    check(row["wrong"] == 0, f"wrong elements: {row}")
    check((row["in_place"] is not None) == (name in IN_PLACE), f"in place: {row}")
    check((row["out_of_place"] is not None) == (name in OUT_OF_PLACE), f"out of place: {row}")
    check(name not in OF_ALL_PARTS or row["bytes"] % RANKS == 0, f"parts of different size: {row}")
    for form in filter(None, (row["in_place"], row["out_of_place"])):
        check(0 < form["least_seconds"] <= form["seconds"] < 60, f"times: {row}")
        if name == "barrier":
            check("algbw" not in form and row["bytes"] == 0, f"a barrier has no bytes: {row}")
            continue
        check(abs(form["algbw"] * form["seconds"] / row["bytes"] - 1) < 1e-9, f"algbw: {row}")
        check(abs(form["busbw"] - form["algbw"] * factor(name)) <= 1e-9 * form["algbw"], f"busbw: {row}")


def checked_rows(backends, collectives, *arguments):
    """The rows of a run of these backends, each of which must be there for each collective."""
    roofline = ["--roofline"] if "all_reduce" in collectives else []
    out = bench("--collective", ",".join(collectives), "--json", *roofline, *SIZES, *arguments)
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        check_row(row)
        check((row["collective"] == "all_reduce") == ("of_roofline" in (row["in_place"] or {})), f"of the roofline: {row}")
    for collective in collectives:
        there = {row["backend"] for row in rows if row["collective"] == collective}
        wanted = set(backends) | ({"roofline"} if collective == "all_reduce" else set())
        check(there == wanted, f"{collective}: backends {there}, expected {wanted}")
    check({row["collective"] for row in rows} == set(collectives), "collectives")
    return rows


def check_csv(path, rows):
    with open(path, newline="") as file:
        written = list(csv.DictReader(file))
    check(len(written) == len(rows), f"{len(written)} rows of CSV for {len(rows)} of JSON")
    for line, row in zip(written, rows):
        check(None not in line and None not in line.values(), f"fields: {line}")
        for name in ("collective", "backend", "bytes", "wrong"):
            check(line[name] == str(row[name]), f"{name}: {line}")
        for form in ("in_place", "out_of_place"):
            text = line[form + "_seconds"]
            check(bool(text) == bool(row[form]), f"{form}: {line}")
            check(not text or abs(float(text) / row[form]["seconds"] - 1) < 1e-5, f"{form}: {line}")


def check_svg(path, texts):
    root = xml.etree.ElementTree.parse(path).getroot()
    check(root.tag == "{http://www.w3.org/2000/svg}svg", root.tag)
    there = " ".join(text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text"))
    for text in texts:
        check(text in there, f"the picture lacks {text}")


def main():
    # Gloo's threads and ranks that wait share cores, and keep each other waiting: it is tested by itself where much is to be done.
    quick = [backend for backend in BACKENDS if backend != "gloo"]
    collectives = COLLECTIVES if RANKS > 1 else COLLECTIVES[:-2] + ["barrier"]
    with tempfile.TemporaryDirectory() as folder:
        table, picture = os.path.join(folder, "rows.csv"), os.path.join(folder, "rows.svg")
        rows = checked_rows(quick, collectives, "--backends", ",".join(quick), "--csv", table, "--svg", picture)
        check(any(row["shared"] and row["backend"] == "native" for row in rows), "shared tensors")
        check_csv(table, rows)
        check_svg(picture, [*collectives, *quick, "roofline"])
    checked_rows(BACKENDS, ["all_reduce"])  # all that the build has, side by side
    if "gloo" in BACKENDS:
        checked_rows(["gloo"], collectives, "--backends", "gloo")
    # Halves are rounded once; whole numbers; products.
    for more in (["--dtype", "bf16"], ["--dtype", "i64", "--op", "max"], ["--dtype", "f16", "--op", "product"],
                 ["--op", "average"], ["--dtype", "bf16", "--op", "average"]):
        checked_rows(quick, ["all_reduce", "reduce", "reduce_scatter"], "--backends", ",".join(quick), *more)


main()
