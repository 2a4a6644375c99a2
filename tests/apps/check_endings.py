#!/usr/bin/env python3
"""Runs of cifar_train that end otherwise than by their last epoch: check_endings.py PROGRAM CASE RANKS [REPLICAS].

RANKS are processes, REPLICAS threads of one. Cases are "not_finite" (and the search for where that comes from), "stopped" and "unwritable"."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

from run_case import environment, mpirun, shows_last_words

PROGRAM, CASE, RANKS = sys.argv[1], sys.argv[2], int(sys.argv[3])
REPLICAS = int(sys.argv[4]) if len(sys.argv) > 4 else 1
RUN = ("--dataset synthetic --limit-train 240 --limit-test 64 --model mnist_cnn --layers 2 --global-batch-size 16 "
       f"--threads 1 --progress plain --replicas {REPLICAS} ")
STEPS_IN_EPOCH = 15


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def command_of(more):
    return (mpirun() + ["-np", str(RANKS)] if RANKS > 1 else []) + [PROGRAM] + (RUN + more).split()


def run(more, code):
    done = subprocess.run(command_of(more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
                          timeout=300)
    check(done.returncode == code, f"{more}: exit code {done.returncode}, not {code}\n{done.stdout}")
    return done.stdout


def environment_of(folder):
    with open(os.path.join(folder, "environment.json"), encoding="utf-8") as file:
        return json.load(file)


def records_of(folder):
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def snapshot(folder):
    """Every file below it, with its contents."""
    files = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                files[os.path.join(place, name)] = file.read()
    return files


def not_finite(work):
    """The step is named; the search names the layer, writes nothing, and has an exit code of its own."""
    folder = os.path.join(work, "run")
    settings = "--epochs 3 --checkpoint-every 7 --schedule constant --seed 3 "
    run(settings + f"--epochs 1 --lr 0.01 --run-dir {folder}", 0)
    bad = settings + f"--lr 1e36 --run-dir {folder} "
    text = run(bad + "--resume auto", 1)
    diverged = [record["diverged"] for record in records_of(folder) if "diverged" in record]
    check(diverged and diverged[-1]["skipped_steps"] == 0, f"the log does not tell: {diverged}")
    step = diverged[-1]["step"]
    check(STEPS_IN_EPOCH < step < STEPS_IN_EPOCH + 5, f"step {step} is not soon behind the epoch")
    check(f"error: the loss is not a finite number at step {step}, in epoch 2: try a lower --lr" in text, text)
    check(f"--run-dir {folder} --find-nan tells where" in text, text)
    check(environment_of(folder)["state"] == "failed" and environment_of(folder)["exit_code"] == 1, "state")
    with open(os.path.join(folder, "report.html"), encoding="utf-8") as file:
        check(f"the loss of step {step} is not a finite number" in file.read(), "the report does not tell")

    before = snapshot(folder)
    text = run(bad + "--find-nan", 3)
    check("search   from " in text and "found    step " in text and "  try    a lower --lr" in text, text)
    found = re.search(r"found    step ([0-9]+), rank 0.*: .* has [0-9,]+ NaN and [0-9,]+ Inf among", text)
    check(found and STEPS_IN_EPOCH < int(found[1]) <= step, text)
    check(snapshot(folder) == before, "the search has changed the run's folder")
    text = run(settings + f"--lr 0.01 --run-dir {folder} --find-nan", 0)
    check(f"found    nothing: all tensors are finite up to the run's end, step {3 * STEPS_IN_EPOCH}" in text, text)
    check(snapshot(folder) == before, "the search has changed the run's folder")

    empty = os.path.join(work, "empty")
    os.mkdir(empty)
    text = run(settings + f"--lr 1e36 --run-dir {empty} --find-nan", 3)
    check("has no checkpoint: from the beginning" in text, text)
    check(os.listdir(empty) == [], f"left there: {os.listdir(empty)}")
    check("name it by --run-dir DIR or --resume DIR" in run("--find-nan", 2), "no error")
    text = run("--find-nan --run-dir " + os.path.join(work, "missing"), 2)
    check("there is no such folder" in text and not os.path.exists(os.path.join(work, "missing")), text)

    # All gradients overflow at every scale.
    text = run(settings.replace("--checkpoint-every 7", "") + "--lr 0.01 --no-run-dir --precision fp16 --loss-scale 1e30 --max-skipped-steps 5", 1)
    check("the loss scale, now 1e+30, skipped 5 steps in a row, up to step 5 in epoch 1" in text, text)


def stopped(work):
    """SIGTERM keeps the profile and the last evaluation, and tells how it ended."""
    folder = os.path.join(work, "run")
    profile = "--profile steps=2:3" if REPLICAS == 1 else ""
    process = subprocess.Popen(command_of(f"--epochs 100000 --lr 0.001 --run-dir {folder} {profile}"),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
    lines = []
    for line in process.stdout:
        lines.append(line)
        if re.match("epoch +2/", line):
            process.send_signal(signal.SIGTERM)
    code, text = process.wait(timeout=120), "".join(lines)
    check(code == 143 if RANKS == 1 else code != 0, f"exit code {code}\n{text}")
    if shows_last_words(RANKS):
        check("by SIGTERM; to go on:\n  --resume auto" in text, text)
        check("profile of 2 steps on rank 0" in text or not profile, text)
    state = environment_of(folder)
    check(state["state"] == "stopped" and state["exit_code"] == 143, f"{state}")
    for name in ("evaluation.json", "curves.csv") + (("trace.json", "profile.txt") if profile else ()):
        check(os.path.exists(os.path.join(folder, name)), f"there is no {name}\n{text}")
    with open(os.path.join(folder, "evaluation.json"), encoding="utf-8") as file:
        check(json.load(file)["epoch"] >= 2, "the evaluation is not the last one")
    check(not os.path.exists(os.path.join(folder, "final.safetensors")), "weights of a run that is not finished")


def unwritable(work):
    """Checkpoints that cannot be written: training goes on, or stops, as asked."""
    for policy in ("continue", "stop"):
        folder = os.path.join(work, policy)
        process = subprocess.Popen(
            command_of(f"--epochs 12 --lr 0.001 --run-dir {folder} --checkpoint-every 5 --on-save-error {policy}"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
        lines = []
        for line in process.stdout:
            lines.append(line)
            if re.match("epoch +1/", line):
                os.rename(os.path.join(folder, "checkpoints"), os.path.join(work, policy + "_elsewhere"))
                with open(os.path.join(folder, "checkpoints"), "w", encoding="utf-8") as file:
                    file.write("no folder")
        code, text = process.wait(timeout=200), "".join(lines)
        check(code == 1, f"{policy}: exit code {code}\n{text}")
        epochs = sum(record["record"] == "epoch" for record in records_of(folder))
        if policy == "continue":
            check(epochs == 12 and "; training goes on, and writing is tried again each time" in text, text)
            check(os.path.exists(os.path.join(folder, "final.safetensors")), "the weights are missing")
            check(environment_of(folder)["state"] == "finished", "state")
        else:
            check(epochs < 12 and "; training stops (--on-save-error stop)" in text, text)
            check("by --on-save-error stop; to go on:\n  --resume auto --run-dir" in text and "error: " in text, text)
            check(environment_of(folder)["state"] == "stopped" and environment_of(folder)["exit_code"] == 1, "state")


def main():
    with tempfile.TemporaryDirectory(prefix="tandem_endings_") as work:
        {"not_finite": not_finite, "stopped": stopped, "unwritable": unwritable}[CASE](work)


main()
