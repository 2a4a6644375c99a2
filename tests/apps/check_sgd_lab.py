#!/usr/bin/env python3
"""What sgd_lab prints and writes, computed again: check_sgd_lab.py text|page|browser|guide PROGRAM FOLDER

text: the lesson as text. page: its page, which has the same figures, and loads nothing. browser: the page in headless Chromium, wide
and narrow, its buttons and sliders by mouse and keyboard, without script, and without motion; exit code 77 without one. guide: each command of docs/synchronous-sgd.md runs, and what is quoted below it stands in
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
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from browser import NARROW, Browser, find_browser  # noqa: E402
from run_case import environment  # noqa: E402
from terminal import open_terminal, parts_of  # noqa: E402

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


def rows_of(text, number, name):
    """The figures of a row of section `number`'s table, behind its name."""
    found = re.search(rf"^  {re.escape(name)}  +(.*)$", section(text, number), re.MULTILINE)
    check(found, f"no row {name} in\n{section(text, number)}")
    return found[1].split()


def check_times(text):
    """alpha=100us beta=2.5Gbit is the network that is usual here."""
    part = section(text, 6)
    weights = int(re.search(r"(\d+) weights", part)[1])
    t_comp = float(rows_of(text, 6, "none")[1])
    least = 0.1 + 1e3 * 4 * weights / (2.5e9 / 8)  # ms, of two ranks
    for name in ("behind", "beside"):
        _, step, predicted, computes, exchange, waits, hidden, _ = rows_of(text, 6, name)
        check(abs(float(computes) + float(waits) - float(step)) < 0.0021, part)
        check(float(exchange) > 0.99 * least, f"{exchange} ms are less than the {least} ms of the formula\n{part}")
        check(abs(100 * (1 - float(waits) / float(exchange)) - float(hidden)) <= 0.6, part)
        if name == "behind":
            # The bucket is full a moment before the backward pass ends.
            check(0.8 * least < float(predicted) - t_comp < 1.02 * least, f"{predicted} is not {t_comp} + {least}\n{part}")


def check_speed_ups(text):
    """Recomputes speed-ups from the times in the table, and exchanges by their formulas."""
    part, t_comp = section(text, 7), float(rows_of(text, 6, "none")[1])
    transfer = 1e3 * 4 * int(re.search(r"(\d+) weights", text)[1]) / (2.5e9 / 8)
    for ranks in (2, 4, 8, 16, 32, 64):
        row = rows_of(text, 7, str(ranks))
        predicted, clock, behind = (float(word) for word in row[1:4])
        check(abs(behind - ranks * t_comp / (t_comp + predicted)) < 0.006 + 0.005 * behind, f"{ranks} ranks: {row}")
        least = 2 * (ranks - 1) / ranks * transfer
        check(clock > 0.99 * least and clock < least + 2 * (ranks - 1) * 0.1 + 0.5, f"{ranks} ranks: {clock} ms, and {least} ms without latency")
    step = {name: float(rows_of(text, 6, name)[1]) for name in ("behind", "beside")}
    measured = rows_of(text, 7, "2")[4], rows_of(text, 7, "2")[6]
    for factor, name in zip(measured, step):
        check(abs(float(factor) - 2 * t_comp / step[name]) < 0.006, f"{name}: {factor}\n{part}")


