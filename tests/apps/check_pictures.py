#!/usr/bin/env python3
"""The pictures and the numbers of docs/concepts: check_pictures.py PROGRAM FOLDER

Pictures are drawn again to FOLDER and must be those of docs/images/concepts, byte for byte: small, and with a text for those who cannot
see them. Each is shown by a page, with a text. A block of output below a command `pictures text CONCEPT` has lines of what that prints.
Measured figures say when and on which kind of machine they were taken.
"""
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "concepts"
IMAGES = ROOT / "docs" / "images" / "concepts"
MOST_BYTES, MOST_WIDTH, LEAST_FONT = 40_000, 380, 10.0


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def run(program, *words):
    done = subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True)
    check(done.returncode == 0 and not done.stderr, f"pictures {words}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def check_pictures(program, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    run(program, "draw", os.fspath(folder.resolve()))
    drawn, kept = ({file.name: file.read_bytes() for file in place.glob("*.svg")} for place in (folder, IMAGES))
    check(set(drawn) == set(kept), f"drawn, but not in {IMAGES}, or the other way: {set(drawn) ^ set(kept)}")
    for name, data in drawn.items():
        check(data == kept[name], f"{name}: is not what the program draws; run pictures draw docs/images/concepts, and look at it")
        check(len(data) < MOST_BYTES, f"{name}: {len(data)} bytes")
        picture = xml.etree.ElementTree.fromstring(data)
        check(len(picture.get("aria-label", "")) > 30, f"{name}: nothing for those who cannot see it")
        check(float(picture.get("width")) <= MOST_WIDTH, f"{name}: {picture.get('width')} wide")
        for text in picture.iter("{http://www.w3.org/2000/svg}text"):
            check(float(text.get("font-size")) >= LEAST_FONT, f"{name}: '{text.text}' is small print")
    return set(drawn)


def check_refusals(program, folder):
    for words, expected in (
        (["draw"], "unknown command 'draw'"),
        (["text", "memroy"], "there is no concept 'memroy' (choices: memory, tape"),
        (["draw", os.fspath(folder / "none" / "none")], "none"),
        (["measure", "step", os.fspath(IMAGES / "measured" / "step.csv")], "has no complete step"),
    ):
        done = subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True)
        check(done.returncode == 2 and expected in done.stderr, f"{words}: exit code {done.returncode}, {done.stderr}")


def check_pages(program, pictures):
    shown, quoted = set(), 0
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        for alternative, name in re.findall(r"!\[([^\]]*)\]\(\.\./images/concepts/([^)]*)\)", text):
            check(len(alternative) > 20, f"{page.name}: {name} has no text")
            shown.add(name)
        for concept, block in re.findall(r"pictures text (\S+)\n```\n\n```text\n(.*?)```", text, re.DOTALL):
            printed = run(program, "text", concept).splitlines()
            for line in block.splitlines():
                check(line == "..." or line in printed, f"{page.name}: '{line}' is not among what pictures text {concept} prints")
            quoted += 1
    check(shown == pictures, f"pictures that no page shows, or shown ones that there are not: {shown ^ pictures}")
    check(quoted >= 7, f"only {quoted} blocks of output are quoted by pages")


def check_measured():
    for file in sorted((IMAGES / "measured").iterdir()):
        notes = [line for line in file.read_text().splitlines() if line.startswith("# ")]
        check(any(re.match(r"# measured on \d{4}-\d\d-\d\d, \S", note) for note in notes), f"{file.name}: when, and where?")


program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
check_pages(program, check_pictures(program, folder))
check_refusals(program, folder)
check_measured()
