#!/usr/bin/env python3
"""Draws the figures of docs/tutorial that no program of the project draws by itself.

    scripts/tutorial_figures.py FOLDER [IMAGES]

FOLDER is where tests/consumer/check_tutorial.py has followed the pages: the programs that are run are in its build/. The runs of page 6 are in
its runs/, by the command above the page's figure.
Writes line-fit.svg, own-layer.svg, precision.svg and tile.svg to IMAGES, by default docs/images/tutorial.
"""
import csv
import math
import pathlib
import re
import subprocess

import command_line
from svg import COLOURS, FAINT, GRID, INK, path, svg, text

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT, TOP, WIDTH, HEIGHT = 62, 46, 380, 200


class Chart:
    """Lines over a plane from (x0, y0) to (x1, y1); with `logarithmic`, y counts by its logarithm."""

    def __init__(self, title, x_label, x_ticks, y_ticks, logarithmic=False):
        self.value = math.log10 if logarithmic else float
        self.x0, self.x1, self.y0, self.y1 = x_ticks[0], x_ticks[-1], self.value(y_ticks[0]), self.value(y_ticks[-1])
        self.title, self.count = title, 0
        self.parts = [text(14, 26, title, 13.5, INK, weight=600), text(LEFT + WIDTH / 2, TOP + HEIGHT + 36, x_label, anchor="middle")]
        for tick in y_ticks:
            y = self.at(self.x0, tick)[1]
            self.parts += [path([(LEFT, y), (LEFT + WIDTH, y)], GRID, 1), text(LEFT - 6, y + 4, f"{tick:g}", anchor="end")]
        self.parts += [text(self.at(tick, y_ticks[0])[0], TOP + HEIGHT + 18, f"{tick:g}", anchor="middle") for tick in x_ticks]

    def at(self, x, y):
        return (LEFT + WIDTH * (x - self.x0) / (self.x1 - self.x0), TOP + HEIGHT * (1 - (self.value(y) - self.y0) / (self.y1 - self.y0)))

    def line(self, name, points):
        colour = COLOURS[self.count % len(COLOURS)]
        self.parts += [path([self.at(x, y) for x, y in points], colour),
                       path([(LEFT + WIDTH + 16, TOP + 12 + 20 * self.count), (LEFT + WIDTH + 34, TOP + 12 + 20 * self.count)], colour),
                       text(LEFT + WIDTH + 40, TOP + 16 + 20 * self.count, name, colour=INK)]
        self.count += 1

    def dots(self, points):
        for x, y in (self.at(*point) for point in points):
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{INK}"/>')

    def svg(self):
        return svg(LEFT + WIDTH + 120, TOP + HEIGHT + 50, self.title, self.parts)


def printed(folder, program):
    return subprocess.run([f"build/{program}"], cwd=folder, capture_output=True, text=True, check=True).stdout


def line_fit(folder):
    output = printed(folder, "first_autograd_answers")
    chart = Chart("The line after 0, 5, 10, 15 and 20 steps", "x", (-2, -1, 0, 1, 2), (-4, -2, 0, 2, 4, 6))
    for step, slope, offset in re.findall(r"^ *(\d+): (\S+) x \+ (\S+),", output, re.MULTILINE):
        chart.line(f"step {step}", [(x, float(slope) * x + float(offset)) for x in (-2, 2)])
    chart.dots(zip((-2, -1, 0, 1, 2), (-3.1, -0.9, 1.2, 2.9, 4.9)))
    return chart.svg()


def own_layer(folder):
    output = printed(folder, "own_layer_answers")
    chart = Chart("Mean squared error", "step", (0, 100, 200, 300), (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1), logarithmic=True)
    for name, pattern in (("gated", r"^step +(\d+): mean squared error (\S+)"), ("ReLU", r"^ReLU, step +(\d+): (\S+)")):
        chart.line(name, [(int(step), float(loss)) for step, loss in re.findall(pattern, output, re.MULTILINE)])
    return chart.svg()


def precision(folder):
    chart = Chart("Test loss", "epoch", (1, 2, 3, 4), (1, 1.5, 2, 2.5))
    for name in ("fp32", "fp16", "bf16"):
        with open(folder / "runs" / name / "curves.csv", encoding="utf-8") as file:
            chart.line(name, [(int(row["epoch"]), float(row["test_loss"])) for row in csv.DictReader(file)])
    return chart.svg()


def tile(_):
    threads, cell, left = 4, 64, 96
    parts = [text(14, 26, "Block 1 of four threads: its numbers are x[4] to x[7]", 13.5, INK, weight=600)]

    def row(y, name, cells, first):
        parts.append(text(14, y + 25, name, 12, INK))
        for place, (words, owner) in enumerate(cells, first):
            colour = COLOURS[owner] if owner is not None else FAINT
            parts.extend([f'<rect x="{left + place * cell}" y="{y}" width="{cell - 8}" height="38" rx="4" fill="{colour}" fill-opacity="0.15" stroke="{colour}"/>',
                          text(left + place * cell + cell / 2 - 4, y + 24, words, 12, INK, "middle")])

    def arrow(start, y0, end, y1, owner):
        x0, x1 = left + start * cell + cell / 2 - 4, left + end * cell + cell / 2 - 4
        parts.append(path([(x0, y0), (x1, y1)], COLOURS[owner], 1.5))
        parts.append(f'<circle cx="{x1}" cy="{y1}" r="3" fill="{COLOURS[owner]}"/>')

    filler = [0, *range(threads), threads - 1]
    row(50, "x", [(f"x[{3 + i}]", None) for i in range(threads + 2)], 0)
    row(140, "tile", [(f"tile[{i}]", owner) for i, owner in enumerate(filler)], 0)
    row(230, "y", [(f"y[{4 + t}]", t) for t in range(threads)], 1)
    for i, owner in enumerate(filler):
        arrow(i, 88, i, 140, owner)
    for t in range(threads):
        for i in range(3):
            arrow(t + i, 178, t + 1 + (i - 1) * 0.2, 230, t)
    for t in range(threads):
        parts.append(text(left + (t + 1) * cell + cell / 2 - 4, 288, f"thread {t}", 11, COLOURS[t], "middle"))
    return svg(left + (threads + 2) * cell + 10, 304, "Four threads fill a tile of six cells and read three cells each", parts)


FIGURES = {"line-fit": line_fit, "own-layer": own_layer, "precision": precision, "tile": tile}


def main():
    parser = command_line.Parser(__doc__)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("images", nargs="?", type=pathlib.Path, metavar="IMAGES", default=ROOT / "docs/images/tutorial")
    arguments = parser.parse_args()
    arguments.images.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        (arguments.images / f"{name}.svg").write_text(draw(arguments.folder))


if __name__ == "__main__":
    command_line.run(main)
