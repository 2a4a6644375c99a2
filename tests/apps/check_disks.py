#!/usr/bin/env python3
"""Runs of cifar_train whose disk fails them: check_disks.py PROGRAM CASE [FAILING_FILES].

Cases are "full", "inodes", "read_only", "read_only_at_start" (these mount file systems of their own, and skip themselves where
that is not allowed), "limits", "errors", "slow" and "temporaries" (with the library FAILING_FILES of tests/faults/failing_files.cpp),
"removed" and "removed_ranks". Whatever happens, the exit code is the expected one, the message says what happened where, the
checkpoints of before can be read, a run that goes on from them ends with the weights of one that nothing happened to, and
leaves no temporary file."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from run_case import SKIPPED, environment, mpirun

PROGRAM, CASE = os.path.abspath(sys.argv[1]), sys.argv[2]
SHIM = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else ""
RUN = (
    "--dataset synthetic --limit-train 480 --limit-test 64 --model mnist_cnn --layers 2 --global-batch-size 16 "
    "--lr 0.005 --threads 1 --progress none --checkpoint-every 3 "
)
REMEDY = "make room there, or the folder writable again, and go on from it by --resume auto --run-dir "


def check(condition, text):
    if not condition:
        line = sys._getframe(1).f_lineno
        sys.exit(f"FAILED (line {line}): {text}")


def command_of(folder, more, ranks=1):
    return (mpirun() + ["-np", str(ranks)] if ranks > 1 else []) + [PROGRAM, "--run-dir", folder] + (RUN + more).split()


def run(folder, more, code=0, cwd=None, **variables):
    """What it prints, all of it."""
    done = subprocess.run(command_of(folder, more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd,
                          env=dict(environment(), **variables), timeout=120)
    check(done.returncode == code, f"exit code {done.returncode}, expected {code}\n{done.stdout}")
    return done.stdout


def contents(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def checkpoints_of(folder):
    try:
        return sorted(name for name in os.listdir(os.path.join(folder, "checkpoints")) if name.startswith("step-"))
    except FileNotFoundError:
        return []


def temporaries(folder):
    """Temporary files and folders, by their paths in it."""
    return [os.path.relpath(os.path.join(place, name), folder) for place, folders, files in os.walk(folder)
            for name in folders + files if name.startswith(".tandem-")]


def whole_run(work, more):
    """The weights of a run that nothing happens to."""
    folder = os.path.join(work, "whole")
    run(folder, more)
    return contents(folder, "final.safetensors")


def go_on(folder, more, weights):
    """Goes on from the newest checkpoint, which must be one that can be read, to the weights of a whole run."""
    newest = checkpoints_of(folder)[-1]
    text = run(folder, more + " --resume auto")
    check(f"resume   {folder}/checkpoints/{newest}" in text and "passed over" not in text, text)
    check(contents(folder, "final.safetensors") == weights, "weights differ\n" + text)
    check(temporaries(folder) == [], f"left behind: {temporaries(folder)}")
    check(json.loads(contents(folder, "environment.json"))["state"] == "finished", "environment.json is not up to date")


class Stopped:
    """A run that stands still from its second checkpoint on until it is told to go on."""

    def __init__(self, folder, more, ranks=1, cwd=None):
        self.ranks, self.folder = ranks, folder
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command_of(folder, more, ranks), stdout=self.output, stderr=subprocess.STDOUT,
                                        cwd=cwd, env=environment())
        while len(checkpoints_of(folder)) < 2:
            check(self.process.poll() is None, "the run has ended: " + self.text())
            time.sleep(0.001)
        self.processes = [self.process.pid] if ranks == 1 else self.ranks_of()
        self.send(signal.SIGSTOP)

    def ranks_of(self):
        """The processes of the program that have the folder in their command line."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = contents("/proc", entry, "cmdline").split(b"\0")
            except OSError:
                continue
            if words[0] == PROGRAM.encode() and self.folder.encode() in words:
                found.append(int(entry))
        check(len(found) == self.ranks, f"{len(found)} processes")
        return found

    def send(self, number):
        for process in self.processes:
            os.kill(process, number)

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def finish(self, code):
        self.send(signal.SIGCONT)
        found = self.process.wait(timeout=120)
        text = self.text()
        check(found == code, f"exit code {found}, expected {code}\n{text}")
        return text


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def tmpfs(work, options):
    folder = os.path.join(work, "disk")
    os.mkdir(folder)
    mount("-t", "tmpfs", "-o", options, "tmpfs", folder)
    return folder


