#!/usr/bin/env python3
"""Makes the inputs that fuzzers begin with: make_corpora.py FOLDER: a folder for each target, of small files in order."""

import gzip
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent


def safetensors(tensors, metadata=None):
    """A file of (name, dtype, shape, bytes)."""
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def integer(name, value):
    return (name, "I64", [], struct.pack("<q", value))


def training_state():
    """Of tests/train/checkpoint/small_run.h behind its second step."""
    tensors = [("model.1.weight", "F32", [10, 64], bytes(2560)), ("model.1.bias", "F32", [10], bytes(40))]
    for number, (_, dtype, shape, data) in enumerate(tensors[:2]):
        tensors += [integer(f"optimizer.{number}.step", 2), (f"optimizer.{number}.momentum_buffer", dtype, shape, data)]
    counts = dict(epochs=0, epoch_steps=2, steps=2, forward_passes=2, skipped_steps=0, seed=0, global_batch_size=8,
                  accumulation=1, images_per_epoch=20)
    tensors += [integer(f"trainer.{name}", value) for name, value in counts.items()]
    tensors.append(("trainer.epoch_sums", "F64", [1, 3], struct.pack("<3d", 36.8, 2, 16)))
    return safetensors(tensors)


def corpora():
    images = struct.pack(">IIII", 0x803, 2, 3, 3) + bytes(range(18))
    config = 'model = "resnet18"\nlr = 1e-3\nepochs = 30\nnesterov = true\n[data]\nlimit-train = 1_000\n'
    tuning = {"format": "tandem convolution tuning", "version": 2, "machine": "this machine", "passes": []}
    return {
        "safetensors": [safetensors([("w", "F32", [2, 3], bytes(24)), ("n", "I64", [], bytes(8)), ("h", "BF16", [3], bytes(6)),
                                     ("none", "U8", [0, 4], b"")], {"format": "pt"}), safetensors([])],
        "training_state": [training_state()],
        "cifar": [bytes([3, 99]) + bytes(3072)],
        "idx": [images, gzip.compress(images, mtime=0), struct.pack(">II", 0x801, 2) + bytes([4, 5])],
        "config": [config.encode(), b"a.b = 'c'\r\n\"d\" = -0.5e+1\n"],
        "tuning": [json.dumps(tuning).encode()],
    }


def main():
    for target, files in corpora().items():
        folder = pathlib.Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(files):
            (folder / f"good{number}").write_bytes(content)


main()
