"""scripts/speed_run_ladder.py with a stand-in for cifar_train, whose accuracy counts the ideas that are not left out.

usage: test_speed_run_ladder.py SCRIPTS
"""

import json
import os
import shutil
import subprocess
import sys
import unittest
import xml.dom.minidom
from pathlib import Path

SCRIPTS = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SCRIPTS))

import speed_run_ladder
from stand_in_case import StandInCase

# A run's accuracy is 90, and 1 more for each idea it has; seed 2 has 0.5 more. Weights are that number in a file, less
# the idea of six views, which an evaluation adds. Seed 7 fails on the rung of the identity.
STAND_IN = """#!/usr/bin/env python3
import json, os, sys
words, options = sys.argv[1:], {}
for i, word in enumerate(words):
    if word.startswith("--"):
        if word in options and word != "--steps":
            sys.exit(f"error: {word} twice")
        options[word] = words[i + 1] if i + 1 < len(words) and not words[i + 1].startswith("--") else ""
width = open(options["--config"]).read() if "--config" in options else options.get("--width", "1")
if "--print-config" in options:
    if width == "0":
        print("error: --width 0: must be above 0", file=sys.stderr)
        sys.exit(2)
    if options.get("--epochs") == "0" and options.get("--steps") != "0":
        print("error: --epochs 0: of no use with --steps", file=sys.stderr)
        sys.exit(2)
    print(f"width = {float(width)}")
    sys.exit(0)
views = options.get("--tta") != "none"
if options.get("--epochs") == "0":
    log, accuracy = options["--log"], float(open(options["--load-weights"]).read()) + views
else:
    left_out = ("--no-whitening" in options) + ("--no-identity-filters" in options) + ("--param-group" in options) + (options.get("--lookahead") == "0") + ("--augment" in options)
    seed = int(options["--seed"])
    if seed == 7 and "--param-group" in options and "--no-identity-filters" not in options:
        sys.exit(1)
    folder = options["--run-dir"]
    os.makedirs(folder, exist_ok=True)
    accuracy = 95 - left_out + 0.5 * (seed == 2)
    open(options["--save-weights"], "w").write(str(accuracy))
    accuracy += views
    log = os.path.join(folder, "log.jsonl")
with open(os.environ["CALLS"], "a") as calls:
    calls.write(" ".join(words) + "\\n")
with open(log, "a") as file:
    def write(record):
        file.write(json.dumps(record) + "\\n")
    if options.get("--epochs") != "0":
        write({"record": "run", "config": {"seed": seed, "width": float(width)}, "versions": {}, "host": "here", "device": "cpu"})
        write({"record": "epoch", "epoch": 1, "seconds": 10.0, "time": {"evaluation": 2.0, "writing": 1.0}})
    write({"record": "result", "test_accuracy": accuracy})
"""