def fills_up(work, options, room):
    """A disk that checkpoints fill, and where there is room later. Nothing is removed: all are kept. Those of the ends of
    epochs are written however slow the disk is."""
    epochs = "--epochs 20 --keep 100"
    weights = whole_run(work, epochs)
    disk = tmpfs(work, options)
    folder = os.path.join(disk, "run")
    text = run(folder, epochs, code=1, cwd=work)
    kept = checkpoints_of(folder)
    check(2 <= len(kept) < 20, f"{kept}")
    check(re.search("No space left on device.*; training goes on, and writing is tried again each time", text), text)
    # What was written while there was room is said to go on from; of half a checkpoint nothing is left.
    error = re.search("error: .*No space left on device.*; the newest checkpoint is (.*): (.*)", text)
    check(error and error[1] == os.path.join(folder, "checkpoints", kept[-1]) and error[2] == REMEDY + folder, text)
    check(text.count("warning: ") <= 6, f"too many warnings:\n{text}")
    check(temporaries(folder) == [], f"left behind: {temporaries(folder)}")
    check("test accuracy" in text, text)
    mount("-o", f"remount,{room}", disk)
    go_on(folder, epochs, weights)


def full(work):
    fills_up(work, "size=4m", "size=100m")


def inodes(work):
    fills_up(work, "size=100m,nr_inodes=30", "nr_inodes=1000")


def read_only(work):
    """Becomes so under way."""
    epochs = "--epochs 10"
    weights = whole_run(work, epochs)
    disk = tmpfs(work, "size=100m")
    folder = os.path.join(disk, "run")
    stopped = Stopped(folder, epochs, cwd=work)
    mount("--bind", disk, disk)
    mount("-o", "remount,bind,ro", disk)
    text = stopped.finish(code=1)
    check(re.search("Read-only file system; .*; training goes on, and writing is tried again each time", text), text)
    check(re.search("error: .*Read-only file system.*; the newest checkpoint is .*: " + re.escape(REMEDY + folder), text), text)
    check("was removed" not in text and "test accuracy" in text, text)
    check(re.search("they are in .*/final.safetensors instead", text), text)
    subprocess.run(["umount", disk], check=True)
    go_on(folder, epochs, weights)


def read_only_at_start(work):
    disk = tmpfs(work, "ro")
    text = run(os.path.join(disk, "run"), "--epochs 1", code=2)
    check(f"--run-dir {disk}/run: cannot make this folder: Read-only file system" in text, text)
    mount("-o", "remount,rw", disk)
    folder = os.path.join(disk, "run")
    weights = whole_run(work, "--epochs 2")
    run(folder, "--epochs 1")
    before = {name: contents(folder, name) for name in ("config.toml", "log.jsonl", "environment.json")}
    mount("-o", "remount,ro", disk)
    text = run(folder, "--epochs 2 --resume auto", code=2)
    check(f"error: --run-dir {disk}/run/config.toml: cannot write: Read-only file system" in text, text)
    check(before == {name: contents(folder, name) for name in before}, "files have changed")
    mount("-o", "remount,rw", disk)
    text = run(folder, "--epochs 2 --resume auto --checkpoint-every 3")
    check("goes on with epoch 2 of 2 (30 of 60 steps are done)" in text, text)
    check(len(weights) == len(contents(folder, "final.safetensors")), text)


def limits(work):
    """A log on a full device, and a limit on the size of files."""
    text = run(os.path.join(work, "log"), "--epochs 1 --log /dev/full", code=2)
    check("log file /dev/full: writing failed: No space left on device" in text, text)
    epochs = "--epochs 10"
    weights = whole_run(work, epochs)
    folder = os.path.join(work, "run")
    stopped = Stopped(folder, epochs, cwd=work)
    resource.prlimit(stopped.process.pid, resource.RLIMIT_FSIZE, (50000, 50000))
    text = stopped.finish(code=1)
    check("cannot write: File too large" in text and "; training goes on" in text, text)
    check(re.search("error: .*File too large.*; the newest checkpoint is .*: " + re.escape(REMEDY + folder), text), text)
    check("they are lost" in text, text)  # the weights: no file of their size can be made anywhere
    go_on(folder, epochs, weights)


