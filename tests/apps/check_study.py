#!/usr/bin/env python3
"""Studies from their file to their report, on synthetic images: check_study.py run|stop|limit|browser STUDY FOLDER

run: a study with a run that cannot be has a report with all others, and says why; its figures are those of the runs' logs, computed
again here; the same command runs nothing again but what failed; other settings and more seeds are runs of their own.
stop: SIGTERM and SIGKILL at some moment; the same command then makes what is missing, and nothing twice.
limit: a run that takes longer than its limit fails, with that reason; stopped when it is tried again, it is one that goes on.
browser: the report in headless Chromium: nothing on its console, no request, nothing wider than a window of 1200 or 390 pixels; on
paper, no number that goes on in the next line. Exit code 77 where there is no Chromium.
"""
import csv
import fcntl
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from browser import NARROW, WIDE, Browser, find_browser  # noqa: E402

PAPER = 500  # pixels
EVIL = "<b>'&"
FAILS, RUNS = "none:lr-factor=2", "*.weight:lr-factor=2"  # only the network tells which names there are
FILE = """title = "Batch and rate"
question = "Which of %s?"
measure = ["seconds", "test_accuracy", "gap", "peak_memory"]
plot = ["line test_accuracy over batch-size", "curves train_loss", "bars seconds"]
[run]
dataset = "synthetic"
epochs = 1
limit-train = 96
limit-test = 64
threads = 1
[grid]
batch-size = [16, 32]
param-group = ["*.bias:lr-factor=2", "%s"]
"""

WIDE_TABLE = """measure = ["seconds", "epoch_seconds", "images_per_second", "test_accuracy", "train_accuracy", "gap", "test_loss", "train_loss",
  "peak_memory", "activation_memory", "optimizer_memory", "skipped_steps"]
plot = "bars seconds"
"""
FIND_BROKEN_NUMBERS = """[...document.querySelectorAll("td.n")].flatMap(cell => [...cell.textContent.matchAll(/\\S+/g)].filter(word => {
  const range = document.createRange();
  range.setStart(cell.firstChild, word.index);
  range.setEnd(cell.firstChild, word.index + word[0].length);
  return range.getClientRects().length > 1;
}).map(word => word[0]))"""


def check(condition, text):
    if not condition:
        sys.exit(f"check_study: {text}")