class Ladder(StandInCase):
    stand_in_text = STAND_IN

    def start(self, *arguments):
        command = [sys.executable, SCRIPTS / "speed_run_ladder.py", "--program", self.stand_in, "--out", self.out, *arguments]
        environment = {"PATH": "/usr/bin:/bin", "CALLS": str(self.folder / "calls")}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    def result(self):
        return json.loads((self.out / "ladder.json").read_text())

    def test_each_rung_has_one_idea_more(self):
        done = self.start("--runs", "2", "--", "--width", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        rungs = self.result()["rungs"]
        self.assertEqual([r["rung"] for r in rungs], ["plain", "whitening", "identity", "bias-rate", "lookahead", "views", "alternating-flip"])
        # Plain leaves five options out; the first group of parameters takes the place of the second.
        self.assertEqual([[each["accuracy"] for each in r["each"]] for r in rungs],
                         [[90, 90.5], [91, 91.5], [92, 92.5], [93, 93.5], [94, 94.5], [95, 95.5], [96, 96.5]])
        for record in rungs[1:]:
            self.assertAlmostEqual(record["gain"], 1.0)
            self.assertAlmostEqual(record["gain_standard_error"], 0.0)  # of each seed
        self.assertNotIn("gain", rungs[0])
        self.assertEqual(rungs[-1]["options"], [])
        self.assertIn("+1.00", done.stdout)
        xml.dom.minidom.parse(str(self.out / "ladder.svg"))

    def test_gains_are_of_seeds_and_of_the_rung_below(self):
        of = {"plain": [90.0, 90.5], "whitening": [91.0, 92.5], "bias-rate": [95.0, 95.0]}
        by_rung = {name: [{"seed": seed, "accuracy": value} for seed, value in enumerate(values, 1)] for name, values in of.items()}
        plain, whitening, bias_rate = speed_run_ladder.summary(by_rung)
        # Gains of 1 and 2: a mean of 1.5, a standard deviation of 1 / sqrt(2).
        self.assertAlmostEqual(whitening["gain"], 1.5)
        self.assertAlmostEqual(whitening["gain_standard_error"], 0.5)
        self.assertEqual(["gain" in record for record in (plain, whitening, bias_rate)], [False, True, False])

    def test_views_are_of_weights_that_are_there(self):
        self.start("--runs", "1")
        calls = self.calls()
        self.assertEqual(len(calls), 7)
        (of_views,) = [call for call in calls if "--epochs 0" in call]
        self.assertIn("lookahead/seed-1/weights.safetensors", of_views)
        self.assertNotIn("--tta", of_views)
        self.assertIn("--no-run-dir", of_views)  # nothing is left beside --out
        # Of --steps as well, which an evaluation alone sets aside.
        self.assertEqual(self.start("--runs", "1", "--out", self.folder / "short", "--", "--steps", "8").returncode, 0)

    def test_complete_runs_are_not_repeated(self):
        self.start("--runs", "1")
        first = self.result()
        self.start("--runs", "1")
        self.assertEqual(len(self.calls()), 7)
        self.assertEqual(self.result(), first)

    def test_views_are_of_weights_that_were_made_anew(self):
        self.start("--runs", "1", "--rungs", "lookahead,views")
        shutil.rmtree(self.out / "lookahead")
        os.utime(self.out / "views" / "seed-1" / "log.jsonl", (1, 1))
        for calls in (4, 4):  # and once alone
            self.assertEqual(self.start("--runs", "1", "--rungs", "lookahead,views").returncode, 0)
            self.assertEqual(len(self.calls()), calls)

    def test_weights_that_are_lost(self):
        self.start("--runs", "1", "--rungs", "lookahead")
        (self.out / "lookahead" / "seed-1" / "weights.safetensors").unlink()
        done = self.start("--runs", "1", "--rungs", "lookahead,views")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("lookahead/seed-1/weights.safetensors is not there", done.stderr)
        self.assertFalse((self.out / "views").exists())

    def test_some_rungs(self):
        done = self.start("--runs", "1", "--rungs", "plain,whitening")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.calls()), 2)
        self.assertEqual(len(self.result()["rungs"]), 2)

    def test_list_trains_nothing(self):
        done = self.start("--list")
        self.assertIn("--no-whitening", done.stdout)
        self.assertFalse(self.out.exists())

    def test_misuse(self):
        for arguments, told in [
            (["--rungs", "plain,tall"], "--rungs: 'tall' is none of plain, whitening"),
            (["--rungs", "views"], "views is of the weights of lookahead"),
            (["--width", "0.5"], "--width"),
            (["--", "--width", "0"], "--width 0: must be above 0"),
            (["--runs", "0"], "--runs"),
            (["--", "--lookahead", "3"], "-- --lookahead: this script decides that itself"),
            (["--", "--whitening"], "-- --whitening: this script"),
            (["--", "--save-weights=x"], "-- --save-weights: this script"),
            (["--", "--seed", "3"], "-- --seed: this script"),
            (["--", "--keep", "1"], "-- --keep: this script"),
            (["--out", ""], "--out it is empty: name a folder"),
        ]:
            done = self.start(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(told, done.stderr)
            self.assertFalse(self.out.exists())

    def test_other_options_need_another_folder(self):
        self.start("--runs", "1", "--", "--width", "0.5")
        done = self.start("--runs", "1", "--", "--width", "0.25")
        self.assertEqual(done.returncode, 2)
        self.assertIn("name another --out", done.stderr)

    def test_runs_of_other_settings_are_not_mixed(self):
        config = self.folder / "mine.toml"
        config.write_text("0.5")
        self.assertEqual(self.start("--runs", "1", "--rungs", "plain,whitening", "--", "--config", str(config)).returncode, 0)
        config.write_text("0.25")
        done = self.start("--runs", "2", "--", "--config", str(config))
        self.assertEqual(done.returncode, 2)
        self.assertIn("plain/seed-1 was trained with --width 0.5, which is 0.25 now", done.stderr)
        self.assertEqual(len(self.calls()), 2)

    def test_a_run_that_fails_ends_it(self):
        done = self.start("--seed", "7", "--runs", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("seed 7 failed", done.stderr)

    def test_the_last_rung_is_the_recipe(self):
        ladder = speed_run_ladder.rungs()
        self.assertEqual(ladder[-1][1], [])
        lengths = [len(options) for _, options in ladder]
        self.assertEqual(lengths, sorted(lengths, reverse=True))


if __name__ == "__main__":
    unittest.main()