def errors(work):
    """Single calls that fail, and all from one on."""
    epochs = "--epochs 8"  # whose ends are written however slow the disk is: as many checkpoints at least
    weights = whole_run(work, epochs)
    lasting = {
        "write:/checkpoints/:90:EDQUOT:0": "cannot write: Disk quota exceeded",
        "fsync:/checkpoints/:6:EIO:0": "cannot write: Input/output error",
        "rename:/checkpoints/step-:3:EIO:0": "cannot write a checkpoint: Input/output error",
        "open:/checkpoints/:6:ENOSPC:0": "cannot write: No space left on device",
    }
    for number, (fault, expected) in enumerate(lasting.items()):
        folder = os.path.join(work, f"lasting{number}")
        text = run(folder, epochs, code=1, cwd=work, LD_PRELOAD=SHIM, TANDEM_TEST_FAULTS=fault)
        check(f"{expected}" in text and "; training goes on, and writing is tried again each time" in text, text)
        check(text.count("warning: ") == 1, text)
        check(re.search(f"error: .*{expected}.*; the newest checkpoint is .*: {re.escape(REMEDY + folder)}", text), text)
        check(temporaries(folder) == [], f"left behind: {temporaries(folder)}")
        check(0 < len(checkpoints_of(folder)) and checkpoints_of(folder)[-1] < "step-0000000240", text)
        go_on(folder, epochs, weights)
    for number, fault in enumerate(("write:/checkpoints/:90:EIO", "fsync:/checkpoints/:6:EDQUOT", "mkdir:/checkpoints/:4:EROFS")):
        folder = os.path.join(work, f"single{number}")
        text = run(folder, epochs, LD_PRELOAD=SHIM, TANDEM_TEST_FAULTS=fault)
        check(text.count("warning: ") == 2 and "checkpoints: can be written again" in text, text)
        check(contents(folder, "final.safetensors") == weights and temporaries(folder) == [], text)
    # Logs and events.
    folder = os.path.join(work, "log")
    text = run(folder, epochs, code=1, LD_PRELOAD=SHIM, TANDEM_TEST_FAULTS="write:log.jsonl:2:EIO write:tfevents:3:EIO")
    check(re.search("warning: log file .*log.jsonl: writing failed: Input/output error; .*; training goes on", text), text)
    check(re.search("error: --log: .*; 1 record is missing", text), text)
    check(re.search("error: .*tfevents.*: cannot write: Input/output error; .*; [0-9]+ events? (is|are) missing", text), text)
    check(contents(folder, "final.safetensors") == weights, "weights differ")


def slow(work):
    """A disk that takes seconds for the first checkpoint: the next are put off, but for the ends of epochs."""
    epochs = "--epochs 2 --keep 100"
    weights = whole_run(work, epochs)
    folder = os.path.join(work, "run")
    text = run(folder, epochs, LD_PRELOAD=SHIM, TANDEM_TEST_FAULTS="fsync:/checkpoints/:1:5s")
    check("warning" not in text and contents(folder, "final.safetensors") == weights, text)
    kept = checkpoints_of(folder)
    print(f"checkpoints: {kept}")
    check(3 <= len(kept) < 20 and {"step-0000000030", "step-0000000060"} < set(kept), f"{kept}")
    for name in kept:
        other = os.path.join(work, name)
        text = run(other, f"{epochs} --resume {folder}/checkpoints/{name}")
        check(name == "step-0000000060" or contents(other, "final.safetensors") == weights, text)


