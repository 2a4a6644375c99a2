#!/usr/bin/env python3
"""The turns that docs/concepts/simulator.md shows are those of the simulator: check_turns.py PROGRAM"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def turns_of(*command, order="forward"):
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"TANDEM_SIMULATOR_ORDER": order})
    return [",".join(line.split()) for line in done.stdout.splitlines() if "s " in line and not line.startswith("sum")], done


def kept(file):
    lines = (ROOT / "docs" / "images" / "concepts" / "measured" / file).read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


turns, done = turns_of(sys.argv[1])
check(done.returncode == 0 and "sum 28" in done.stdout, f"exit code {done.returncode}: {done.stdout}{done.stderr}")
check(turns == kept("turns.csv"), f"turns.csv differs from {turns}")
turns, done = turns_of(sys.argv[1], "no-barrier")
check(turns == kept("turns-with-race.csv"), f"turns-with-race.csv differs from {turns}")
page = (ROOT / "docs" / "concepts" / "simulator.md").read_text()
quoted = page[page.index("simulator: data race"):].split("```")[0].split("\n  at ")
got = done.stderr.replace(os.fspath(ROOT / "apps" / "pictures") + "/", "")
check(done.returncode != 0 and all(part.strip() in got for part in quoted), f"{quoted} is not in {got}")
for order in ("reverse", "random:1", "random:2"):
    _, done = turns_of(sys.argv[1], "no-barrier", order=order)
    check("data race in block_sum" in done.stderr, f"{order}: no race is found: {done.stderr}")
