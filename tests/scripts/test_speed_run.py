"""scripts/speed_run.py with a stand-in for cifar_train, which writes the log of a run whose accuracy follows from its seed.

usage: test_speed_run.py SCRIPTS
"""

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest
import xml.dom.minidom
from pathlib import Path

SCRIPTS = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SCRIPTS))

import speed_run
from stand_in_case import StandInCase

# Notes each call; seed 7 is killed; seed 3 ends without a result at its first call, as where it is killed; seed 9 waits for a signal, and takes
# its time to end then; --data nowhere is no data. A file of --config holds a width.
STAND_IN = """#!/usr/bin/env python3
import json, os, signal, sys, time
words = [word for word in sys.argv[1:] if word != "--print-config"]
options = dict(zip(words[::2], words[1::2]))
width = float(open(options["--config"]).read() if "--config" in options else options.get("--width", 1))
if "--print-config" in sys.argv:
    if options["--recipe"] != "airbench94":
        print("error: --recipe: unknown recipe", file=sys.stderr)
        sys.exit(2)
    print(f"width = {width}")
    sys.exit(0)
if options.get("--data") == "nowhere":
    print("error: no data", file=sys.stderr)
    sys.exit(2)
folder, seed = options["--run-dir"], int(options["--seed"])
if seed == 7:
    os.kill(os.getpid(), signal.SIGKILL)
os.makedirs(folder, exist_ok=True)
if seed == 9:
    def stop(number, frame):
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        time.sleep(1)
        open(os.path.join(folder, "in-order"), "w")
        sys.exit(128 + number)
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)
    open(os.path.join(folder, "waits"), "w")
    time.sleep(300)
with open(os.path.join(os.path.dirname(folder), "calls"), "a") as calls:
    calls.write(f"{seed} {options['--resume']}\\n")
log = os.path.join(folder, "log.jsonl")
begun = os.path.exists(log)
epoch = lambda n: {"record": "epoch", "epoch": n, "seconds": 10.0, "time": {"evaluation": 2.0, "writing": 1.0}}
with open(log, "a") as file:
    def write(record):
        file.write(json.dumps(record) + "\\n")
    write({"record": "run", "config": {"seed": seed, "width": width, "run-dir": folder}, "without_effect": ["run-dir"],
           "versions": {"tandem": "0.1.0"}, "host": "here", "device": "cpu", "loading_seconds": 3.0,
           "whitening_seconds": 9.0 if begun else 0.5})
    if options.get("--epochs") != "0":
        write(epoch(1))
    if seed == 3 and not begun:
        sys.exit(1)
    if options.get("--epochs") != "0":
        write(epoch(2))
    write({"record": "result", "test_accuracy": 93.0 + 0.5 * seed})
"""


