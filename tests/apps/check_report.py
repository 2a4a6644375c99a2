#!/usr/bin/env python3
"""The reports of runs: check_report.py files|browser CIFAR_TRAIN TANDEM_REPORT FOLDER

files: a stopped run has a report; one that cannot be written is a warning, and fails no training; damaged files are told.
browser: puts files into run directories that are as hostile as they may be, and opens report.html and a comparison in headless Chromium:
nothing on its console, and no request. A page with planted faults must be found, or else this test could not fail. Exit code 77
where there is no Chromium.
"""
import base64
import functools
import http.server
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

EVIL = "<script>console.error('evil')</script>\"'><img src=http://127.0.0.1:9/x.png>"
NAMES = ("chromium", "chromium-browser", "google-chrome")


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


class Requests(http.server.BaseHTTPRequestHandler):
    """Serves one page, and notes all that is asked for."""

    def __init__(self, page, asked, *rest):
        self.page, self.asked = page, asked
        super().__init__(*rest)

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_):
        pass


def faults_of(browser, page):
    """What the browser says on its console of a page, and what it asks for beside it."""
    asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Requests, page, asked)) as server, \
            tempfile.TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                   "--enable-logging=stderr", f"--user-data-dir={profile}", "--virtual-time-budget=2000", "--dump-dom",
                   f"http://127.0.0.1:{server.server_port}/report.html"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
        server.shutdown()
    assert "</html>" in done.stdout and "/report.html" in asked, done.stderr
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return console + [f"request: {path}" for path in asked if path != "/report.html"]


def train_once(program, run, *more):
    command = [program, "--dataset", "synthetic", "--limit-train", "256", "--limit-test", "64", "--epochs", "2", "--log-every", "1",
               "--run-dir", run, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)


def check_files(train, report, folder):
    whole = str(pathlib.Path(folder, "whole"))
    said = train_once(train, whole).stdout
    assert said.endswith(f"/curves.svg\n  report   {whole}/report.html\n") or \
        said.endswith(f"  curves   {whole}/curves.png\n  report   {whole}/report.html\n"), said
    assert "not finished" not in pathlib.Path(whole, "report.html").read_text()

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
    page = pathlib.Path(stopped, "report.html").read_text()
    assert "This run is not finished: its log ends behind epoch" in page and "of 1000" in page, page[:3000]

    pathlib.Path(whole, "evaluation.json").write_text("{\n,")
    remade = subprocess.run([report, whole], check=True, capture_output=True, text=True)
    assert remade.stdout == f"{whole}/report.html\n", remade.stdout
    assert "evaluation.json:2: is no JSON" in remade.stderr, remade.stderr


def check_in_browser(browser, train, report, folder):
    runs = [str(pathlib.Path(folder, name)) for name in ("one", "<b>two")]
    for run, rate in zip(runs, ("0.01", "0.02")):
        train_once(train, run, "--lr", rate)
        pathlib.Path(run, "evaluation.json").write_text(json.dumps(evaluation()))
        pathlib.Path(run, "environment.json").write_text(json.dumps({"host": {EVIL: EVIL}, "command_line": ["a", EVIL]}))
    comparison = str(pathlib.Path(folder, "compare.html"))
    said = subprocess.run([report, *runs, "--compare", comparison], check=True, capture_output=True, text=True).stdout
    assert said.split("\n")[:-1] == [f"{run}/report.html" for run in runs] + [comparison], said

    planted = faults_of(browser, b"<!doctype html><img src='/planted.png'><script>console.error('planted')</script></html>")
    assert len([fault for fault in planted if "planted" in fault]) >= 2, f"planted faults were not found: {planted}"
    for path in [f"{run}/report.html" for run in runs] + [comparison]:
        page = pathlib.Path(path).read_bytes()
        assert len(page) <= 2_000_000, f"{path}: {len(page)} bytes"
        faults = faults_of(browser, page)
        assert not faults, f"{path}: {faults}"


def main():
    what, train, report, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    if what == "files":
        check_files(train, report, folder)
        return
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        print("skipped: no Chromium here (apt-get install chromium)")
        sys.exit(77)
    check_in_browser(browser, train, report, folder)


if __name__ == "__main__":
    main()