def temporary_files(work):
    """A run that is killed as it puts any of its files in place leaves a temporary one, which the next run removes."""
    folder, log = os.path.join(work, "run"), os.path.join(work, "kills")
    stages, number = set(), 1
    while True:
        code = subprocess.run(command_of(folder, "--epochs 1 --resume auto"), stdout=subprocess.DEVNULL, cwd=work,
                              stderr=subprocess.DEVNULL, timeout=60,
                              env=dict(environment(), LD_PRELOAD=SHIM, TANDEM_TEST_KILL_LOG=log,
                                       TANDEM_TEST_FAULTS=f"fsync:{folder}/.tandem-:{number}:KILL")).returncode
        if code == 0:
            break
        check(code == -signal.SIGKILL, f"exit code {code}")
        check(len(temporaries(folder)) == 1, f"left behind: {temporaries(folder)}")
        stages.update(name for name in os.listdir(folder) if "." in name and not name.startswith("."))
        number += 1
    check(number > 6, f"{number - 1} kills")  # config, environment, weights, evaluation, curves, environment, report
    check(temporaries(folder) == [], f"left behind: {temporaries(folder)}")
    check({"config.toml", "environment.json", "final.safetensors", "evaluation.json"} <= stages, f"{stages}")
    print(f"{number - 1} kills, each in another file")


def removed(work, ranks):
    """Somebody removes the run directory: it is made again, which is said once, and nothing later is missing."""
    epochs = "--epochs 10 --log-every 1"
    weights = whole_run(work, epochs) if ranks == 1 else None
    folder = os.path.join(work, "runs", "first")
    stopped = Stopped(folder, epochs, ranks, cwd=work)
    shutil.rmtree(os.path.join(work, "runs"))
    text = stopped.finish(code=0)
    check(f"warning: --run-dir {folder}: was removed while the run wrote there; it is made again, without what it held; "
          "training goes on" in text, text)
    # A checkpoint that was in work then may be the first to find its folder gone, and says so of itself.
    of_checkpoints = text.count(f"warning: {folder}/checkpoints: was removed while the run wrote there; it is made again, and the "
                                "checkpoints that it held are lost")
    check(of_checkpoints <= 1 and text.count("was removed") == 1 + of_checkpoints and
          text.count("warning: ") == 1 + of_checkpoints and "error" not in text, text)
    records = [json.loads(line) for line in contents(folder, "log.jsonl").splitlines()]
    steps = [record["step"] for record in records if record["record"] == "step"]
    check(records[0]["record"] == "run" and records[-1]["record"] == "result", f"{records[0]} {records[-1]}")
    check(steps == list(range(301 - len(steps), 301)) and 0 < len(steps) < 295, f"steps {steps}")
    names = os.listdir(folder)
    for name in ("config.toml", "environment.json", "report.html", "curves.csv", "evaluation.json"):
        check(name in names, f"{name} is not in {names}")
    check(sum("tfevents" in name for name in names) == 1, f"{names}")
    check(json.loads(contents(folder, "environment.json"))["state"] == "finished", "environment.json is not up to date")
    check(weights is None or contents(folder, "final.safetensors") == weights, "weights differ")
    check(temporaries(folder) == [], f"left behind: {temporaries(folder)}")
    last = checkpoints_of(folder)[-1]
    check(last == "step-0000000300", last)
    text = run(folder, f"--epochs 10 --resume {folder}/checkpoints/{last}/model.safetensors --run-dir {work}/other")
    check("no step is left: all 300 are done" in text, text)


def may_mount():
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, text=True)
    return tried.returncode == 0


def main():
    cases = {"full": full, "inodes": inodes, "read_only": read_only, "read_only_at_start": read_only_at_start}
    if CASE in cases and "TANDEM_TEST_APART" not in os.environ:
        if not may_mount():
            print("skipped: mounting is not allowed here")
            sys.exit(SKIPPED)
        os.environ["TANDEM_TEST_APART"] = "1"  # in a mount namespace of its own, which ends with this process
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    cases |= {"limits": limits, "errors": errors, "slow": slow, "temporaries": temporary_files, "removed": lambda work: removed(work, 1),
              "removed_ranks": lambda work: removed(work, 2)}
    work = os.path.realpath(tempfile.mkdtemp(prefix="tandem_disks_"))
    try:
        cases[CASE](work)
    finally:
        subprocess.run(["umount", "--quiet", "--recursive", os.path.join(work, "disk")], check=False,
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(work, ignore_errors=True)


main()
