#!/usr/bin/env python3
"""Runs of cifar_train that are killed and gone on with: check_resume.py PROGRAM CASE [KILLS [FAILING_FILES]].

Cases are "f32", "fp16", "ranks" and "ranks_fp16" (two of them), "signals", "signals_to_ranks", "timeout" (two ranks), "damage",
"settings", "world_size", "parts" and "parts_of_ranks" (two), and "phases", "phases_fp16", "phases_ranks", "phases_ranks_fp16".
A run that was killed KILLS times (5 by default) at random moments, every other time while a checkpoint was half written,
and gone on with by --resume auto each time, must end with the very weights of one that was not. The cases of phases take the
program cifar_train_to_kill and the library FAILING_FILES (tests/faults), by which each kill hits the phase of training that it
is meant for: the first five kills one each."""

import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from run_case import environment, mpirun, shows_last_words

PROGRAM, CASE = os.path.abspath(sys.argv[1]), sys.argv[2]
FAILING_FILES = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else ""
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
STEPS = 120  # of a run
RUN = (
    "--dataset synthetic --limit-train 480 --limit-test 64 --model mnist_cnn --layers 2 --epochs 4 "
    "--global-batch-size 16 --augment crop,flip --lr 0.005 --threads 1 --progress none --checkpoint-every 3 --keep 2 "
)
# Frozen in the middle of the run.
GROUPS = "--param-group *.bias:lr-factor=2,weight-decay=0,freeze-step=60 --param-group classifier.*:schedule=cosine,momentum=0.5"


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def command_of(folder, ranks, more):
    return (mpirun() + ["-np", str(ranks)] if ranks > 1 else []) + [PROGRAM, "--run-dir", folder] + (RUN + more).split()


