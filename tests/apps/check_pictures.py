#!/usr/bin/env python3
"""The pictures and the numbers of docs/concepts: check_pictures.py PROGRAM FOLDER

Pictures are drawn again to FOLDER and must be those of docs/images/concepts, byte for byte: small, and with a text for those who cannot
see them. Each is shown by a page, with a text. Blocks of output in a page have lines of what `pictures text CONCEPT` prints for it, but for messages of errors.
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
MESSAGES = ("simulator: ", "backward: ")  # check_turns.py and the tests of autograd compare these
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


def check_broken_figures(program, folder):
    """Of a folder like the project's, with one measured file that is not as it should be."""
    measured = folder / "broken" / "docs" / "images" / "concepts" / "measured"
    measured.mkdir(parents=True, exist_ok=True)
    for file in (IMAGES / "measured").iterdir():
        (measured / file.name).write_text(file.read_text())
    for name, text, expected in (
        ("gradients.csv", "-3,1,2\n", "has no line that begins with '# ', or no row"),
        ("gradients.csv", "# measured\n-3,1,2\n-2,1\n", "'-2,1' has 2 words, the rows before 3"),
        ("step.csv", "# measured\ncomputes,forward,0.1,x1\n", "'x1' is no number"),
        ("turns-with-race.csv", "# measured\n0,0,writes,0\n1,1,reads,0\n", "the last access races with none"),
        ("loss-scale.csv", "# measured\n1,2,1\n", "a row has 3 words, not 4"),
        ("turns.csv", None, "turns.csv: cannot open"),
    ):
        kept = (measured / name).read_text()
        (measured / name).write_text(text) if text else (measured / name).unlink()
        done = subprocess.run([program, "draw", "."], cwd=folder / "broken", capture_output=True, text=True)
        check(done.returncode == 2 and expected in " ".join(done.stderr.split()), f"{name}: exit code {done.returncode}, {done.stderr}")
        (measured / name).write_text(kept)


def check_pages(program, pictures):
    shown, quoted = set(), 0
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        for alternative, name in re.findall(r"!\[([^\]]*)\]\(\.\./images/concepts/([^)]*)\)", text):
            check(len(alternative) > 20, f"{page.name}: {name} has no text")
            shown.add(name)
        printed = run(program, "text", page.stem).splitlines() if page.stem != "README" else []
        for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL):
            if block.startswith(MESSAGES):
                continue
            for line in block.splitlines():
                check(line == "..." or line in printed, f"{page.name}: '{line}' is not among what pictures text {page.stem} prints")
            quoted += 1
    check(shown == pictures, f"pictures that no page shows, or shown ones that there are not: {shown ^ pictures}")
    check(quoted >= 15, f"only {quoted} blocks of output are quoted by pages")


def check_measured():
    for file in sorted((IMAGES / "measured").iterdir()):
        notes = [line for line in file.read_text().splitlines() if line.startswith("# ")]
        check(any(re.match(r"# measured on \d{4}-\d\d-\d\d, \S", note) for note in notes), f"{file.name}: when, and where?")


program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
check_pages(program, check_pictures(program, folder))
check_refusals(program, folder)
check_broken_figures(os.path.abspath(program), folder)
check_measured()
