#!/usr/bin/env python3
"""What sgd_lab prints and writes, computed again: check_sgd_lab.py text|page|browser|guide PROGRAM FOLDER

text: the lesson as text. page: its page, which has the same figures, and loads nothing. browser: the page in headless Chromium, wide
and narrow, its buttons and sliders; exit code 77 without one. guide: each command of docs/synchronous-sgd.md runs, and what is quoted below it stands in
what it prints, with numbers that are not whole within 10 %.
"""
import html
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from browser import NARROW, Browser, find_browser  # noqa: E402
from run_case import environment  # noqa: E402

RANKS = 4


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def run(program, *options):
    done = subprocess.run([program, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), timeout=100)
    check(done.returncode == 0 and not done.stderr, f"{options}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def section(text, number):
    """Section `number` of the lesson."""
    found = re.search(rf"^{number}\. .*?(?=^{number + 1}\. |\Z)", text, re.MULTILINE | re.DOTALL)
    check(found, f"no section {number} in\n{text}")
    return found[0]


def check_weights(text):
    rows = [line.split() for line in section(text, 1).splitlines()[3:] if line]
    check(len(rows) == RANKS, rows)
    check(len({row[1] for row in rows}) == RANKS, f"drawn weights are alike: {rows}")
    check({row[3] for row in rows} == {rows[0][1]} and {row[4] for row in rows} == {rows[0][2]}, f"rank 0's weights did not arrive: {rows}")


def check_batches(text):
    batches = [line.split("examples ")[1].split() for line in section(text, 2).splitlines() if ": examples " in line]
    classes = [line.split()[1:] for line in section(text, 2).splitlines() if line.strip().startswith("classes")]
    numbers = [int(word) for batch in batches for word in batch]
    check(len(batches) == RANKS and len(set(numbers)) == 8 * RANKS, f"micro-batches overlap: {batches}")
    # Image i of the drawn shapes is of class i mod 10.
    check([[str(int(word) % 10) for word in batch] for batch in batches] == classes, f"{batches} are not of classes {classes}")


def check_gradient(text):
    norms = dict(re.findall(r"^  (\S.*?)  +norm (\S+)$", section(text, 3), re.MULTILINE))
    relative = float(re.search(r"relative difference +(\S+)", text)[1])
    averaged, single = float(norms["averaged over ranks"]), float(norms["single process"])
    check(abs(averaged - single) <= relative * single + 1e-6 and relative < 32 * 6e-8, section(text, 3))
    own = [float(norm) for norm in re.findall(r"gradient norm (\S+)", text)]
    check(len(own) == RANKS and averaged <= sum(own) / RANKS, f"a mean of gradients of norms {own} has norm {averaged}")


def check_replicas(text):
    hashes = re.findall(r"rank \d: ([0-9a-f]{16})  ([0-9a-f]{16})", section(text, 4))
    check(len(hashes) == RANKS and len(set(hashes)) == 1 and hashes[0][0] != hashes[0][1], hashes)


def check_ring(text):
    """Follows the messages by hand."""
    blocks = re.split(r"^  (?:before|round .*)\n", section(text, 5), flags=re.MULTILINE)[1:]
    tables = [[[int(word) for word in row.split()] for row in re.findall(r"rank \d: ([ \d]+)$", block, re.MULTILINE)] for block in blocks]
    check(len(blocks) == 1 + 2 * (RANKS - 1), f"{len(blocks) - 1} rounds")
    values = tables[0]
    sums = [sum(column) for column in zip(*values)]
    for block, table in zip(blocks[1:], tables[1:]):
        before = [list(row) for row in values]
        messages = re.findall(r"rank (\d) -> (\d): chunk (\d), (\d+) \((added|copied)\)", block)
        check(len(messages) == RANKS, block)
        for start, end, chunk, value, how in messages:
            start, end, chunk = int(start), int(end), int(chunk)
            check(before[start][chunk] == int(value), f"rank {start} does not have {value}:\n{block}")
            values[end][chunk] = int(value) + (before[end][chunk] if how == "added" else 0)
        check(values == table, f"{values} is not what is shown:\n{block}")
    check(values == [sums] * RANKS, f"{values} are not the sums {sums}")


def check_broken(text, name, expected, distance_at_1):
    part = re.search(rf"^Left out: {name}\n.*?^Different examples.*?$", text, re.MULTILINE | re.DOTALL)[0]
    check(expected in part, f"{expected} is not in\n{part}")
    rows = [[float(word) for word in line.split()] for line in part.splitlines() if re.fullmatch(r"[ \d.]+", line)]
    check(rows[-1][0] == 20 and all(row[3] == 0.0 for row in rows), part)
    check((rows[0][4] > 0.0) == (name == "sync-init") and (rows[1][4] > 0.0) == distance_at_1, part)


def check_text(program):
    text = run(program, "--steps", "20", "--seed", "3")
    check_weights(text)
    check_batches(text)
    check_gradient(text)
    check_replicas(text)
    check_ring(text)
    check_broken(text, "sync-init", "Its replicas differ before the first step", True)
    check_broken(text, "sync-grad", "Its replicas differ from step 1 on", True)
    check_broken(text, "sampler", "Its replicas never differ; rank 0's weights and those of the intact run differ from step 1 on", False)
    check_broken(text, "order", "Its replicas differ from step 1 on", True)
    one = run(program, "--steps", "20", "--seed", "3", "--break", "sync-grad")
    check(one.count("Left out: ") == 1, one)
    without_times = [re.sub(r".*\(medians\)", "", lesson.split("7. What")[0]) for lesson in (text, one)]
    check(without_times[0] == without_times[1], "two runs of one seed differ")


def make_page(program, folder):
    """A page, and the text that was printed with it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "lesson.html"
    path.unlink(missing_ok=True)
    return path, run(program, "--steps", "20", "--html", str(path))


def cells_of(table):
    return [re.findall(r"<td[^>]*>(?:<div[^>]*></div>)?([^<]*)</td>", row) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL)][1:]


def check_page(path, text):
    page = re.sub(r">\s+<", "><", path.read_text())
    check(text.endswith(f"page  {path}\n") and len(page) < 1_000_000, f"{len(page)} characters")
    check(not re.search(r"(?:src|href)=.(?!data:)|url\(|@import|https?://(?!www.w3.org)", page), "the page asks for something")
    for pattern in (r"[0-9a-f]{16}", r"gradient norm \S+", r"Its replicas .*\.", r"\(medians\)"):
        for figure in re.findall(pattern, text):
            check(figure in html.unescape(page), f"{figure} of the text is not on the page")
    relative = re.search(r"relative difference +(\S+)", text)[1]
    check(f"<span>Relative difference</span><b>{relative}</b>" in page, f"relative difference {relative}")
    # The ring: each sum is that of its parts, and the last round has the sums of the first table.
    rounds = [cells_of(table) for table in re.findall(r"<table>(.*?)</table>", page.split('id="ring"')[1].split("</ol>")[0], re.DOTALL)]
    check(len(rounds) == 1 + 2 * (RANKS - 1), f"{len(rounds)} tables")
    added = re.findall(r">(\d+) \+ (\d+) = (\d+)<", page)
    check(len(added) == RANKS * (RANKS - 1) and all(int(a) + int(b) == int(c) for a, b, c in added), added)
    sums = [str(sum(map(int, column))) for column in zip(*rounds[0])]
    check(rounds[-1] == [sums] * RANKS, f"{rounds[-1]} are not the sums {sums}")
    # Speed-up: N batches in the time of computing and exchanging.
    compute = float(re.search(r'id="compute">([\d.]+)<', page)[1])
    rows = cells_of(re.search(r'<table id="speed">(.*?)</table>', page, re.DOTALL)[1])
    check([row[0] for row in rows] == ["1", "2", "4", "8", "16", "32", "64"], rows)
    for ranks, exchange, factor, _ in rows:
        expected = int(ranks) * compute / (compute + float(exchange))
        check(abs(float(factor) - expected) <= 0.005 + 0.002 * expected, f"{ranks} ranks: {factor} is not {expected}")


def check_in_browser(path):
    program = find_browser()
    if program is None:
        print("skipped: no Chromium here (apt-get install chromium)")
        sys.exit(77)
    shown = "[...document.querySelectorAll('#ring > li')].map(e => e.hidden ? 0 : 1).join('')"
    table = "document.getElementById('speed').innerText"
    with Browser(program) as browser:
        for width in (1280, NARROW):
            browser.show(width)
            browser.open(path.resolve().as_uri())
            faults = browser.faults() + browser.too_wide()
            check(not faults, f"{width} px: {faults}")
            check(browser.evaluate(shown) == "1000000", browser.evaluate(shown))
            browser.evaluate("for (let i = 0; i < 6; ++i) document.getElementById('next').click()")
            check(browser.evaluate(shown) == "0000001" and browser.evaluate("document.getElementById('next').disabled"), "the last round")
            browser.evaluate("document.getElementById('back').click()")
            check(browser.evaluate(shown) == "0000010", browser.evaluate(shown))
            check(not browser.too_wide(), f"round 5 at {width} px: {browser.too_wide()}")
            written = [[cell.strip() for cell in row] for row in cells_of(re.search(r'<table id="speed">(.*?)</table>', path.read_text(), re.DOTALL)[1])]
            now = [line.split() for line in browser.evaluate(table).splitlines() if line[:1].isdigit()]
            check(now == [row[:3] for row in written], f"the script computes {now}, the page has {written}")
            for slider, place in (("batch", 0), ("weights", 3), ("gigabits", 0)):
                browser.evaluate(f"{{ const s = document.getElementById('{slider}'); s.value = {place}; s.oninput(); }}")
            slower = [line.split() for line in browser.evaluate(table).splitlines() if line[:1].isdigit()]
            check(float(slower[-1][2]) < float(now[-1][2]), f"a slower network and smaller batches: {slower}")
            check(not browser.faults() and not browser.too_wide(), f"{browser.faults()} {browser.too_wide()}")


def is_alike(quoted, printed):
    if quoted == printed:
        return True
    try:
        return "." in quoted and math.isclose(float(quoted), float(printed), rel_tol=0.1, abs_tol=1e-6)
    except ValueError:
        return False


def check_guide(program, folder):
    folder.mkdir(parents=True, exist_ok=True)
    program = os.path.abspath(program)
    os.chdir(folder)
    printed, commands, quoted = [], 0, 0
    for kind, block in re.findall(r"^ *```(sh|text)\n(.*?)^ *```$", (ROOT / "docs/synchronous-sgd.md").read_text(), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            words = line.split()
            if kind == "sh":
                words = shlex.split(line)
                check(words[0] == "build/cpu/apps/sgd_lab", line)
                printed = [row.split() for row in run(program, *words[1:]).splitlines()]
                commands += 1
                continue
            found = any(len(row) == len(words) and all(map(is_alike, words, row)) for row in printed)
            check(found, f"docs/synchronous-sgd.md: not printed by the command above: {line}")
            quoted += 1
    check(commands >= 6 and quoted >= 20, f"{commands} commands, {quoted} lines")


def main():
    what, program, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    if what == "text":
        check_text(program)
        return
    if what == "guide":
        check_guide(program, folder)
        return
    path, text = make_page(program, folder)
    if what == "page":
        check_page(path, text)
    else:
        check_in_browser(path)


main()
