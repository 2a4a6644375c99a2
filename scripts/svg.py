"""Pieces of pictures in SVG."""

COLOURS = ("#3b6fb6", "#c4572f", "#2f8f5b", "#8a5fb0", "#7a7f87")
INK, FAINT, GRID = "#1d2127", "#69707b", "#e3e6ea"


def svg(width, height, title, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{title}" font-family="Helvetica, Arial, sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def text(x, y, words, size=11, colour=FAINT, anchor="start", weight=400):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


def path(points, colour, width=2):
    steps = " ".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path d="{steps}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'
