#!/usr/bin/env python3
"""Makes the inputs that fuzzers begin with: make_corpora.py FOLDER: a folder for each target, of small files in order."""

import gzip
import json
import pathlib
import struct
import sys
import zlib

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
    tensors.append(("trainer.best_epoch", "F64", [5], struct.pack("<5d", 0, 0, 0, float("-inf"), float("-inf"))))
    return safetensors(tensors)


def png(width, height, colour, rows):
    """Of bytes per row as they are stored."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    body = b"".join(b"\0" + row for row in rows)
    palette = chunk(b"PLTE", bytes(range(12))) if colour == 3 else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)) + palette +
            chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b""))


def jpeg():
    """8 x 8 pixels of grey, baseline, with the shortest Huffman tables: every coefficient is 0."""
    segment = lambda kind, data: b"\xff" + bytes([kind]) + struct.pack(">H", len(data) + 2) + data
    table = lambda number: bytes([number, 1]) + bytes(15) + b"\0"  # one code, of one bit, for the symbol 0
    return (b"\xff\xd8" + segment(0xdb, b"\0" + bytes([1] * 64)) + segment(0xc0, struct.pack(">BHHBBBB", 8, 8, 8, 1, 1, 0x11, 0)) +
            segment(0xc4, table(0x00)) + segment(0xc4, table(0x10)) + segment(0xda, bytes([1, 1, 0, 0, 63, 0])) + b"\x3f\xff\xd9")


def report_files():
    """A byte for the file's name (fuzz_report.cpp), and what is in it."""
    log = [{"record": "run", "started": "2026-01-31T12:00:00Z", "model": "small_cnn", "config": {"epochs": 2, "lr": 0.1},
            "versions": {"tandem": "0.1.0"}, "world_size": 2, "global_batch_size": 16, "steps_per_epoch": 2},
           {"record": "step", "step": 1, "lr": 0.1, "loss": 2.3},
           {"record": "epoch", "epoch": 1, "lr": 0.1, "train_loss": 2.2, "train_accuracy": 20.0, "test_loss": 2.1,
            "test_accuracy": 22.0, "seconds": 1.5, "time": {"data": 0.1, "forward": 0.5}, "memory": {"data": 1000},
            "layers": [{"name": "0", "gradient_norm": 1.0}]},
           {"record": "epoch", "epoch": 2, "train_loss": None},
           {"record": "result", "total_seconds": 3.5, "peak_tensor_bytes": {"data": 1000}}]
    evaluation = {"split": "test", "epoch": 2, "images": 4, "loss": 2.0, "accuracy": 50.0, "classes": ["cat", "dog"],
                  "confusion": [[1, 1], [1, 1]], "per_class": [{"class": "cat", "accuracy": 50.0}],
                  "calibration": {"ece": 0.1, "bins": [{"from": 0, "to": 1, "images": 4, "confidence": 0.6, "accuracy": 0.5}]},
                  "worst": [{"index": 3, "label": 0, "predicted": 1, "confidence": 0.9, "loss": 3.0, "png": "iVBORw0KGgo="}]}
    environment = {"state": "finished", "exit_code": 0, "command": ["cifar_train", "--lr", "0.1 <b>"], "git": {"dirty": True},
                   "devices": [{"device": "cpu", "units": 2}], "model": "small_cnn", "dataset": "synthetic"}
    return [b"\0" + "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in log).encode(),
            b"\1" + json.dumps(evaluation).encode(), b"\2model = \"small_cnn\"\nlr = 0.1\n", b"\3" + json.dumps(environment).encode()]


def corpora():
    images = struct.pack(">IIII", 0x803, 2, 3, 3) + bytes(range(18))
    config = 'model = "resnet18"\nlr = 1e-3\nepochs = 30\nnesterov = true\n[data]\nlimit-train = 1_000\n'
    points = [[4, 1e-6], [131072, 3e-5]]
    costs = {"format": "tandem message costs", "version": 1,
             "groups": [{"key": "two", "start": 1e-7, "overhead": 1e-7, "shared_cores": 2, "within_host": points, "between_hosts": points, "combine": points}]}
    tuning = {"format": "tandem convolution tuning", "version": 2, "machine": "this machine", "passes": []}
    return {
        "safetensors": [safetensors([("w", "F32", [2, 3], bytes(24)), ("n", "I64", [], bytes(8)), ("h", "BF16", [3], bytes(6)),
                                     ("none", "U8", [0, 4], b"")], {"format": "pt"}), safetensors([])],
        "training_state": [training_state()],
        "cifar": [bytes([3, 99]) + bytes(3072)],
        "idx": [images, gzip.compress(images, mtime=0), struct.pack(">II", 0x801, 2) + bytes([4, 5])],
        "config": [config.encode(), b"a.b = 'c'\r\n\"d\" = -0.5e+1\n"],
        "image": [png(5, 3, 2, [bytes(range(15))] * 3), png(3, 2, 3, [bytes([0, 1, 2])] * 2), png(2, 2, 6, [bytes(8)] * 2),
                  png(4, 1, 0, [bytes(4)]), jpeg()],
        "report": report_files(),
        "tuning": [json.dumps(tuning).encode()],
        "message_costs": [json.dumps(costs).encode()],
    }


def main():
    for target, files in corpora().items():
        folder = pathlib.Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(files):
            (folder / f"good{number}").write_bytes(content)


main()