def run(words, code=0):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    check(done.returncode == code, f"{words}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done


def finished():
    """The folders of finished runs, and when their logs were last written."""
    found = {}
    for folder in pathlib.Path("out/runs").glob("*"):
        environment = folder / "environment.json"
        if environment.exists() and json.loads(environment.read_text())["state"] == "finished":
            found[folder.name] = (folder / "log.jsonl").stat().st_mtime_ns
    return found


def from_log(folder):
    """seconds, test accuracy and gap of a run."""
    records = [json.loads(line) for line in (pathlib.Path(folder) / "log.jsonl").read_text().splitlines()]
    last, result = [record for record in records if record["record"] == "epoch"][-1], records[-1]
    return [result["total_seconds"], last["test_accuracy"], last["train_accuracy"] - last["test_accuracy"]]


def check_figures():
    with open("out/my/runs.csv") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        figures = [row["seconds"], row["test_accuracy"], row["gap"]]
        if row["outcome"] != "finished":
            check(figures == ["", "", ""] and "matches no parameter" in row["reason"], row)
            continue
        for text, value in zip(figures, from_log(row["folder"])):
            check(abs(float(text) - value) < 1e-9, f"{row}: {value}")
    with open("out/my/results.json") as file:
        results = json.load(file)
    for point in results["points"]:
        for measure in point["measures"].values():
            values = [value for value in measure["values"] if value is not None]
            check(measure["count"] == len(values), measure)
            if len(values) == 2:
                check(abs(measure["mean"] - statistics.mean(values)) < 1e-6 * abs(measure["mean"]) + 1e-12, measure)
                check(abs(measure["standard_deviation"] - statistics.stdev(values)) < 1e-6 * abs(measure["mean"]) + 1e-12, measure)
                # Student's t of one degree of freedom
                check(abs(measure["half_width_95"] - 12.7062047 * statistics.stdev(values) / 2**0.5) < 1e-4 * abs(measure["mean"]) + 1e-9, measure)
    return rows, results


def whole(study):
    pathlib.Path("my.toml").write_text(FILE % (EVIL, FAILS))
    command = [study, "run", "my.toml", "--out", "out", "--seeds", "2"]
    done = run(command, code=1)
    check("my: 8 runs of 8 to be made" in done.stdout and "report out/report.html" in done.stdout, done.stdout)
    check("matches no parameter" in done.stderr, done.stderr)
    rows, results = check_figures()
    check(sorted(row["outcome"] for row in rows) == ["failed"] * 4 + ["finished"] * 4, rows)
    check(any(f"param-group {FAILS}" in text for text in results["not_finished"]), results["not_finished"])
    page = pathlib.Path("out/report.html").read_text()
    for text in [*results["reading"], *results["not_finished"], f"Which of {EVIL}?"]:
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;")
        check(escaped in page, f"{escaped} is not in the page")
    check("<script" not in page and EVIL not in page, "what a file holds became markup")
    check(pathlib.Path("out/my/table.tex").read_text().count("\\\\\n") == 5, "table.tex: a head and four rows")
    check(pathlib.Path("out/my/table.md").read_text().count("\n") == 6, "table.md")
    before = finished()
    check(len(before) == 4, before)
    check("my: 4 runs of 8 to be made" in run(command, code=1).stdout, "what failed is tried again")
    check(finished() == before, "a finished run was made again")
    # Mended, two runs more, and with another seed again two of each.
    pathlib.Path("my.toml").write_text(FILE % (EVIL, RUNS))
    check("my: 4 runs of 8 to be made" in run(command).stdout, "mended")
    check("my: 4 runs of 12 to be made" in run([*command[:-1], "3", "--plan"]).stdout, "more seeds")
    check("my: 8 runs of 8 to be made" in run([*command, "--model", "mnist_cnn", "--plan"]).stdout, "other settings")
    check(all(finished()[name] == when for name, when in before.items()), "a finished run was made again")
    page = pathlib.Path("out/report.html").read_bytes()
    run([study, "report", "my.toml", "--out", "out", "--seeds", "2"])
    check(pathlib.Path("out/report.html").read_bytes() == page, "the same runs make another page")
    check_report_again(study, page)
    check_bad_values(study)
    check_optional_first(study)


def check_report_again(study, page):
    """Without the options of its runs a report is the same; one of no run is refused, and the old one stays."""
    report = [study, "report", "my.toml", "--out", "out"]
    run(report)
    check(pathlib.Path("out/report.html").read_bytes() == page, "seeds are not those of the runs")
    run([study, "run", "my.toml", "--out", "other", "--seeds", "1", "--model", "mnist_cnn"])
    page_of_other = pathlib.Path("other/report.html").read_bytes()
    run([*report[:-1], "other"])
    check(pathlib.Path("other/report.html").read_bytes() == page_of_other, "the network is not that of the runs")
    error = run([*report, "--model", "vgg_lite"], code=2).stderr
    check("report: out holds no run of my with these options" in error, error)
    error = run([study, "report", "--out", "out"], code=2).stderr
    check("report: out holds no run of a study" in error, error)
    check(pathlib.Path("out/report.html").read_bytes() == page, "a refused report is written")


def check_bad_values(study):
    """A value that no run can have ends the study before its first run."""
    pathlib.Path("bad.toml").write_text((FILE % ("these", RUNS)).split("param-group")[0] + "lr = [0.1, nan]\n")
    error = run([study, "run", "bad.toml", "--out", "bad"], code=2).stderr
    check(error == "error: bad: batch-size 16 \u00b7 lr nan: no run can be made: --lr nan: must be finite\n", error)
    check(not any(pathlib.Path("bad/runs").iterdir()), "a run was begun")


def check_optional_first(study):
    """A study whose first variant cannot run here runs with the others."""
    grid = '[[variant]]\nname = "none"\noptional = true\ndataset = "cifar10"\ndata = "no-such-folder"\n[[variant]]\nname = "some"\n'
    head = "".join(line + "\n" for line in (FILE % ("these", RUNS)).split("[grid]")[0].splitlines() if "plot" not in line)
    pathlib.Path("first.toml").write_text(head + grid)
    run([study, "run", "first.toml", "--out", "first", "--seeds", "1"])
    results = json.loads(pathlib.Path("first/first/results.json").read_text())
    check(any("Cannot run here" in text for text in results["not_finished"]), results["not_finished"])


def stopped(study):
    pathlib.Path("my.toml").write_text((FILE % ("all", RUNS)).replace("limit-train = 96", "limit-train = 1000"))
    command = [study, "run", "my.toml", "--out", "out", "--seeds", "2"]
    before = {}
    for number, (name, code) in enumerate(((signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGINT, 130))):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while len(finished()) <= number and time.time() < deadline:
            time.sleep(0.02)
        check(len(finished()) > number, "no run finished in a minute")
        time.sleep(0.3)
        process.send_signal(name)
        out, err = process.communicate(timeout=60)
        check(process.returncode == code, f"{name}: exit code {process.returncode}\n{out}{err}")
        if name != signal.SIGKILL:
            check("stopped: the same command goes on" in err and "report out/report.html" in out, out + err)
        deadline = time.time() + 30  # a run whose study was killed is told to end
        while time.time() < deadline and any("running" in path.read_text() for path in pathlib.Path("out/runs").glob("*/environment.json")):
            time.sleep(0.05)
        now = finished()
        check(all(now[run] == when for run, when in before.items()), "a finished run was made again")
        before = now
    run(command)
    now = finished()
    check(len(now) == 8 and all(now[run] == when for run, when in before.items()), f"{before}\n{now}")
    with open("out/my/runs.csv") as file:
        check(all(row["outcome"] == "finished" for row in csv.DictReader(file)), "runs.csv")
    # Two at a time in one folder are refused.
    with open("out/.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        check("another study works in this folder" in run(command, code=2).stderr, "two at a time")


def outcomes():
    with open("out/my/runs.csv") as file:
        return [(row["outcome"], row["reason"]) for row in csv.DictReader(file)]


def limited(study):
    """A run that takes too long fails by name; tried again and stopped, it is one that goes on."""
    long = (FILE % ("all", RUNS)).replace("epochs = 1", "epochs = 10000").replace("[16, 32]", "[16]").replace(f', "{RUNS}"', "")
    pathlib.Path("my.toml").write_text(long)
    command = [study, "run", "my.toml", "--out", "out", "--seeds", "1", "--timeout"]
    done = run([*command, "3"], code=1)
    check("did not end within" in done.stderr, done.stderr)
    check([name for name, _ in outcomes()] == ["failed"] and "did not end within" in outcomes()[0][1], outcomes())
    process = subprocess.Popen([*command, "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    file = next(pathlib.Path("out/runs").glob("my-*/environment.json"))
    deadline = time.time() + 60
    while '"running"' not in file.read_text() and time.time() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    check(process.returncode == 143, err)
    check([name for name, _ in outcomes()] == ["interrupted"], outcomes())


def in_browser(study):
    program = find_browser()
    if program is None:
        print("skipped: there is no Chromium")
        sys.exit(77)
    pathlib.Path("my.toml").write_text(FILE % (EVIL, FAILS))
    pathlib.Path("other.toml").write_text((FILE % ("others", RUNS)).replace("limit-train = 96", "limit-train = 64"))
    lines = (FILE % (EVIL, FAILS)).splitlines(keepends=True)
    pathlib.Path("table.toml").write_text("".join(lines[:2]) + WIDE_TABLE + "".join(lines[4:]))
    run([study, "run", "my.toml", "other.toml", "table.toml", "--out", "out", "--seeds", "1"], code=1)
    with Browser(program) as browser:
        for width in (WIDE, NARROW):
            browser.show(width)
            browser.open(pathlib.Path("out/report.html").resolve().as_uri())
            browser.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
            faults = browser.faults() + browser.too_wide()
            check(not faults, f"{width} px: {faults}")
            check(browser.evaluate("document.querySelectorAll('section svg').length") == 7, "pictures")
        browser.show(PAPER)
        browser.call("Emulation.setEmulatedMedia", media="print")
        check(browser.evaluate("document.querySelectorAll('#table td.n').length") > 40, "numbers")
        broken = browser.evaluate(FIND_BROKEN_NUMBERS)
        check(not broken, f"on paper these numbers are broken: {broken}")


def main():
    part, study, folder = sys.argv[1:4]
    study = os.path.abspath(study)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chdir(folder)
    {"run": whole, "stop": stopped, "limit": limited, "browser": in_browser}[part](study)


main()