class SpeedRun(StandInCase):
    stand_in_text = STAND_IN

    def start(self, *arguments, **others):
        command = [sys.executable, SCRIPTS / "speed_run.py", "--program", self.stand_in, "--out", self.out, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, **others)

    def calls(self):
        return (self.out / "calls").read_text().splitlines()

    def test_figures(self):
        done = self.start("--runs", "2", "--bound", "93")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.out / "speed-run.json").read_text())
        self.assertEqual([each["accuracy"] for each in result["each"]], [93.5, 94.0])
        self.assertEqual(result["accuracy_mean"], 93.75)
        self.assertAlmostEqual(result["accuracy_standard_deviation"], 0.5 / math.sqrt(2))
        self.assertAlmostEqual(result["accuracy_standard_error"], 0.25)
        # Of one degree of freedom t is Cauchy distributed: above 3 is 1/2 - atan(3) / pi.
        self.assertAlmostEqual(result["p_value"], 0.5 - math.atan(3) / math.pi)
        # Two epochs of 10 s, of which 2 are evaluation and 1 is writing; the last evaluation counts.
        self.assertEqual((result["seconds_mean"], result["seconds_median"]), (16.0, 16.0))
        # The published rule counts the whitening as well.
        self.assertEqual((result["published_seconds_mean"], result["published_seconds_median"]), (16.5, 16.5))
        self.assertEqual([(each["whitening_seconds"], each["loading_seconds"]) for each in result["each"]], [(0.5, 3.0)] * 2)
        self.assertIn("2 runs, 16.00 s a run and 16.50 with the whitening", done.stdout)
        picture = (self.out / "speed-run.svg").read_text()
        xml.dom.minidom.parseString(picture)
        for text in ("seed 1", "seed 2", "bound 93 %", "mean 93.750 % ± 0.250", "16.00 s a run"):
            self.assertIn(text, picture)
        self.assertIn("p = 0.102", done.stdout)

    def test_one_run_has_no_spread(self):
        done = self.start()
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.out / "speed-run.json").read_text())
        for name in ("accuracy_standard_deviation", "accuracy_standard_error", "p_value"):
            self.assertIsNone(result[name])

    def test_runs_that_are_done_are_not_repeated(self):
        failed = self.start("--runs", "4")
        self.assertEqual((failed.returncode, "error: seed 3 failed" in failed.stderr), (1, True))
        done = self.start("--runs", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.calls(), ["1 auto", "2 auto", "3 auto", "3 auto", "4 auto"])
        each = json.loads((self.out / "speed-run.json").read_text())["each"]
        # Of the interrupted run the epoch that was done twice counts once.
        self.assertEqual([(run["seconds"], run["interrupted"]) for run in each], [(16.0, False)] * 2 + [(16.0, True), (16.0, False)])
        self.assertEqual([run["published_seconds"] for run in each], [16.5] * 4)  # what it made again when it went on does not count

    def test_a_run_that_is_killed_inside_a_line_goes_on(self):
        self.assertEqual(self.start().returncode, 0)
        log = self.out / "seed-1" / "log.jsonl"
        whole = log.read_text()
        for cut in (len(whole.splitlines()[0]) // 2, whole.index('"result"') + 3):
            log.write_text(whole[:cut] + "\n")  # as cifar_train goes on with it, on the next line
            done = self.start()
            self.assertEqual(done.returncode, 0, done.stderr)
            (run,) = json.loads((self.out / "speed-run.json").read_text())["each"]
            self.assertEqual((run["accuracy"], run["seconds"]), (93.5, 16.0))

    def test_a_run_that_diverged_is_no_result(self):
        self.assertEqual(self.start().returncode, 0)
        log = self.out / "seed-1" / "log.jsonl"
        whole = log.read_text()
        for damage in ('"test_loss": null, "test_accuracy": 10.0', '"test_accuracy": NaN'):
            log.write_text(whole.replace('"test_accuracy": 93.5', damage))
            self.refused("runs/seed-1: the run failed: its loss is not a finite number", code=1)

    def test_logs_that_do_not_tell_of_the_whitening(self):
        totals = speed_run.summary([93.0, 94.0], [1.0, 2.0], 94.0, [1.5, None])
        self.assertEqual((totals["seconds_mean"], totals["published_seconds_mean"], totals["published_seconds_median"]), (1.5, None, None))
        self.assertNotIn("whitening", speed_run.words(totals))

    def test_equal_accuracies_have_no_test(self):
        self.assertIsNone(speed_run.summary([94.0, 94.0], [1.0, 1.0], 94.0)["p_value"])

    def test_student(self):
        # Of a table: 5 % of t with 5 degrees of freedom lie above 2.015, 2.5 % of 10 above 2.228; 1 % of 30 above 2.457.
        for t, freedom, share in ((2.015, 5, 0.05), (2.228, 10, 0.025), (2.457, 30, 0.01), (-2.015, 5, 0.95), (0, 7, 0.5)):
            self.assertAlmostEqual(speed_run.probability_above(t, freedom), share, places=4)

    def test_a_signal_lets_a_run_end_in_order(self):
        # What a shell has started in the background ignores Ctrl-C, and hands that down.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        # Ctrl-C reaches all that the terminal runs, a SIGTERM the script alone.
        for number, send in ((signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)):
            out = self.folder / f"signal-{number}"
            command = [sys.executable, SCRIPTS / "speed_run.py", "--program", self.stand_in, "--out", out, "--seed", "9"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as script:
                deadline = time.monotonic() + 200
                while not (out / "seed-9" / "waits").exists() and time.monotonic() < deadline:
                    time.sleep(0.02)
                send(script.pid, number)
                _, told = script.communicate(timeout=200)
            self.assertEqual(script.returncode, 128 + number, told)
            self.assertEqual(told, "error: seed 9 was stopped: the same command goes on with it\n")
            self.assertTrue((out / "seed-9" / "in-order").exists())

    def test_runs_of_other_settings_are_not_mixed(self):
        config = self.folder / "mine.toml"
        config.write_text("0.5")
        self.assertEqual(self.start("--", "--config", str(config)).returncode, 0)
        config.write_text("0.25")
        self.refused("runs/seed-1 was trained with --width 0.5, which is 0.25 now: name another --out", "--runs", "2", "--", "--config", str(config))
        self.assertFalse((self.out / "seed-2").exists())
        config.write_text("0.5")
        self.assertEqual(self.start("--runs", "2", "--", "--config", str(config)).returncode, 0)

    def test_runs_of_other_times_are_not_mixed_in_silence(self):
        log = self.out / "seed-1" / "log.jsonl"
        self.assertEqual(self.start().returncode, 0)
        whole = log.read_text()
        log.write_text(whole.replace('"device": "cpu"', '"device": "cuda:0"'))
        self.assertIn("note: runs are of cpu of here, cuda:0 of here: seconds are", self.start("--runs", "2").stderr)
        log.write_text(whole.replace('"width": 1.0', '"width": 1.0, "threads": 2').replace('["run-dir"]', '["run-dir", "threads"]'))
        self.stand_in.write_text(STAND_IN.replace('print(f"width', 'print("threads = 1")\n    print(f"width'))
        self.refused("seed-1 was trained with --threads 2, which is 1 now")

    def test_a_folder_without_a_run_is_free(self):
        self.refused("error: no data", "--", "--data", "nowhere")
        self.assertEqual(self.start("--", "--data", "here").returncode, 0)
        self.refused("has runs of airbench94 --data here", "--", "--data", "nowhere")

    def test_a_picture_that_cannot_be_written_is_not_left_in_part(self):
        self.assertEqual(self.start().returncode, 0)
        figures, picture = self.out / "speed-run.json", self.out / "speed-run.svg"
        most, before = picture.stat().st_size - 1, picture.read_text()
        self.assertLessEqual(figures.stat().st_size, most)
        # As on a full disk: files end there.
        done = self.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
        self.assertEqual((done.returncode, done.stderr), (1, f"error: --out {picture}: File too large\n"))
        self.assertEqual(picture.read_text(), before)
        self.assertEqual([file.name for file in self.out.glob("*.tmp")], [])

    def test_the_shell_finds_a_build_and_stays_where_it_is(self):
        tree = self.folder / "a tree"
        (tree / "build/cpu/apps").mkdir(parents=True)
        shutil.copy(self.stand_in, tree / "build/cpu/apps/cifar_train")
        (tree / "scripts").symlink_to(SCRIPTS)
        done = subprocess.run([tree / "scripts/speed_run.sh", "--out", "here"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "here" / "speed-run.json").exists())

    def refused(self, text, *arguments, code=2):
        done = self.start(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_run_that_is_killed_may_be_gone_on_with(self):
        self.refused("seed 7 was ended by signal 9: the same command goes on with it", "--seed", "7", code=1)

    def test_bad_input(self):
        self.refused("unknown recipe", "--recipe", "airbench")
        self.refused("--out it is empty: name a folder", "--out", "")
        self.refused("--runs 0: must be at least 1", "--runs", "0")
        self.refused("write -- in front of options for cifar_train", "width")
        self.refused("unrecognized arguments: --width: options of cifar_train go behind --; --help lists", "--width", "0.5")
        for option in ("--seed", "--run-dir", "--resume", "--seed=3", "--no-run-dir", "--print-config", "--help"):
            self.refused(f"-- {option.split('=')[0]}: this script decides that itself", "--", "--width", "0.5", option)
        (self.folder / "file").touch()
        self.refused("file: cannot make this folder: File exists; name another", "--out", self.folder / "file")
        self.assertFalse(self.out.exists())
        self.assertEqual(self.start("--", "--width", "0.5").returncode, 0)
        for other in (("--runs", "2"), ("--", "--width", "0.25"), ("--", "--width", "0.5", "--epochs", "2")):
            self.refused("has runs of airbench94 --width 0.5: name another --out", *other)
        self.refused("o-epoch/seed-1: the run has no epoch, and so no time", "--out", self.folder / "o-epoch", "--", "--epochs", "0")
        (self.folder / "o-epoch" / "options.json").write_text("[]")
        self.refused("options.json: holds something else", "--out", self.folder / "o-epoch")
        (self.folder / "o-epoch" / "options.json").write_text('{"recipe": "airbench94", "options": 5}')
        self.refused("options.json: holds something else", "--out", self.folder / "o-epoch")
        log = self.out / "seed-1" / "log.jsonl"
        whole = log.read_text()
        log.write_text("".join(line for line in whole.splitlines(keepends=True) if '"epoch": 1' not in line))
        self.refused("runs/seed-1: its log lacks epoch 1, and so its time", "--", "--width", "0.5")
        for damage in ("[]", "{}"):
            log.write_text(f"{whole}{damage}\n")
            self.refused("log.jsonl:5: no record of a run: the log is damaged", "--", "--width", "0.5")
        torn, second = whole[:20] + "\n", whole.splitlines(keepends=True)[1]
        for damaged in (torn + second, "no log\n"):
            log.write_text(damaged)
            self.refused("no JSON: the log is damaged; remove", "--", "--width", "0.5")
        of_run, of_epoch, *_, of_result = whole.splitlines(keepends=True)
        log.write_text(of_run.replace('"config"', '"settings"'))
        self.refused("log.jsonl:1: a run without its settings: the log is damaged", "--", "--width", "0.5")
        for damaged in (of_epoch + of_result, of_run + of_epoch.replace("time", "times") + of_result, of_run + of_epoch.replace("1,", '"1",', 1) + of_result):
            log.write_text(damaged)
            self.refused("log.jsonl: its records lack what a run writes: the log is damaged", "--", "--width", "0.5")
        self.stand_in.unlink()
        self.refused("cifar_train is not there, or no program: build it")


if __name__ == "__main__":
    unittest.main()
