#!/usr/bin/env python3
"""The reports of runs: check_report.py files|browser CIFAR_TRAIN TANDEM_REPORT FOLDER

files: a run has a report, also a stopped one and one with --log elsewhere; one that cannot be
written is a warning, and fails no training; damaged files are told.
browser: puts files into run directories that are as hostile as they may be, and opens report.html and a comparison in headless
Chromium: nothing on its console, no request, nothing wider than a window of 1200 or 390 pixels, and it prints. A page with planted
faults must be found, or else this test could not fail. Exit code 77 where there is no Chromium.
"""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from browser import NARROW, WIDE, Browser, find_browser  # noqa: E402
from terminal import open_terminal, parts_of  # noqa: E402

EVIL = "<script>console.error('evil')</script>\"'><img src=http://127.0.0.1:9/x.png>"


def png(side):
    """A grey PNG file, in base64."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(range(side)) for _ in range(side))
    data = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return base64.b64encode(data).decode()


def evaluation():
    """evaluation.json of three classes, one of them with a name that is markup."""
    classes = ["cat", "dog", EVIL]
    bins = [{"from": i / 15, "to": (i + 1) / 15, "images": 10, "confidence": i / 15, "accuracy": i / 16} for i in range(15)]
    return {"split": "test", "epoch": 2, "images": 150, "loss": 0.5, "accuracy": 90.0, "classes": classes,
            "confusion": [[40, 6, 4], [3, 45, 2], [0, 1, 49]],
            "per_class": [{"class": name, "images": 50, "accuracy": 90.0} for name in classes],
            "calibration": {"ece": 0.03, "bins": bins},
            "worst": [{"index": i, "label": 2, "predicted": i % 2, "confidence": 0.9, "loss": 4.0, "png": png(28)} for i in range(24)]}


PLANTED = """<!doctype html><meta charset=utf-8><script>console.error('planted')</script><img src=planted.png>
<div class=planted style="width: 500px">wide</div></html>"""


def faults_of(browser, path, widths=(WIDE, NARROW)):
    """What the browser says on its console of a page, what it asks for beside it, and what is wider than the window."""
    found = []
    for width in widths:
        browser.show(width)
        browser.open(pathlib.Path(path).resolve().as_uri())
        found += browser.faults() + [f"wider than {width} px: {element}" for element in browser.too_wide()]
    return found


def train_once(program, run, *more):
    command = [program, "--dataset", "synthetic", "--limit-train", "256", "--limit-test", "64", "--epochs", "2", "--log-every", "1",
               "--run-dir", run, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)


def check_log_elsewhere(train, folder):
    """--log writes the same records there as well: the run directory has what its report is made of."""
    run, other = pathlib.Path(folder, "logged"), pathlib.Path(folder, "other.jsonl")
    said = train_once(train, str(run), "--log", str(other)).stdout
    assert f"  log      log.jsonl, {other}\n" in said, said
    page = (run / "report.html").read_text()
    assert ">Loss</h3>" in page and "has not finished an epoch" not in page and "not finished" not in page, page[:3000]
    assert (run / "curves.csv").is_file() and other.read_bytes() == (run / "log.jsonl").read_bytes()
    train_once(train, str(run), "--log", str(other), "--epochs", "3", "--resume", "auto")
    records = [json.loads(line) for line in other.read_text().splitlines()]
    assert [record["epoch"] for record in records if record["record"] == "epoch"] == [1, 2, 3], records
    assert [record["steps_done"] for record in records if record["record"] == "run"] == [0, 4], records
    assert "gone on with once" in (run / "report.html").read_text()
    assert other.read_bytes() == (run / "log.jsonl").read_bytes()
    # By its name of the run directory's own log, it is that.
    own = pathlib.Path(folder, "own")
    said = train_once(train, str(own), "--log", f"{folder}/../{pathlib.Path(folder).name}/own/log.jsonl").stdout
    assert "  log      log.jsonl\n" in said, said
    records = [json.loads(line)["record"] for line in (own / "log.jsonl").read_text().splitlines()]
    assert records.count("run") == 1 and records.count("epoch") == 2, records


def report_of(report, *arguments):
    return subprocess.run([report, *map(str, arguments)], capture_output=True, text=True, timeout=100)


def on_terminal(columns, *command):
    """What a program prints to a terminal of so many columns."""
    terminal, end = open_terminal(columns)
    process = subprocess.Popen(command, stdout=end, stderr=subprocess.DEVNULL)
    os.close(end)
    said = b"".join(parts_of(terminal))
    assert process.wait(timeout=100) == 0, said
    return said.decode()


def check_dashed_name(report, run):
    """Behind --, what begins with a dash is a name."""
    report = pathlib.Path(report).resolve()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(run, pathlib.Path(folder, "--run"))
        done = subprocess.run([report, "--", "--run"], capture_output=True, text=True, cwd=folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "--run/report.html\n", ""), done
        done = subprocess.run([report, "--run"], capture_output=True, text=True, cwd=folder)
        assert done.returncode == 2 and "unknown option --run" in done.stderr, done
        done = subprocess.run([report, "--", "--help"], capture_output=True, text=True, cwd=folder)
        assert done.returncode == 2 and done.stderr.startswith("error: --help: is no folder of a run"), done


def check_runs_and_others(train, report, folder):
    """tandem_report runs/*: what is no run keeps no other from its report, and neither does one that cannot be written."""
    runs = pathlib.Path(folder, "runs")
    names = [f"a-long-name-for-a-run-of-a-small-network-{rate}-with-all-else-as-it-was" for rate in ("0.01", "0.02")]
    for number, name in enumerate(names):
        train_once(train, str(runs / name), "--lr", f"0.0{number + 1}", "--momentum", f"0.{number + 1}", "--weight-decay", f"0.{number}")
    (runs / "empty").mkdir()
    comparison = runs / "comparison.html"
    comparison.write_text("of an earlier call")
    both = [runs / name for name in names]
    pages = [run / "report.html" for run in both]
    for page in pages:
        page.unlink()
    done = report_of(report, comparison, runs / "empty", *both)
    assert done.returncode == 0 and all(page.is_file() for page in pages), done
    assert done.stdout.startswith("".join(f"{page}\n" for page in pages)) and done.stdout.endswith(f"\n{comparison}\n"), done.stdout
    # The page of an earlier call is not worth a word.
    assert done.stderr == f"note: passed over what is not a run: {runs}/empty: holds neither log.jsonl nor config.toml\n", done.stderr
    assert "2 runs compared" in comparison.read_text()
    # A slip is an error; the others have their reports all the same.
    done = report_of(report, both[0], runs / "slip", both[1])
    assert done.returncode == 2 and done.stderr == f"error: {runs}/slip: is no folder of a run; name a folder that --run-dir made\n", done
    assert done.stdout.startswith("".join(f"{page}\n" for page in pages)) and done.stdout.endswith(f"\n{comparison}\n"), done.stdout
    done = report_of(report, both[0], runs / "slip", runs / "other")
    assert done.returncode == 2 and done.stdout == f"{pages[0]}\n" and done.stderr == (
        f"error: {runs}/slip: is no folder of a run; {runs}/other: is no folder of a run; name folders that --run-dir made\n"), done
    check_dashed_name(report, both[0])
    none = report_of(report, comparison, runs / "empty")
    assert none.returncode == 2 and none.stdout == "" and none.stderr.count("\n") == 1 and none.stderr.startswith("error: "), none

    pages[0].unlink()
    pages[0].mkdir()  # where no report can be written
    pages[1].unlink()
    done = report_of(report, *both)
    assert done.returncode == 2 and pages[1].is_file() and f"error: {pages[0]}: " in done.stderr, done
    assert done.stdout.startswith(f"{pages[1]}\n") and done.stdout.endswith(f"\n{comparison}\n"), done
    pages[0].rmdir()

    comparison.unlink()
    comparison.mkdir()  # the table comes all the same
    done = report_of(report, *both)
    assert done.returncode == 2 and "Test accuracy" in done.stdout and str(comparison) in done.stderr, done
    comparison.rmdir()

    shown = on_terminal(80, report, *map(str, both)).replace("\r", "").split("\n\n")[1].splitlines()
    assert all(len(line) <= 80 for line in shown), shown
    assert "0.01" in shown[2] and "0.02" in shown[3], shown


def check_resumed_at_its_end(train, folder):
    """A run that has nothing left to do is tested again: its records and its report are those of a finished run."""
    run = str(pathlib.Path(folder, "twice"))
    train_once(train, run)
    said = train_once(train, run, "--resume", "auto").stdout
    assert re.search(r"^test accuracy .* after 2 epochs in [0-9]+s in all$", said, re.MULTILINE), said
    results = [json.loads(line) for line in pathlib.Path(run, "log.jsonl").read_text().splitlines() if '"record":"result"' in line]
    assert len(results) == 2 and all(value is not None for value in results[1].values()) and "train_loss" not in results[1], results
    page = pathlib.Path(run, "report.html").read_text()
    assert "gone on with once" in page and "not finished" not in page and "ended early" not in page, page[:3000]
    other = str(pathlib.Path(folder, "elsewhere"))
    said = train_once(train, other, "--epochs", "3", "--resume", run).stdout
    assert re.search(r"^test accuracy .* after 3 epochs in [0-9]+s since resumed$", said, re.MULTILINE), said
    tested = str(pathlib.Path(folder, "tested"))
    train_once(train, tested, "--epochs", "0")
    page = pathlib.Path(tested, "report.html").read_text()
    assert "ended early" not in page and "not finished" not in page, page[:3000]


def check_files(train, report, folder):
    whole = str(pathlib.Path(folder, "whole"))
    said = train_once(train, whole).stdout
    *_, report_line, result, picture = said.splitlines()
    assert report_line == f"  report   {whole}/report.html" and re.match("test accuracy [0-9.]+%", result), said
    assert picture in (f"  curves   {whole}/curves.png", f"  curves   {whole}/curves.svg"), said
    assert pathlib.Path(picture.split()[1]).stat().st_size > 1000
    assert "not finished" not in pathlib.Path(whole, "report.html").read_text()

    check_log_elsewhere(train, folder)

    said = train_once(train, str(pathlib.Path(folder, "evaluated")), "--epochs", "0").stdout
    assert "  weights  final.safetensors\n" in said, said  # and no checkpoints

    blocked = pathlib.Path(folder, "blocked")
    (blocked / "report.html").mkdir(parents=True)
    done = train_once(train, str(blocked))
    assert "warning: no report of this run" in done.stderr and (blocked / "final.safetensors").is_file(), done.stderr

    stopped = str(pathlib.Path(folder, "stopped"))
    process = subprocess.Popen([train, "--dataset", "synthetic", "--epochs", "1000", "--limit-train", "256", "--limit-test", "64",
                                "--run-dir", stopped], stdout=subprocess.PIPE, text=True)
    log = pathlib.Path(stopped, "log.jsonl")
    while process.poll() is None and not (log.is_file() and '"epoch":2,' in log.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=100)[0]
    assert process.returncode == 130 and f"  report   {stopped}/report.html\n" in rest, (process.returncode, rest)
    *_, result, way_on, picture = rest.splitlines()
    assert re.fullmatch("stopped in epoch [0-9]+ by SIGINT; to go on:", result), rest
    assert way_on == f"  --resume auto --run-dir {stopped} --config {stopped}/config.toml" and picture.startswith(f"  curves   {stopped}/curves."), rest
    for line in ("settings config.toml, environment.json", "log      log.jsonl", "tables   curves.csv", "weights  checkpoints"):
        assert f"  {line}\n" in rest, rest
    page = pathlib.Path(stopped, "report.html").read_text()
    assert "This run is not finished: its log ends behind epoch" in page and "of 1000" in page, page[:3000]

    check_runs_and_others(train, report, folder)
    check_resumed_at_its_end(train, folder)

    pathlib.Path(whole, "evaluation.json").write_text("{\n,")
    remade = subprocess.run([report, whole], check=True, capture_output=True, text=True)
    assert remade.stdout == f"{whole}/report.html\n", remade.stdout
    assert "evaluation.json:2: is no JSON" in remade.stderr, remade.stderr


def check_in_browser(program, train, report, folder):
    runs = [str(pathlib.Path(folder, name)) for name in ("one", "<b>two")]
    for run, rate in zip(runs, ("0.01", "0.02")):
        train_once(train, run, "--lr", rate, "--log-norms", "--profile", "steps=2:3")
        pathlib.Path(run, "evaluation.json").write_text(json.dumps(evaluation()))
        pathlib.Path(run, "environment.json").write_text(json.dumps({"host": {EVIL: EVIL}, "folder": "/long" * 60, "command_line": ["a", EVIL]}))
    comparison = str(pathlib.Path(folder, "comparison.html"))
    said = subprocess.run([report, *runs], check=True, capture_output=True, text=True).stdout.split("\n")
    assert said[:2] == [f"{run}/report.html" for run in runs] and said[-2:] == [comparison, ""], said
    assert re.fullmatch("lr 0.01 +1 .*", said[4]) and re.fullmatch("lr 0.02 +1 .*", said[5]), said
    other = str(pathlib.Path(folder, "other.html"))
    subprocess.run([report, *runs, "--compare", other], check=True, capture_output=True)
    assert pathlib.Path(other).read_bytes() == pathlib.Path(comparison).read_bytes()

    # Of more differences than a name holds: each is called by its folder.
    named = [str(pathlib.Path(folder, character * 200)) for character in "xy"]
    for number, run in enumerate(named, 1):
        train_once(train, run, "--lr", f"0.0{number}", "--momentum", f"0.{number}", "--weight-decay", f"0.{number}", "--seed", "1")
    long_names = str(pathlib.Path(folder, "long_names.html"))
    subprocess.run([report, *named, "--compare", long_names], check=True, capture_output=True)
    assert "x" * 200 in pathlib.Path(long_names).read_text()

    with Browser(program, timeout=200) as browser:
        planted = pathlib.Path(folder, "planted.html")
        planted.write_text(PLANTED)
        found = faults_of(browser, planted, (NARROW,))
        for kind in ("console: ['planted']", "request: ", "wider than 390 px: DIV.planted"):
            assert any(kind in fault for fault in found), f"the planted fault '{kind}' was not found: {found}"
        for path in [f"{run}/report.html" for run in runs] + [f"{runs[0]}/trace.html", comparison, long_names]:
            page = pathlib.Path(path).read_bytes()
            assert len(page) <= 2_000_000, f"{path}: {len(page)} bytes"
            faults = faults_of(browser, path)
            assert not faults, f"{path}: {faults}"
            # Nobody sees that there is more to the right, be the window narrow or wide.
            for width in (NARROW, WIDE):
                browser.show(width)
                browser.open(pathlib.Path(path).resolve().as_uri())
                hidden = browser.evaluate("[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)")
                assert hidden == [0] * (2 if path in (comparison, long_names) else 1), f"{path}: so many pixels of each table are beyond {width} px: {hidden}"
            printed = browser.print()
            assert printed.startswith(b"%PDF-") and len(printed) > 10_000, f"{path} prints to {len(printed)} bytes"
            dark = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            browser.show(WIDE, dark=True)
            assert browser.evaluate("getComputedStyle(document.body).backgroundColor") != dark, f"{path}: dark is {dark}, as light is"


def main():
    what, train, report, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    if what == "files":
        check_files(train, report, folder)
        return
    browser = find_browser()
    if browser is None:
        print("skipped: no Chromium here (apt-get install chromium)")
        sys.exit(77)
    check_in_browser(browser, train, report, folder)


if __name__ == "__main__":
    main()
