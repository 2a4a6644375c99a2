#!/usr/bin/env python3
"""Makes a folder for examples/image_folder.cpp: FOLDER/{train,test}/{horizontal,vertical}/*.png, stripes of random width
and place in images of two sizes. Nothing but Python's standard library.

    make_image_folder.py FOLDER
"""
import pathlib
import random
import struct
import sys
import zlib


def png(rows):
    """A PNG file of RGB rows."""
    def chunk(name, contents):
        return struct.pack(">I", len(contents)) + name + contents + struct.pack(">I", zlib.crc32(name + contents))
    header = struct.pack(">2I5B", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def stripes(generator, vertical):
    height, width = generator.choice([(24, 32), (40, 40)])
    period, phase = generator.randint(6, 10), generator.randint(0, 9)
    return [b"".join(bytes([60 + 120 * ((((x if vertical else y) + phase) // (period // 2)) % 2) + generator.randint(-20, 20)]) * 3
                     for x in range(width)) for y in range(height)]


generator = random.Random(1)
for split, count in ("train", 48), ("test", 20):
    for name in "horizontal", "vertical":
        folder = pathlib.Path(sys.argv[1]) / split / name
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"{number:03}.png").write_bytes(png(stripes(generator, name == "vertical")))