def run(folder, ranks, more, fails=False):
    done = subprocess.run(command_of(folder, ranks, more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment(), timeout=300)
    check((done.returncode != 0) == fails, f"exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def contents(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def processes_of(folder):
    """The numbers of all that have the folder in their command line: ranks first, then what launched them."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if entry.isdigit() and folder.encode() in words:
            found.append((words[0] != PROGRAM.encode(), int(entry)))
    return [number for _, number in sorted(found)]


def kill(processes):
    for number in processes:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            pass


def steps_of(folder):
    """Of its checkpoints, in rising order."""
    try:
        names = os.listdir(os.path.join(folder, "checkpoints"))
    except FileNotFoundError:
        return []
    return sorted(int(name.removeprefix("step-")) for name in names if name.startswith("step-"))


def newest_step(folder):
    """Of its checkpoints; 0 for none."""
    return max(steps_of(folder), default=0)


def is_writing(folder):
    """Whether a checkpoint is half written."""
    try:
        return any(name.startswith(".tandem-checkpoint-") for name in os.listdir(os.path.join(folder, "checkpoints")))
    except FileNotFoundError:
        return False


def start_and_kill(folder, ranks, more, within_write):
    """Goes on with the run, and kills it a moment after a checkpoint, or while the next is written. True if it had not
    come to its end."""
    target = newest_step(folder) + random.randrange(1, max(2, STEPS // KILLS))
    process = subprocess.Popen(command_of(folder, ranks, more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=environment(), start_new_session=True)
    while process.poll() is None and newest_step(folder) < target:
        time.sleep(0.001)
    processes = processes_of(folder)  # found now: it takes longer than writing a checkpoint
    if within_write:
        while process.poll() is None and not is_writing(folder):
            pass
    else:
        time.sleep(random.uniform(0, 0.03))
    was_running = process.poll() is None
    if was_running:
        kill(processes)
    process.wait()
    # Those that were started since.
    deadline = time.monotonic() + 20
    while late := processes_of(folder):
        check(time.monotonic() < deadline, "killed ranks do not end")
        kill(late)
        time.sleep(0.01)
    return was_running


def killed_runs(work, ranks, more):
    whole, broken = os.path.join(work, "whole"), os.path.join(work, "broken")
    text = run(whole, ranks, more)
    loss = float(re.search(r"[(]loss ([0-9.]+)[)]", text).group(1))
    check(loss < 2.29, f"the run learns nothing, and shows little:\n{text}")  # by chance: 2.303
    random.seed(2)
    kills = went_on = torn = 0
    # Whether a kill meets a write is up to the machine: some more, if none did.
    while kills < KILLS or (torn == 0 and kills < KILLS + 20):
        if not start_and_kill(broken, ranks, more + " --resume auto", within_write=kills % 2 == 1):
            shutil.rmtree(broken)  # it came to its end: another one
            continue
        kills += 1
        torn += is_writing(broken)
    text = run(broken, ranks, more + " --resume auto")
    went_on += "resume   " in text and "step-" in text.split("resume   ")[1].split("\n")[0]
    check(contents(whole, "final.safetensors") == contents(broken, "final.safetensors"), "weights differ\n" + text)
    check(not [name for name in os.listdir(os.path.join(broken, "checkpoints")) if name.startswith(".")],
          "temporary folders are left")
    print(f"{kills} kills, {torn} of them while a checkpoint was written")
    check(torn > 0, "no kill met a checkpoint that was being written")
    check(went_on == 1, "the run did not go on from a checkpoint:\n" + text)


# What a kill may hit: the ranges of the profiler (core/profiler.h) that a phase consists of, or the calls that write a file.
PHASES = {
    "forward": ["forward "],  # of any layer
    "backward": ["backward "],
    "all-reduce": ["finish gradients"],  # those of some buckets are under way then
    "optimizer": ["optimizer step", "average weights"],
    "checkpoint": ["open", "write", "fsync", "rename"],
}


def kill_in(phase, folder, ranks, more, log):
    """Goes on with the run until it is killed at a random point of this phase, within its first few steps. The point where
    that was; "" if the run came to its end before."""
    if os.path.exists(log):
        os.remove(log)
    variables = dict(environment(), TANDEM_TEST_KILL_LOG=log)
    point = random.choice(PHASES[phase])
    if phase == "checkpoint":
        which = random.randrange(1, 4 if point == "rename" else 12)
        part = "step-" if point == "rename" else "/checkpoints/"
        variables |= {"LD_PRELOAD": FAILING_FILES, "TANDEM_TEST_FAULTS": f"{point}:{part}:{which}:KILL"}
    else:
        steps, count = random.randrange(1, 12), 1 if phase in ("all-reduce", "optimizer") else random.randrange(1, 10)
        variables["TANDEM_TEST_KILL"] = f"{point}:{steps}:{count}:{random.randrange(ranks)}"
    done = subprocess.run(command_of(folder, ranks, more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=variables, timeout=100)
    # mpirun ends the other rank of one that was killed; that may take a moment longer than mpirun itself.
    deadline = time.monotonic() + 20
    while late := processes_of(folder):
        check(time.monotonic() < deadline, "killed ranks do not end")
        kill(late)
        time.sleep(0.01)
    if not os.path.exists(log):
        check(done.returncode == 0, f"{phase}: exit code {done.returncode}, and no kill\n{done.stdout}")
        return ""
    check(done.returncode != 0, f"{phase}: killed, and exit code 0\n{done.stdout}")
    return contents(log).decode().splitlines()[0]


def killed_in_phases(work, ranks, precision):
    """Each phase of training is hit, and the run goes on to the same bits."""
    whole, broken, log = (os.path.join(work, name) for name in ("whole", "broken", "kills"))
    # Batch norm has a net that is larger than need be; its checkpoints of 30 MB are long in work.
    nets = {"phases": "--model vgg_lite --layers 0 --batch-norm --limit-train 96 --global-batch-size 8 --epochs 2",
            "phases_ranks_fp16": "--model vgg_lite --layers 0 --batch-norm --limit-train 96 --global-batch-size 8 --epochs 2"}
    more = f"{precision} --dropout 0.2 --ema 0.9 {nets.get(CASE, '--epochs 2')}"
    run(whole, ranks, more)
    random.seed(3)
    hits, torn, ends = {phase: 0 for phase in PHASES}, 0, 0
    kills = 0
    while kills < KILLS:
        phase = list(PHASES)[kills % len(PHASES)]
        point = kill_in(phase, broken, ranks, more + " --resume auto", log)
        if not point:  # it came to its end, and so had to have the same weights
            ends += 1
            check(contents(whole, "final.safetensors") == contents(broken, "final.safetensors"), "weights differ")
            shutil.rmtree(broken)
            continue
        kills += 1
        hits[phase] += 1
        print(f"{phase}: {point}")
        torn += is_writing(broken)
    text = run(broken, ranks, more + " --resume auto")
    check("passed over" not in text, text)
    check(contents(whole, "final.safetensors") == contents(broken, "final.safetensors"), "weights differ\n" + text)
    left = [name for place in (broken, os.path.join(broken, "checkpoints")) for name in os.listdir(place)
            if name.startswith(".tandem")]
    check(not left, f"left behind: {left}")
    check(all(hits.values()) and torn > 0, f"{hits}, {torn} left a checkpoint half written")
    print(f"{kills} kills: {hits}, {torn} left a checkpoint half written; {ends + 1} runs came to their end with the same bits")


def epochs_that_last(folder, ranks, seconds):
    """How many epochs of RUN keep this machine busy for so long: signals pass through mpirun after a second or two."""
    run(folder, ranks, "")
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    fastest = min(record["seconds"] for record in records if record["record"] == "epoch")
    return math.ceil(seconds / fastest)


class EndedTooSoon(Exception):
    """A run came to its end before it could be stopped: the machine has become faster than it was when an epoch was measured."""


def with_enough_epochs(work, ranks, seconds, stopped_with):
    """stopped_with(whole, broken, epochs) with a run that lasts so long; with one of more epochs where it was over too soon."""
    epochs = epochs_that_last(os.path.join(work, "measured"), ranks, seconds)
    for attempt in range(5):
        folder = os.path.join(work, str(attempt))
        try:
            return stopped_with(os.path.join(folder, "whole"), os.path.join(folder, "broken"), f"--epochs {epochs << attempt} ")
        except EndedTooSoon:
            print(f"{epochs << attempt} epochs ended too soon")
    sys.exit("FAILED: every run ended before it could be stopped")


def environment_of(folder):
    return json.loads(contents(folder, "environment.json"))


def refuse_a_finished_run(folder):
    if environment_of(folder)["state"] == "finished":
        raise EndedTooSoon


def check_was_stopped(folder, ranks, number, text):
    told = environment_of(folder)
    codes = {128 + number} | ({128 + signal.SIGTERM} if ranks > 1 else set())  # mpirun passes any signal on as SIGTERM
    check(told["state"] == "stopped" and told["exit_code"] in codes, f"{told}\n{text}")


def stopped_runs(work, ranks):
    """Stopped by Ctrl-C and by SIGTERM: each writes a checkpoint of the step it was at, far from the next one due."""
    with_enough_epochs(work, ranks, 8, lambda *run_of: stopped_by_signals(ranks, *run_of))


def stopped_by_signals(ranks, whole, broken, epochs):
    stopped = 0
    for number in (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if ranks == 1 else [])):
        process = subprocess.Popen(command_of(broken, ranks, epochs + "--checkpoint-every 100000 --resume auto"),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "first step after" in line:
                time.sleep(0.2)
                process.send_signal(number)
        code = process.wait(timeout=120)
        text = "".join(lines)
        refuse_a_finished_run(broken)
        check(ranks > 1 or code == 128 + number, f"exit code {code} after {number}:\n{text}")
        check(code != 0, f"exit code 0 after {number}:\n{text}")
        told = re.search(r"stopped in epoch [0-9]+ by SIG(TERM|INT|HUP); to go on:\n  --resume auto --run-dir ", text)
        check(told or not shows_last_words(ranks), text)
        check_was_stopped(broken, ranks, number, text)
        newest = sorted(os.listdir(os.path.join(broken, "checkpoints")))[-1]
        stopped += int(newest.removeprefix("step-")) % 30 != 0
    check(stopped > 0, "each run was stopped at the end of an epoch")
    run(whole, ranks, epochs)
    text = run(broken, ranks, epochs + "--resume auto")
    check(contents(whole, "final.safetensors") == contents(broken, "final.safetensors"), "weights differ\n" + text)


def stopped_by_timeout(work):
    """timeout(1) ends two ranks as Slurm ends a job: by one SIGTERM to mpirun (two without --foreground)."""
    with_enough_epochs(work, 2, 6, stopped_by_one_signal)


def stopped_by_one_signal(whole, broken, epochs):
    command = command_of(broken, 2, epochs + "--checkpoint-every 100000 --resume auto")
    done = subprocess.run(["timeout", "--foreground", "-s", "TERM", "3", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=environment(), timeout=120)
    refuse_a_finished_run(broken)
    check(done.returncode == 124, f"exit code {done.returncode}\n{done.stdout}")
    check("by SIGTERM; to go on:\n  --resume auto" in done.stdout or not shows_last_words(2), done.stdout)
    check_was_stopped(broken, 2, signal.SIGTERM, done.stdout)
    step = newest_step(broken)
    text = run(broken, 2, epochs + "--resume auto")
    run(whole, 2, epochs)
    check(f"({step} of " in text and "steps are done)" in text, text)
    check(contents(whole, "final.safetensors") == contents(broken, "final.safetensors"), "weights differ\n" + text)


def losses_of(folder):
    """By step; of steps that were done twice the later."""
    records = [json.loads(line) for line in contents(folder, "log.jsonl").splitlines()]
    return {record["step"]: record["loss"] for record in records if record["record"] == "step"}


def run_with_middle(folder, ranks, steps, per_epoch):
    """The step of a checkpoint in the middle of the third epoch: of its second step, or later where the disk is busy till then."""
    for _ in range(5):
        run(folder, ranks, f"{steps} --checkpoint-every {2 * per_epoch + 2}")
        middle = next((step for step in steps_of(folder) if 2 * per_epoch < step < 3 * per_epoch), None)
        if middle:
            return middle
        shutil.rmtree(folder)  # the disk was busy for the whole epoch
    sys.exit("FAILED: five times no checkpoint within the third epoch")


def world_size(work):
    """A run goes on with another number of ranks: its losses are those of one that did not, but for roundings."""
    # Without batch norm and dropout a step computes the same sums, in another order. A sum of n products then differs by about
    # sqrt(n) * 2^-24 of their size: with the 8,192 of the last layer by 5e-6, a logit below 10 and the loss by 5e-5. The weights
    # differ by gradients of such an error times a rate at which differences do not grow: as much again.
    per_epoch = 150
    steps = f"--limit-train {16 * per_epoch} --augment none --epochs 4 --log-every 1 --keep 100 --momentum 0 --schedule constant --lr 0.001"
    curves, middles = {}, {}
    for ranks in (1, 2):
        middles[ranks] = run_with_middle(os.path.join(work, str(ranks)), ranks, steps, per_epoch)
        curves[ranks] = losses_of(os.path.join(work, str(ranks)))
    count = 4 * per_epoch
    check(len(curves[1]) == count and abs(curves[1][count] - curves[1][1]) > 0.01, f"{curves[1]}")
    for before, after in ((1, 2), (2, 1)):
        other = os.path.join(work, f"{before}_to_{after}")
        middle = middles[before]
        text = run(other, after, steps + f" --resume {work}/{before}/checkpoints/step-{middle:010}")
        check(f"goes on in epoch 3 of 4, behind {middle - 2 * per_epoch} of its {per_epoch} steps ({middle} of {count} steps are done)"
              in text, text)
        found = losses_of(other)
        check(sorted(found) == list(range(middle + 1, count + 1)), f"steps {sorted(found)}")
        worst = max(abs(loss - curves[before][step]) for step, loss in found.items())
        # Another order of images would show: batches differ from each other by far more.
        spread = max(abs(curves[before][step] - curves[before][step - 1]) for step in found)
        print(f"{before} to {after} ranks: losses of {len(found)} steps differ by at most {worst:.1e}; from step to step by {spread:.1e}")
        check(worst <= 1e-4 and spread > 100 * worst, f"{before} to {after} ranks: losses differ by {worst:.1e}")


def parts(work, ranks):
    """A run of two and a half epochs of full batches ends in the middle of the third, and goes on from any step with the same bits."""
    # 441 of 490 images are trained on: 27 full batches and 9 left; 2.5 epochs are 67.5 steps, which make 68.
    per_epoch, count, warmup = 27, 68, 10
    more = ("--limit-train 490 --validation-split 0.1 --drop-last --augment crop-reflect=2,flip-alternating,cutout-inside=8 --log-every 1 "
            "--keep 100 --momentum 0.9 ")
    decay = f"--schedule linear --warmup-steps {warmup} --warmup-start-factor 0.25 --final-lr-factor 0.1 "
    whole = os.path.join(work, "whole")
    run(whole, ranks, more + decay + "--epochs 2.5")
    with open(os.path.join(whole, "log.jsonl")) as file:
        records = [json.loads(line) for line in file]
    of_kind = lambda kind: [record for record in records if record["record"] == kind]
    check(b"epochs = 2.5\n" in contents(whole, "config.toml"), "epochs are not kept as they were given")
    check(of_kind("run")[0]["steps_per_epoch"] == per_epoch and of_kind("run")[0]["config"]["epochs"] == 2.5, f"{of_kind('run')}")
    check([record["epoch"] for record in of_kind("epoch")] == [1, 2, 3], f"{of_kind('epoch')}")
    check(of_kind("run")[0]["validation_images"] == 49, f"{of_kind('run')}")
    rates = [record["lr"] for record in of_kind("step")]
    check(len(rates) == count, f"{len(rates)} steps")
    for step, rate in enumerate(rates):
        factor = 0.25 + 0.75 * step / warmup if step < warmup else 1 - 0.9 * (step - warmup) / (count - warmup)
        check(abs(rate - 0.005 * factor) < 1e-9, f"step {step}: a rate of {rate}, not {0.005 * factor}")
    check("This run is not finished" not in contents(whole, "report.html").decode(), "the report takes the run for unfinished")
    found = [step for step in steps_of(whole) if step < count]
    for step in (found[0], next((step for step in found if step > 2 * per_epoch), found[-1])):
        other = os.path.join(work, f"from_{step}")
        text = run(other, ranks, more + decay + f"--epochs 2.5 --resume {whole}/checkpoints/step-{step:010}")
        epoch, inside = step // per_epoch + 1, step % per_epoch
        where = f"in epoch {epoch} of 3, behind {inside} of its {per_epoch} steps" if inside else f"with epoch {epoch} of 3"
        check(f"goes on {where} ({step} of {count} steps are done)" in text, text)
        check(contents(whole, "final.safetensors") == contents(other, "final.safetensors"), f"from step {step}: weights differ\n{text}")
    text = run(whole, ranks, more + decay + "--epochs 2.5 --resume auto")
    check(f"no step is left: all {count} are done" in text, text)
    # A run that ended in the middle of an epoch is made longer: with a schedule that does not stretch, as if it had been long from the start.
    long, made_longer = os.path.join(work, "long"), os.path.join(work, "made_longer")
    run(long, ranks, more + "--schedule constant --epochs 2.2")
    run(made_longer, ranks, more + "--schedule constant --epochs 1.3")
    text = run(made_longer, ranks, more + "--schedule constant --epochs 2.2 --resume auto")
    check("goes on in epoch 2 of 3, behind 9 of its 27 steps (36 of 60 steps are done)" in text, text)
    check(contents(long, "final.safetensors") == contents(made_longer, "final.safetensors"), "made longer: weights differ\n" + text)


def damage(work):
    folder, config = os.path.join(work, "run"), os.path.join(work, "run", "config.toml")
    run(folder, 1, "")
    checkpoints = sorted(os.listdir(os.path.join(folder, "checkpoints")))
    check(2 <= len(checkpoints) <= 3, f"{checkpoints}")  # two, and the best
    check(checkpoints[-1] == "step-0000000120", f"{checkpoints}")
    text = run(folder, 1, "", fails=True)
    check("holds the checkpoints of a run: resume it by --resume auto" in text, text)
    newest = os.path.join(folder, "checkpoints", checkpoints[-1], "training.safetensors")
    with open(newest, "r+b") as file:
        file.truncate(os.path.getsize(newest) - 1)
    before = contents(folder, "final.safetensors")
    text = run(folder, 1, "--resume auto")
    check("note: passed over" in text and "training.safetensors" in text, text)
    check(contents(folder, "final.safetensors") == before, "weights differ after a damaged checkpoint")
    # The settings that were kept give the same run.
    again = os.path.join(work, "again")
    done = subprocess.run([PROGRAM, "--config", config, "--run-dir", again, "--threads", "1"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment(), timeout=300)
    check(done.returncode == 0, done.stdout)
    other = run(os.path.join(work, "other"), 1, f"--resume {folder} --global-batch-size 32", fails=True)
    check(re.search("is of a run with a global batch size of 16, and this one has 32", other), other)
    text = run(os.path.join(work, "other"), 1, f"--resume {work}/nothing", fails=True)
    check("there is no such folder to go on from" in text, text)


def refused(folder, more, expected):
    """The run is refused for this reason, and nothing of the folder has changed."""
    files = [os.path.join(folder, name) for name in ("config.toml", "log.jsonl", "final.safetensors")]
    before = [contents(file) for file in files], sorted(os.listdir(os.path.join(folder, "checkpoints")))
    text = run(folder, 1, more, fails=True)
    check(expected in text, f"{more}: expected '{expected}', got\n{text}")
    after = [contents(file) for file in files], sorted(os.listdir(os.path.join(folder, "checkpoints")))
    check(before == after, f"{more}: a run that was refused has changed its folder")


def settings(work):
    """A run with other settings is refused or says so; a folder is one run's."""
    folder, other = os.path.join(work, "run"), os.path.join(work, "other")
    run(folder, 1, "--optimizer adam")
    for more in ("--optimizer adamw", "--optimizer adam --seed 3", "--optimizer adam --limit-train 464",
                 "--optimizer adam --precision bf16", "--optimizer adam --grad-accumulation 2",
                 "--optimizer adam --layers 3", "--optimizer adam --drop-last", "--optimizer adam --best-by test_loss",
                 "--optimizer adam --limit-test 32"):
        option = more.removeprefix("--optimizer adam ").split()[0] if more.startswith("--optimizer adam ") else "--optimizer"
        refused(folder, f"{more} --resume auto", f"--resume: the checkpoint is of a run with {option} ")
    text = run(folder, 1, "--optimizer adam --resume auto --epochs 5 --lr 0.001 --weight-decay 0.1")
    check("note: some settings differ from those that the run began with: it had --epochs 4 (now 5), --lr 0.005 (now 0.001), "
          "--weight-decay 0.0 (now 0.1)" in text, text)
    check("goes on with epoch 5 of 5 (120 of 150 steps are done)" in text, text)
    # The settings of before stay, under another name.
    check(b"epochs = 4\n" in contents(folder, "config-1.toml") and b"epochs = 5\n" in contents(folder, "config.toml"),
          f"{os.listdir(folder)}")
    text = run(folder, 1, "--optimizer adam --resume auto --epochs 5 --lr 0.001 --weight-decay 0.1")
    check("note:" not in text, text)
    # Checkpoints of another course of the run, or of another run, stay.
    steps = sorted(os.listdir(os.path.join(folder, "checkpoints")))
    check(steps[-1] == "step-0000000150", f"{steps}")
    same = "--optimizer adam --epochs 5 --lr 0.001 --weight-decay 0.1"
    refused(folder, f"{same} --resume {folder}/checkpoints/{steps[0]}", "checkpoints: holds one of step 150, and this run")
    run(other, 1, "--optimizer adam --epochs 1")
    refused(folder, f"{same} --resume {other}", "checkpoints: holds one of step 150, and this run is behind step 30")
    # A second run at once.
    lasting = subprocess.Popen(command_of(other, 1, "--optimizer adam --epochs 10000 --resume auto"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    try:
        while newest_step(other) <= 30:
            check(lasting.poll() is None, "the run has ended")
            time.sleep(0.01)
        text = run(other, 1, "--optimizer adam --epochs 10000 --resume auto", fails=True)
        check("another run is writing there: name another folder, or wait for its end" in text, text)
    finally:
        lasting.kill()
        lasting.wait()
    # An option that was not given, and one that decides what weights compute.
    speed = os.path.join(work, "speed")
    of_speed = "--model airbench94 --width 0.05 --activation silu --layers 0 --limit-train 32 --limit-test 16"
    run(speed, 1, f"{of_speed} --epochs 1")
    text = run(speed, 1, f"{of_speed} --epochs 2 --norm-momentum 0.3 --resume auto")
    check("it had --norm-momentum not given (now 0.3), --epochs 1 (now 2)" in text, text)
    refused(speed, f"{of_speed} --epochs 3 --no-whitening --resume auto", "the checkpoint is of a run with --whitening true (now false)")
    text = run(os.path.join(work, "gelu"), 1, f"{of_speed} --activation gelu --epochs 1 --load-weights {speed}/final.safetensors")
    check(f"note: --load-weights {speed}/final.safetensors: the network of these weights had activation silu (here gelu)" in text, text)
    # Without momentum there is no state of it. Weights of a file are not those of the checkpoint.
    sgd, weights = os.path.join(work, "sgd"), os.path.join(folder, "final.safetensors")
    run(sgd, 1, "--epochs 1 --momentum 0.9")
    refused(sgd, "--epochs 2 --momentum 0 --resume auto", "--resume: the checkpoint is of a run with --momentum 0.9 (now 0.0)")
    refused(sgd, "--epochs 2 --momentum 0.9 --param-group *.bias:momentum=0 --resume auto",
            'settings of its run that are others now: --epochs 1 (now 2), --param-group "none" (now "*.bias:momentum=0")')
    text = run(sgd, 1, f"--epochs 2 --momentum 0.8 --resume auto --load-weights {weights}")
    check(f"note: --load-weights {weights} is not read: the checkpoint has its weights" in text and "--momentum 0.9 (now 0.8)" in text, text)
    # A loss that is no number leaves what was written.
    text = run(other, 1, "--optimizer adam --epochs 10000 --resume auto --lr 1e30", fails=True)
    check("the loss is not a finite number" in text, text)
    text = run(other, 1, f"--optimizer adam --epochs {newest_step(other) // 30 + 1} --resume auto")
    check("passed over" not in text and "loss nan" not in text, text)


def main():
    ranks = 2 if CASE.startswith("ranks") else 1
    with tempfile.TemporaryDirectory(prefix="tandem_resume_") as work:
        if CASE == "damage":
            damage(work)
        elif CASE == "timeout":
            stopped_by_timeout(work)
        elif CASE == "world_size":
            world_size(work)
        elif CASE.startswith("parts"):
            parts(work, 2 if CASE == "parts_of_ranks" else 1)
        elif CASE.startswith("phases"):
            killed_in_phases(work, 2 if "ranks" in CASE else 1, "--precision fp16" if CASE.endswith("fp16") else "")
        elif CASE == "settings":
            settings(work)
        elif CASE.startswith("signals"):
            stopped_runs(work, 2 if CASE == "signals_to_ranks" else 1)
        else:
            killed_runs(work, ranks, "--precision fp16" if CASE.endswith("fp16") else GROUPS)


main()