def check_batch_sizes(text, steps):
    """The largest batch divides what runs take of the `steps`."""
    part, steps = section(text, 8), steps // 8 * 8
    check(f"Each run has seen the same examples, {8 * RANKS * steps} in all: " in " ".join(part.split()), part)
    rows = [rows_of(text, 8, f"{factor} x batch") for factor in (1, 2, 4, 8)]
    check([row[:2] for row in rows] == [[str(8 * RANKS * factor), str(steps // factor)] for factor in (1, 2, 4, 8)], part)
    check([float(row[3]) for row in rows] == [0.02, 0.04, 0.08, 0.16] and rows[0][2] == rows[0][4], part)
    first = float(re.search(r"brings the loss from ([\d.]+)", part)[1])
    shares = re.search(r": (-?\d+) % and (-?\d+) % of what", part)
    gains = [first - float(rows[3][column]) for column in (2, 4)]
    check(shares and all(abs(int(share) - 100 * gain / (first - float(rows[0][2]))) < 1.5 for share, gain in zip(shares.groups(), gains)), part)


def check_broken(text, name, expected, distance_at_1):
    part = re.search(rf"^Left out: {name}\n.*?^Different examples.*?$", text, re.MULTILINE | re.DOTALL)[0]
    check(expected in part, f"{expected} is not in\n{part}")
    rows = [[float(word) for word in line.split()] for line in part.splitlines() if re.fullmatch(r"[ \d.]+", line)]
    check(rows[-1][0] == 40 and all(row[3] == 0.0 for row in rows), part)
    check((rows[0][4] > 0.0) == (name == "sync-init") and (rows[1][4] > 0.0) == distance_at_1, part)


def check_terminal(program):
    """Lines fit the terminal, and rows of tables are not broken."""
    terminal, end = open_terminal(80)
    with subprocess.Popen([program, "--steps", "10"], stdout=end, stderr=subprocess.STDOUT, env=environment()) as process:
        os.close(end)
        text = b"".join(parts_of(terminal)).decode().replace("\r", "")
    check(process.returncode == 0 and max(map(len, text.splitlines())) <= 80, text)
    check(len(rows_of(text, 6, "beside")) == 8 and len(rows_of(text, 7, "64")) == 5 and len(rows_of(text, 8, "8 x batch")) == 5, text)
    check("\033" not in text, "colours")


def check_text(program):
    text = run(program, "--steps", "40", "--seed", "3")
    check_weights(text)
    check_batches(text)
    check_gradient(text)
    check_replicas(text)
    check_ring(text)
    check_terminal(program)
    check_times(text)
    check_speed_ups(text)
    check_batch_sizes(text, 40)
    check_batch_sizes(run(program, "--steps", "47", "--chapter", "batch-size"), 47)
    check_broken(text, "sync-init", "Its replicas differ before the first step", True)
    check_broken(text, "sync-grad", "Its replicas differ from step 1 on", True)
    check_broken(text, "sampler", "Its replicas never differ; rank 0's weights and those of the intact run differ from step 1 on", False)
    check_broken(text, "order", "Its replicas differ from step 1 on", True)
    one = run(program, "--steps", "40", "--seed", "3", "--chapter", "broken", "--break", "sync-grad")
    check(one.count("Left out: ") == 1 and one.count("Left out: sync-grad") == 1 and "1. Initial" not in one, one)
    check(one.split("Left out: sync-grad")[1].strip() in text, "two runs of one seed differ")
    for chapter, numbers in (("step", "1234"), ("ring", "5"), ("time", "6"), ("speed-up", "7"), ("batch-size", "8"), ("broken", "9")):
        alone = run(program, "--steps", "2", "--ranks", "2", "--chapter", chapter)
        check("".join(re.findall(r"^(\d)\. ", alone, re.MULTILINE)) == numbers, f"--chapter {chapter}:\n{alone}")


def make_page(program, folder):
    """A page, and the text that was printed with it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "lesson.html"
    path.unlink(missing_ok=True)
    return path, run(program, "--steps", "20", "--html", str(path), "--pictures", str(folder))


def cells_of(table):
    return [re.findall(r"<td[^>]*>(?:<div[^>]*></div>|<span[^>]*>[^<]*</span>)?\s*([^<]*?)\s*</td>", row) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL)][1:]


def check_page(path, text):
    page = re.sub(r">\s+<", "><", path.read_text())
    check(f"\npage  {path}\n" in text and len(page) < 1_000_000, f"{len(page)} characters")
    check(not re.search(r"(?:src|href)=.(?!data:)|url\(|@import|https?://(?!www.w3.org)", page), "the page asks for something")
    shown = re.sub(r"^Left out: .*?^Its ", "Its ", text, flags=re.MULTILINE | re.DOTALL)  # the page has curves
    for pattern in (r"[0-9a-f]{16}", r"gradient norm \S+", r"Its replicas .*\.", r"^.*\(medians\).*$", r"^T_comp, .*$", r"^N ranks compute .*$",
                    r"^The batch of .*$", r"\d+\.\d+(?= )"):
        for figure in re.findall(pattern, shown, re.MULTILINE):
            check(figure in html.unescape(page), f"{figure} of the text is not on the page")
    relative = re.search(r"relative difference +(\S+)", text)[1]
    check(f"<span>Relative difference</span><b>{relative}</b>" in page, f"relative difference {relative}")
    # The ring: each sum is that of its parts, and the last round has the sums of the first table.
    rounds = [cells_of(table) for table in re.findall(r"<table>(.*?)</table>", page.split('id="ring"')[1].split("</ol>")[0], re.DOTALL)]
    check(len(rounds) == 1 + 2 * (RANKS - 1), f"{len(rounds)} tables")
    added = re.findall(r">(\d+) \+ (\d+) = </span>\s*(\d+)\s*<", page)
    check(len(added) == RANKS * (RANKS - 1) and all(int(a) + int(b) == int(c) for a, b, c in added), added)
    sums = [str(sum(map(int, column))) for column in zip(*rounds[0])]
    check(rounds[-1] == [sums] * RANKS, f"{rounds[-1]} are not the sums {sums}")
    # Pictures: a file for each, of its own colours.
    names = re.search(r"^pictures  \S+: (.*)$", text, re.MULTILINE)[1].split()
    check(len(names) == 10 and all("var(" not in (path.parent / name).read_text() for name in names), names)
    for name in names:
        xml.etree.ElementTree.parse(path.parent / name)
    # Sliders: N batches in the time of computing and exchanging.
    compute = float(re.search(r'id="compute">([\d.]+)<', page)[1])
    rows = cells_of(re.search(r'<table id="speed">(.*?)</table>', page, re.DOTALL)[1])
    check([row[0] for row in rows] == ["1", "2", "4", "8", "16", "32", "64"], rows)
    for ranks, exchange, factor, _ in rows:
        expected = int(ranks) * compute / (compute + float(exchange))
        check(abs(float(factor) - expected) <= 0.005 + 0.002 * expected, f"{ranks} ranks: {factor} is not {expected}")


SHOWN = "[...document.querySelectorAll('#ring > li')].map(e => e.offsetHeight > 0 ? 1 : 0).join('')"
SLIDERS = "document.getElementById('speed').innerText"


def speed_rows(browser):
    return [line.split() for line in browser.evaluate(SLIDERS).splitlines() if line[:1].isdigit()]


def press(browser, key):
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"ArrowLeft": 37, "ArrowRight": 39, "Tab": 9, "Enter": 13}[key],
                     **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))


def focused(browser):
    return browser.evaluate("document.activeElement.id")


def check_ring_buttons(browser, width):
    check(browser.evaluate(SHOWN) == "1000000", browser.evaluate(SHOWN))
    browser.evaluate("for (let i = 0; i < 6; ++i) document.getElementById('ring-Next').click()")
    check(browser.evaluate(SHOWN) == "0000001" and browser.evaluate("document.getElementById('ring-Next').disabled"), "the last round")
    browser.evaluate("document.getElementById('ring-Back').click()")
    check(browser.evaluate(SHOWN) == "0000010", browser.evaluate(SHOWN))
    check(not browser.too_wide(), f"round 5 at {width} px: {browser.too_wide()}")


def check_sliders(browser, path):
    written = [[cell.strip() for cell in row] for row in cells_of(re.search(r'<table id="speed">(.*?)</table>', path.read_text(), re.DOTALL)[1])]
    now = speed_rows(browser)
    check(now == [row[:3] for row in written], f"the script computes {now}, the page has {written}")
    for slider, place in (("batch", 0), ("weights", 3), ("gigabits", 0)):
        browser.evaluate(f"{{ const s = document.getElementById('{slider}'); s.value = {place}; s.oninput(); }}")
    slower = speed_rows(browser)
    names = {slider: browser.evaluate(f"[...document.getElementById('{slider}').labels].map(label => label.textContent).join()")
             for slider in ("batch", "weights", "gigabits", "microseconds")}
    check(list(names.values()) == ["Batch of a rank", "Weights", "Bandwidth, Gbit/s", "Latency, \u00b5s"], f"sliders are called {names}")
    check(float(slower[-1][2]) < float(now[-1][2]), f"a slower network and smaller batches: {slower}")


def check_keyboard(browser):
    """From the first button to the last slider by the Tab key alone."""
    browser.evaluate("document.getElementById('ring-Next').focus()")
    press(browser, "Enter")
    check(browser.evaluate(SHOWN) == "0100000", "Enter on Next")
    seen = []
    for _ in range(12):
        press(browser, "Tab")
        seen.append(focused(browser))
        if seen[-1] == "microseconds":
            break
    check([name for name in seen if name] == ["ring-Play", "batch", "weights", "gigabits", "microseconds"], f"Tab goes to {seen}")
    before = speed_rows(browser)
    press(browser, "ArrowRight")  # 25 to 100 us
    text = browser.evaluate("document.getElementById('microseconds').getAttribute('aria-valuetext')")
    check(text == browser.evaluate("document.getElementById('microseconds-value').textContent") == "100", text)
    check(all(float(now[1]) > float(row[1]) for now, row in zip(speed_rows(browser)[1:], before[1:])), "a longer latency by the keyboard")
    press(browser, "ArrowLeft")
    check(speed_rows(browser) == before, "and back")


def check_motion(browser, url):
    animation = "getComputedStyle(document.querySelector('#ring li:nth-child(2) .message')).animationName"
    for motion, name in (("no-preference", "send"), ("reduce", "none")):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": motion}])
        browser.open(url)
        browser.evaluate("document.getElementById('ring-Next').click()")
        has_play = browser.evaluate("document.getElementById('ring-Play').offsetHeight > 0")
        check(browser.evaluate(animation) == name and has_play == (name == "send"), f"prefers-reduced-motion: {motion}: {browser.evaluate(animation)}")
    browser.call("Emulation.setEmulatedMedia", features=[], media="print")
    check(browser.evaluate(SHOWN) == "1111111", "on paper all rounds are shown")
    browser.call("Emulation.setEmulatedMedia", features=[], media="")
    opened = "[...document.querySelectorAll('details')].filter(answer => answer.open).length"
    browser.evaluate(f"window.onbeforeprint = () => {{ window.printed = {opened}; }}")
    browser.print()
    answers = browser.evaluate("document.querySelectorAll('details').length")
    check(answers >= 8 and browser.evaluate("window.printed") == answers, f"{browser.evaluate('window.printed')} of {answers} answers are printed")
    check(browser.evaluate(opened) == 0, "answers stay open behind printing")


def check_without_script(browser, url):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(url)
    check(browser.evaluate(SHOWN) == "1111111", "without script all rounds are shown")
    for name in ("ring-controls", "sliders"):
        check(browser.evaluate(f"document.getElementById('{name}').offsetHeight") == 0, f"{name} does nothing without script")
    check(not browser.too_wide(), browser.too_wide())
    browser.call("Emulation.setScriptExecutionDisabled", value=False)


def check_in_browser(path):
    program = find_browser()
    if program is None:
        print("skipped: no Chromium here (apt-get install chromium)")
        sys.exit(77)
    url = path.resolve().as_uri()
    with Browser(program) as browser:
        for width in (1280, NARROW):
            browser.show(width)
            browser.open(url)
            faults = browser.faults() + browser.too_wide()
            check(not faults, f"{width} px: {faults}")
            check_ring_buttons(browser, width)
            check_sliders(browser, path)
            check(not browser.faults() and not browser.too_wide(), f"{browser.faults()} {browser.too_wide()}")
            browser.open(url)
            check_keyboard(browser)
            check_without_script(browser, url)
            check_motion(browser, url)


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
    for path in pathlib.Path().glob("*.svg"):
        path.unlink()
    printed, commands, quoted, page = [], 0, 0, (ROOT / "docs/synchronous-sgd.md").read_text()
    for kind, block in re.findall(r"^ *```(sh|text)\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            words = line.split()
            if kind == "sh":
                words = shlex.split(line)
                check(words[0] == "build/cpu/apps/sgd_lab", line)
                printed = [row.split() for row in run(program, *words[1:]).splitlines()]
                commands += 1
                continue
            rest = words[-1] == "..."  # figures that are others in every run
            words = words[:-1] if rest else words
            found = any((len(row) >= len(words) if rest else len(row) == len(words)) and all(map(is_alike, words, row)) for row in printed)
            check(found, f"docs/synchronous-sgd.md: not printed by the command above: {line}")
            quoted += 1
    check(commands >= 10 and quoted >= 28, f"{commands} commands, {quoted} lines")
    check_pictures(page)


def check_pictures(page):
    """The guide has the pictures that its first command writes, and shows each. Those of whole numbers are the same in every run."""
    kept = ROOT / "docs/images/synchronous-sgd"
    names = sorted(path.name for path in pathlib.Path().glob("*.svg"))
    check(names == sorted(path.name for path in kept.iterdir()), f"{kept} has not what is written: {names}")
    for name in names:
        check(f"images/synchronous-sgd/{name})" in page, f"docs/synchronous-sgd.md does not show {name}")
        if name.startswith("ring-"):
            check((kept / name).read_text() == pathlib.Path(name).read_text(), f"{name} is drawn otherwise now: write the pictures anew")


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
