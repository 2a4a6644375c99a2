#!/usr/bin/env python3
"""Whole runs of cifar_train, judged by their logs and weights: check_training.py PROGRAM CASE [ARGUMENT]."""
import array
import fcntl
import glob
import json
import math
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from run_case import environment, mpirun

PROGRAM = sys.argv[1]
ALONE = [PROGRAM, "--no-run-dir"]
FOLDER = tempfile.mkdtemp(prefix="tandem_training_")


def train(name, arguments, ranks=1, threads=1):
    """Trains with a log; returns its records."""
    log = os.path.join(FOLDER, name + ".jsonl")
    command = ALONE + ["--log", log, "--threads", str(threads)] + arguments.split()
    if ranks > 1:
        command = mpirun() + ["-np", str(ranks)] + command
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
                          timeout=800)
    if done.returncode != 0:
        sys.exit(f"FAILED: exit code {done.returncode}: {' '.join(command)}\n{done.stdout}")
    with open(log) as file:
        return [json.loads(line) for line in file]


def of_kind(records, kind):
    return [record for record in records if record["record"] == kind]


def path(name):
    return os.path.join(FOLDER, name)


def contents(name):
    with open(path(name), "rb") as file:
        return file.read()


def weights(name):
    """{name: floats} of a safetensors file."""
    data = contents(name)
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for key, entry in json.loads(data[8:8 + size]).items():
        if key == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        tensors[key] = array.array("f", data[8 + size + begin:8 + size + end])
    return tensors


def norm(values):
    return math.sqrt(sum(v * v for v in values))


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def check_close(first, second, bound, what):
    for name in first:
        difference = norm([a - b for a, b in zip(first[name], second[name])])
        relative = difference / max(norm(first[name]), 1e-30)
        check(relative <= bound, f"{what}: {name} differs by {relative:.2e} relative, bound {bound:.0e}")


SMALL = "--dataset synthetic --limit-train 400 --limit-test 100 --model mnist_cnn --layers 2 --epochs 1 "
EXACT = "--model mnist_cnn --layers 3 --dataset synthetic --limit-test 40 --augment none --check-replicas "


def learning():
    records = train("run", "--dataset synthetic --limit-train 3000 --limit-test 500 --model small_cnn --epochs 4 "
                           "--global-batch-size 64")
    epochs = of_kind(records, "epoch")
    losses = [epoch["train_loss"] for epoch in epochs]
    check(losses == sorted(losses, reverse=True), f"training losses do not fall: {losses}")
    check(epochs[-1]["train_accuracy"] > epochs[0]["train_accuracy"] + 20, "train accuracy does not rise")
    check(epochs[-1]["test_accuracy"] > 60, f"test accuracy is {epochs[-1]['test_accuracy']}, chance is 10")


def determinism():
    for name, extra in [("a", ""), ("b", ""), ("threads", "--threads 2"), ("seed", "--seed 2")]:
        train(name, SMALL + f"--augment crop,flip --save-weights {path(name)} " + extra)
    check(contents("a") == contents("b"), "two equal runs differ")
    check(contents("a") == contents("threads"), "the number of threads changes the result")
    check(contents("a") != contents("seed"), "the seed changes nothing")


def files():
    ranks = 2 if "TANDEM_MPIEXEC" in os.environ else 1
    # Batch norm, so that ranks have buffers to bring together before they evaluate and save.
    net = SMALL + "--model small_cnn --layers 0 "
    records = train("run", net + f"--epochs 2 --global-batch-size 40 --log-every 4 --check-replicas "
                                   f"--save-weights {path('w.safetensors')}", ranks)
    kinds = [record["record"] for record in records]
    check(kinds == ["run"] + (["step"] * 2 + ["epoch"]) + (["step"] * 3 + ["epoch"]) + ["result"], f"records: {kinds}")
    run, result, last = records[0], records[-1], of_kind(records, "epoch")[-1]
    for field in ("config", "versions", "host", "ranks", "threads", "model_parameters"):
        check(field in run, f"the run record lacks {field}")
    check(run["ranks"] == ranks and run["config"]["global-batch-size"] == 40, f"run record: {run}")
    for epoch in of_kind(records, "epoch"):
        for field in ("epoch", "lr", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "seconds",
                      "images_per_second", "world_size", "backend", "peak_memory_bytes"):
            check(epoch.get(field) is not None, f"an epoch record lacks {field}")
        check(0 <= epoch["test_accuracy"] <= 100 and epoch["peak_memory_bytes"] > 1 << 20, f"epoch record: {epoch}")
    check(all(result[field] == last[field] for field in last if field not in ("record", "time", "memory", "exchange")),
          "result and last epoch differ")
    check(result["total_seconds"] >= sum(epoch["seconds"] for epoch in of_kind(records, "epoch")), "total_seconds")
    check([step["step"] for step in of_kind(records, "step")] == [4, 8, 12, 16, 20], "step numbers")

    again = of_kind(train("again", net + f"--epochs 0 --load-weights {path('w.safetensors')}"), "result")[0]
    check(again["test_accuracy"] == result["test_accuracy"], "saved weights give another accuracy")
    check(abs(again["test_loss"] - result["test_loss"]) < 1e-5, "saved weights give another loss")
    check("train_loss" not in again and again["epoch"] == 0, "an evaluation claims to have trained")


def logs():
    """A log keeps the runs before: each adds its records, from its "run" on."""
    for _ in range(2):
        records = train("twice", SMALL)
    check([record["record"] for record in records] == ["run", "epoch", "result"] * 2, f"records: {records}")
    with open(path("twice.jsonl"), "r+b") as file:  # as a run leaves it that is killed
        file.truncate(os.path.getsize(path("twice.jsonl")) - 20)
    done = attempt(SMALL + f"--log {path('twice.jsonl')}")
    check(done.returncode == 0, done.stderr)
    for size in (0, 1, 9, 10, 11):  # or one that is killed as soon as it begins: {"record":
        with open(path("first.jsonl"), "wb") as file:
            file.write(contents("twice.jsonl")[:size])
        done = attempt(SMALL + f"--log {path('first.jsonl')}")
        check(done.returncode == 0, f"a log of {size} bytes: {done.stderr}")
        whole = contents("first.jsonl").decode().splitlines()[1 if size else 0:]
        check([json.loads(line)["record"] for line in whole] == ["run", "epoch", "result"], f"after {size} bytes: {whole}")
    lines = contents("twice.jsonl").decode().splitlines()
    check(len(lines) == 9, f"{len(lines)} lines")
    kinds = [json.loads(line)["record"] for number, line in enumerate(lines) if number != 5]
    check(kinds == ["run", "epoch", "result", "run", "epoch", "run", "epoch", "result"], f"records: {kinds}")


def attempt(arguments, limit=None):
    """Runs on one rank, whatever comes of it; `limit`: the most bytes of any file that it writes."""
    command = ALONE + ["--threads", "1"] + arguments.split()
    limited = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
                          preexec_fn=limited, timeout=800)


class Held:
    """A run that has begun to train, and cannot end before its log is read: that goes to a small pipe."""

    def __init__(self, arguments, ranks=1):
        pipe = path("pipe")
        if os.path.exists(pipe):
            os.remove(pipe)
        os.mkfifo(pipe)
        for folder in ("work", "temporary"):
            os.makedirs(path(folder), exist_ok=True)
        command = ALONE + ["--log", pipe, "--log-every", "1", "--threads", "1"] + arguments.split()
        if ranks > 1:
            command = mpirun() + ["-np", str(ranks)] + command
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        cwd=path("work"), env=dict(environment(), TMPDIR=path("temporary")))
        self.log = open(pipe)
        fcntl.fcntl(self.log, 1031, 4096)  # F_SETPIPE_SZ, for which Python 3.9 has no name

    def finish(self):
        records = [json.loads(line) for line in self.log]
        out, err = self.process.communicate(timeout=800)
        check(len(records) > 60, f"{len(records)} records do not fill the pipe: {err}")
        return self.process.returncode, out, err


def full_disks():
    """What cannot be written does not end training, is told, and takes nothing with it."""
    many = SMALL + "--layers 1 --limit-train 64 --global-batch-size 1 --lr 0.001 "
    done = attempt(many + f"--log-every 1 --log {path('full.jsonl')}", limit=6000)
    check(done.returncode == 1, f"exit code {done.returncode}: {done.stderr}")
    check("test accuracy" in done.stdout and "full.jsonl (incomplete)" in done.stdout, done.stdout)
    check(done.stderr.count("warning: log file") == 1 and re.search("File too large; .*ulimit -f.*; training goes on", done.stderr), done.stderr)
    last = done.stderr.splitlines()[-1]
    check(last.startswith("error: --log: log file") and last.endswith("records are missing"), last)
    records = [json.loads(line)["record"] for line in contents("full.jsonl").decode().splitlines()]
    check(records[0] == "run" and 10 < len(records) < 64, f"records: {records}")

    # A folder that is there when the run begins, and gone when the weights are written.
    for ranks in (1, 2) if "TANDEM_MPIEXEC" in os.environ else (1,):
        os.mkdir(path("gone"))
        run = Held(many + f"--global-batch-size 2 --epochs 3 --save-weights {path('gone/w.safetensors')}", ranks)
        os.rmdir(path("gone"))
        code, out, err = run.finish()
        check(code == 1, f"exit code {code}: {err}")
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        check(len(errors) == 1 and "there is no directory" in errors[0], err)
        found = re.search("they are in (.*/w.safetensors) instead$", errors[0])
        check(found and os.path.realpath(found[1]).startswith(os.path.realpath(path("work")) + "/tandem-weights-"), err)
        check(f"  weights  {found[1]}" in out, out)
        again = attempt(SMALL + f"--layers 1 --epochs 0 --load-weights {found[1]}")
        check(again.returncode == 0, again.stderr)
        shutil.rmtree(os.path.dirname(found[1]))

    # No room for them anywhere: what was there before stays.
    with open(path("w.safetensors"), "w") as file:
        file.write("before")
    run = Held(many + f"--save-weights {path('w.safetensors')}")
    resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    code, out, err = run.finish()
    check(code == 1 and "test accuracy" in out and "weights " not in out, f"exit code {code}: {out}")
    check("w.safetensors: cannot write: File too large" in err and "they are lost" in err, err)
    check(contents("w.safetensors") == b"before", "the file of before is changed")
    # Times that cannot be kept are told all the same.
    os.mkdir(path("gone"))
    run = Held(many + f"--autotune --tuning-file {path('gone/t.json')}")
    os.rmdir(path("gone"))
    code, out, err = run.finish()
    check(code == 1 and "--tuning-file" in err and "there is no directory" in err, f"exit code {code}: {err}")
    check(re.search(r"tuned \d+ convolution passes\n  forward .* us", out), f"the times are lost: {out}")

    left = [name for folder in (".", "work", "temporary") for name in os.listdir(path(folder)) if "tandem" in name]
    check(left == [], f"left behind: {left}")


def own_images():
    """The files that docs/data.md shows how to write are read, and learnt."""
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/data.md")
    with open(page) as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    names = {}
    exec(blocks[0], names)
    side = 12
    for split, count in (("train", 300), ("t10k", 60)):
        labels = [i % 3 for i in range(count)]
        images = [bytes(((90 * label + 7 * i + pixel) % 20) + 90 * label for pixel in range(side * side))
                  for i, label in enumerate(labels)]
        names["write_idx"](FOLDER, split, images, labels, side)
    records = train("own", f"--dataset mnist --data {FOLDER} --model small_cnn --epochs 5 --global-batch-size 20")
    check((records[0]["train_images"], records[0]["test_images"]) == (300, 60), f"run record: {records[0]}")
    check(records[0]["whitening_seconds"] == 0, f"a network without a whitening: {records[0]}")
    check(records[-1]["test_accuracy"] > 90, f"test accuracy is {records[-1]['test_accuracy']}")


def whitening():
    """Filters of a whitening layer are made of the first training images, at the start of a run and never again."""
    own_images()
    with open(path("train-images-idx3-ubyte"), "rb") as file:
        pixels = file.read()[16:]
    side, mean, deviation, eps = 12, 0.1307, 0.3081, 5e-4  # of MNIST
    images = len(pixels) // (side * side)

    def moments(count):
        """P^T P / n of 2x2 patches, which have the numbers 00 01 10 11."""
        values = [(pixel / 255 - mean) / deviation for pixel in pixels[:count * side * side]]
        sums, patches = [[0.0] * 4 for _ in range(4)], count * (side - 1) ** 2
        for image in range(count):
            for row in range(side - 1):
                for column in range(side - 1):
                    first = (image * side + row) * side + column
                    patch = [values[first + offset] for offset in (0, 1, side, side + 1)]
                    for i in range(4):
                        for j in range(4):
                            sums[i][j] += patch[i] * patch[j] / patches
        return sums

    def check_filters(name, count):
        matrix, filters = moments(count), [list(weights(name)["0.weight"][4 * i:4 * i + 4]) for i in range(8)]
        check(all(filters[4 + i] == [-value for value in filters[i]] for i in range(4)), f"{name}: no negatives: {filters}")
        last, trace = math.inf, 0.0
        for i, filter in enumerate(filters[:4]):
            # A filter is v / sqrt(lambda + eps), and v of length 1.
            value = 1 / norm(filter) ** 2 - eps
            trace += value
            check(value <= last * (1 + 1e-6) + 1e-9, f"{name}: {value} behind {last}")
            last = value
            for j, other in enumerate(filters[:4]):
                product = sum(filter[k] * matrix[k][l] * other[l] for k in range(4) for l in range(4))
                expected = value / (value + eps) if i == j else 0.0
                check(abs(product - expected) < 1e-4, f"{name}: filters {i} and {j}: {product}, not {expected}")
        whole = sum(matrix[i][i] for i in range(4))
        check(abs(trace - whole) < 1e-4 * whole, f"{name}: eigenvalues add up to {trace}, the trace is {whole}")

    net = f"--dataset mnist --data {FOLDER} --model airbench94 --width 0.0625 --global-batch-size 20 --lr 0.01 "
    train("start", net + f"--epochs 0 --save-weights {path('start')}")
    check_filters("start", images)
    run = train("end", net + f"--epochs 1 --save-weights {path('end')}")[0]
    check(run["whitening_seconds"] > 0 and run["loading_seconds"] > 0, f"seconds of the beginning: {run}")
    before, after = weights("start"), weights("end")
    check(before["0.weight"] == after["0.weight"], "training changes the filters")
    check(set(before["2.norm1.weight"]) == {1.0} == set(after["2.norm1.weight"]), "training changes weights of batch norm")
    for name in ("0.bias", "2.conv1.weight", "2.norm1.bias", "7.weight"):
        check(before[name] != after[name], f"training does not change {name}")
    train("part", net + f"--limit-train 7 --epochs 0 --save-weights {path('part')}")
    check_filters("part", 7)
    train("replicas", net + f"--epochs 1 --replicas 2 --check-replicas --augment crop,flip --save-weights {path('replicas')}")
    check(weights("replicas")["0.weight"] == before["0.weight"], "two ranks have other filters")
    # Weights that are given are kept, also where the images are others.
    run = train("loaded", net + f"--limit-train 7 --epochs 0 --load-weights {path('end')} --save-weights {path('loaded')}")[0]
    check(run["whitening_seconds"] == 0, f"weights that were loaded are made anew: {run}")
    check(weights("loaded") == after, "weights that were loaded are changed")
    # A run that goes on has the bits of one that was not interrupted; without a checkpoint --resume auto begins anew.
    run = [PROGRAM, "--threads", "1", "--progress", "none", "--run-dir", path("kept"), "--resume", "auto"] + net.split()
    for steps in (5, 20):
        done = subprocess.run(run + ["--steps", str(steps)], text=True, env=environment(), timeout=800,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode == 0, done.stdout)
        check(weights("kept/final.safetensors")["0.weight"] == before["0.weight"], f"other filters at step {steps}")
    # What was saved is classified by a network of that width.
    write_png("grey.png", [bytes([100] * 12)] * 12)
    done = subprocess.run([os.path.join(os.path.dirname(PROGRAM), "tandem"), "predict", "--weights", path("end"), path("grey.png")],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(), timeout=100)
    check(done.returncode == 0 or "built without" in done.stdout, done.stdout)


def write_png(name, rows, colours=1):
    """8 bits a colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", len(rows[0]) // colours, len(rows), 8, {1: 0, 3: 2}[colours], 0, 0, 0)
    with open(path(name), "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
                   chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def write_jpeg(name, value):
    """8 x 8 pixels of one grey, baseline: a block of its mean alone, in the shortest Huffman tables."""
    segment = lambda kind, data: b"\xff" + bytes([kind]) + struct.pack(">H", len(data) + 2) + data
    table = lambda number, symbol: bytes([number, 1]) + bytes(15) + bytes([symbol])  # one code, of one bit
    mean = value - 128  # 8 of it are the coefficient, quantised by 8
    size = abs(mean).bit_length()
    bits = "0" + format(mean if mean > 0 else mean + (1 << size) - 1, f"0{size}b") + "0"
    bits += "1" * (-len(bits) % 8)
    scan = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    with open(path(name), "wb") as file:
        file.write(b"\xff\xd8" + segment(0xdb, b"\0" + bytes([8] * 64)) +
                   segment(0xc0, struct.pack(">BHHBBBB", 8, 8, 8, 1, 1, 0x11, 0)) + segment(0xc4, table(0x00, size)) +
                   segment(0xc4, table(0x10, 0)) + segment(0xda, bytes([1, 1, 0, 0, 63, 0])) + scan + b"\xff\xd9")


def prediction():
    """Weights that were saved classify files of images, by `tandem predict`."""
    own_images()
    records = train("own", f"--dataset mnist --data {FOLDER} --model small_cnn --epochs 5 "
                           f"--global-batch-size 20 --save-weights {path('w.safetensors')}")
    check(records[-1]["test_accuracy"] > 90, f"test accuracy is {records[-1]['test_accuracy']}")
    # Grey files, one of them larger, and one in colour.
    write_png("dark.png", [bytes([8] * 12)] * 12)
    write_png("grey.png", [bytes([100] * 30)] * 24)
    write_png("bright.png", [bytes([190, 190, 190] * 12)] * 12, 3)
    files = [path(name) for name in ("dark.png", "grey.png", "bright.png")]
    tandem = os.path.join(os.path.dirname(PROGRAM), "tandem")

    def predict(*arguments):
        weights = [] if "--weights" in arguments else ["--weights", path("w.safetensors")]
        return subprocess.run([tandem, "predict", *weights, *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), timeout=100)

    done = predict("--json", "--top", "10", *files)
    check(done.returncode == 0, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check([line["file"] for line in lines] == files, done.stdout)
    check([line["classes"][0]["class"] for line in lines] == ["0", "1", "2"], done.stdout)
    for line in lines:
        probabilities = [entry["probability"] for entry in line["classes"]]
        check(abs(sum(probabilities) - 1) < 1e-5 and probabilities == sorted(probabilities, reverse=True), line)
        check(len(probabilities) == 10, line)
    if sys.argv[3:] == ["jpeg"]:
        for value, label in ((8, "0"), (100, "1"), (190, "2")):
            write_jpeg("image.jpg", value)
            done = predict("--json", path("image.jpg"))
            check(done.returncode == 0 and json.loads(done.stdout)["classes"][0]["class"] == label, f"{value}: {done}")
        with open(path("cut.jpg"), "wb") as file:
            file.write(contents("image.jpg")[:100])
        done = predict(path("cut.jpg"))
        check(done.returncode == 2 and "cut.jpg: not a sound JPEG file" in done.stderr, f"cut.jpg: {done}")
    # An image and its mirror image differ, but not in the mean over both.
    ramp = [bytes(5 * row + 15 * column for column in range(12)) for row in range(12)]
    write_png("ramp.png", ramp)
    write_png("mirrored.png", [row[::-1] for row in ramp])
    seen = []
    for views, is_same in (("none", False), ("flip", True), ("six", False)):
        done = predict("--json", "--top", "10", "--tta", views, path("ramp.png"), path("mirrored.png"))
        check(done.returncode == 0, done.stderr)
        first, second = ({entry["class"]: entry["probability"] for entry in json.loads(line)["classes"]}
                         for line in done.stdout.splitlines())
        difference = max(abs(first[name] - second[name]) for name in first)
        check((difference < 1e-6) == is_same, f"--tta {views}: {first}, {second}")
        seen.append(first)
    check(seen[0] != seen[1] != seen[2], f"views change nothing: {seen}")
    done = predict("--top", "1", files[0])
    check(re.fullmatch(r".*dark\.png +0 [0-9.]+ %\n", done.stdout), done.stdout)
    with open(path("cut.png"), "wb") as file:
        file.write(contents("dark.png")[:40])
    for name, problem in (("none.png", "none.png: "), ("cut.png", "cut.png: "), ("own.jsonl", "own.jsonl: ")):
        # The other files are classified all the same.
        done = predict("--top", "1", files[0], path(name), files[2])
        check(done.returncode == 2 and problem in done.stderr and len(done.stderr.splitlines()) == 1, f"{name}: {done}")
        check(re.fullmatch(r".*dark\.png +0 [0-9.]+ %\n.*bright\.png +2 [0-9.]+ %\n", done.stdout), f"{name}: {done}")
        done = predict("--json", path(name), files[0])
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check(done.returncode == 2 and "classes" not in lines[0] and problem in lines[0]["error"] and
              lines[1]["classes"][0]["class"] == "0", f"{name}: {done}")
    # A checkpoint's weights, too; not those that are damaged.
    subprocess.run(ALONE + f"--dataset mnist --data {FOLDER} --model small_cnn --epochs 1 --threads 1 --progress none --run-dir "
                   f"{path('kept')}".split(), check=True, env=environment(), stdout=subprocess.DEVNULL)
    weights = sorted(glob.glob(path("kept/checkpoints/*/model.safetensors")))[-1]
    done = predict("--weights", weights, files[0])
    check(done.returncode == 0 and "dark.png" in done.stdout, f"{done}")
    with open(weights, "r+b") as file:
        bytes_of = bytearray(file.read())
        bytes_of[-1] ^= 1
        file.seek(0)
        file.write(bytes_of)
    done = predict("--weights", weights, files[0])
    check(done.returncode == 2 and done.stdout == "" and "damaged" in done.stderr, f"{done}")


def run_directories():
    """Every run has a directory of its own, unless it wants none."""
    ranks = 2 if "TANDEM_MPIEXEC" in os.environ else 1
    work = path("work")
    os.mkdir(work)

    def run(arguments, code=0):
        command = (mpirun() + ["-np", str(ranks)] if ranks > 1 else []) + [PROGRAM, "--threads", "1"] + arguments.split()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
                              cwd=work, timeout=300)
        check(done.returncode == code, f"exit code {done.returncode}: {arguments}\n{done.stdout}{done.stderr}")
        return done

    def directories():
        return sorted(os.listdir(os.path.join(work, "runs")))

    small = SMALL + "--limit-train 64 --global-batch-size 16 --progress none "
    run(small + "--no-run-dir")
    check(os.listdir(work) == [], f"a run without a directory leaves {os.listdir(work)}")
    out = run(small).stdout
    (first,) = directories()
    check(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-mnist_cnn-1", first), first)
    files = os.listdir(os.path.join(work, "runs", first))
    events = [name for name in files if name.startswith("events.out.tfevents.")]
    picture = "curves.png" if "curves.png" in files else "curves.svg"  # without cairo
    kept = {"checkpoints", "config.toml", "curves.csv", "curves.svg", "environment.json", "evaluation.json",
            "final.safetensors", "log.jsonl", "report.html"}
    check(set(files) - set(events) - {"curves.png"} == kept and len(events) == 1, f"{files}")
    lines = [f"  kept in  runs/{first}", "  settings config.toml, environment.json", "  log      log.jsonl", "  tables   curves.csv",
             "  weights  final.safetensors, checkpoints", "  events   tensorboard --logdir runs", f"  report   runs/{first}/report.html"]
    check(out.splitlines()[-9:-2] == lines, out)
    check(re.fullmatch(r"test accuracy [0-9.]+% \(loss [0-9.]+\) after 1 epoch in [0-9]+s", out.splitlines()[-2]), out)
    check(out.splitlines()[-1] == f"  curves   runs/{first}/{picture}", out)
    with open(os.path.join(work, "runs", first, "environment.json")) as file:
        told = json.load(file)
    check(told["state"] == "finished" and len(told["ranks"]) == ranks and told["folder"] == os.path.realpath(work), f"{told}")

    # Its settings are the same run, in a directory of its own.
    run(f"--config runs/{first}/config.toml")
    check(directories() == [first, first[:-1] + "2"], f"{directories()}")
    again = contents(f"work/runs/{first[:-1]}2/final.safetensors")
    check(contents(f"work/runs/{first}/final.safetensors") == again, "config.toml is another run")

    # Weights that are put elsewhere, too, and a name that the files could not hold.
    out = run(small + "--run-dir both --save-weights copy.safetensors").stdout
    check("  weights  final.safetensors, copy.safetensors, checkpoints\n" in out, out)
    check(contents("work/both/final.safetensors") == contents("work/copy.safetensors") == again, "weights differ")
    check(": is no UTF-8 text" in run(small + "--run-dir caf\udce9", code=2).stderr, "accepted")

    # Both have come to their end: a new one begins. One that has not is gone on with.
    out = run(small + "--resume auto").stdout
    check("  resume   no unfinished run of mnist_cnn on synthetic is below runs: a new one begins, in runs/" in out, out)
    check(len(directories()) == 3, f"{directories()}")
    for text in ("there was no folder named to go on from: the run begins at its first step",
                 "named/checkpoints/step-0000000004: no step is left: all 4 are done; the run is evaluated again"):
        out = run(small + "--resume auto --run-dir named").stdout
        check(out.count(f"  resume   {text}\n") == 1 and out.count("  resume   ") == 1, out)  # rank 0 alone
    os.mkdir(os.path.join(work, "bare"))
    out = run(small + "--resume auto --run-dir bare").stdout
    check("  resume   no checkpoint is in bare/checkpoints: the run begins at its first step\n" in out, out)
    told["state"] = "running"
    with open(os.path.join(work, "runs", first, "environment.json"), "w") as file:
        json.dump(told, file)
    out = run(small + "--resume auto --epochs 2").stdout
    check(f"resume   runs/{first}/checkpoints/step-0000000004: goes on with epoch 2 of 2 (4 of 8 steps are done)\n" in out, out)
    check(len(directories()) == 3 and f"kept in  runs/{first}\n" in out, out)
    with open(os.path.join(work, "runs", first, "curves.csv")) as file:
        check([line.split(",")[0] for line in file] == ["epoch", "1", "2"], "the curves lack epochs")

    # What cannot begin leaves no directory; where there can be none, one error says how to do without.
    run("--dataset mnist --data /none", code=2)
    check(len(directories()) == 3, f"{directories()}")
    shutil.rmtree(os.path.join(work, "runs"))
    there = sorted(os.listdir(work))
    for place in ("", "--run-dir deep/and/deeper", "--run-dir copy.safetensors/below", "--run-dir new/../other/"):
        run(f"--dataset mnist --data /none {place}", code=2)
        check(sorted(os.listdir(work)) == there, f"{place}: {os.listdir(work)}")
    with open(os.path.join(work, "runs"), "w"):
        pass
    errors = run(small, code=2).stderr.splitlines()
    check(errors[0].startswith("error: ") and f"runs/{first}: cannot make this folder for the run: Not a directory" in errors[0] and
          "or give --no-run-dir to keep nothing" in errors[0], f"{errors}")
    run(small + "--run-dir elsewhere")
    check(sorted(os.listdir(work)) == ["bare", "both", "copy.safetensors", "elsewhere", "named", "runs"], f"{os.listdir(work)}")


def check_nesting(events, what):
    """Of each thread, any two ranges are one inside the other, or apart; by at most the rounding of their times."""
    open_ends = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        end = event["ts"] + event["dur"]
        while open_ends and open_ends[-1] <= event["ts"] + 0.01:
            open_ends.pop()
        check(not open_ends or end <= open_ends[-1] + 0.01, f"{what}: {event} does not end within the range around it")
        open_ends.append(end)


def profile():
    """A trace of all ranks that parses and nests, and a table."""
    ranks = 2 if "TANDEM_MPIEXEC" in os.environ else 1
    small = SMALL + "--limit-train 64 --global-batch-size 16 --progress none --threads 1 "

    def run(arguments, code=0):
        command = (mpirun() + ["-np", str(ranks)] if ranks > 1 else []) + [PROGRAM] + (small + arguments).split()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), timeout=300)
        check(done.returncode == code, f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        return done

    out = run(f"--run-dir {path('profiled')} --profile steps=2:3").stdout
    check("profile of 2 steps on rank 0" in out and "GFLOP/s" in out, out)
    with open(path("profiled/profile.txt")) as file:
        table = file.read()
    check(table in out and re.search(r"conv.* [0-9.]+ \([0-9]+ %\)", table) and "peak memory" in table, table)
    check(re.search(r"optimizer step .* - +[0-9.]+ \([0-9]+ %\)", table), f"no bytes of the optimizer: {table}")
    peak = table[table.index("peak memory"):]
    check(re.search(r"[A-Za-z]\w*\.[\w.]*(weight|grad|momentum_buffer)", peak) and "f32[" in peak, f"no names: {peak}")
    check(("slowest ms" in table) == (ranks > 1), table)
    with open(path("profiled/profile.json")) as file:
        told = json.load(file)
    check(told["steps"] == 2 and told["ops"][0]["name"] == table.splitlines()[1].split("  ")[0], f"{told['ops'][0]}: {table}")
    check(max(sum(kinds) for kinds in zip(*told["memory"]["bytes"].values())) <= told["peak_bytes"], "more memory than at the peak")
    with open(path("profiled/trace.json")) as file:
        events = json.load(file)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    check({event["pid"] for event in spans} == set(range(ranks)), "a rank has no ranges")
    for rank in range(ranks):
        mine = [event for event in spans if event["pid"] == rank]
        check([event["name"] for event in mine if event["name"].startswith("step ")] == ["step 2", "step 3"],
              f"rank {rank}: {sorted({event['name'] for event in mine})}")
        for thread in {event["tid"] for event in mine}:
            check_nesting([event for event in mine if event["tid"] == thread], f"rank {rank}, thread {thread}")
        for name in ("data", "forward", "backward", "optimizer", "communication"):
            check(sum(event["name"] == name for event in mine) >= 2, f"rank {rank} has no {name}")
        check(any(event["ph"] == "C" and event["pid"] == rank for event in events), "no memory is told")
    check(any("gflop" in event.get("args", {}) for event in spans), "no range tells its work")

    done = run(f"--run-dir {path('late')} --profile steps=50:60")
    check("note: --profile steps=50:60: the run took none of these steps" in done.stderr, done.stderr)
    check(not os.path.exists(path("late/trace.json")), "a trace of nothing")
    check("leave --no-run-dir out" in run("--no-run-dir --profile steps=1:2", code=2).stderr, "no error")
    check("give the first and the last step, as in steps=10:15" in run("--profile 3", code=2).stderr, "no error")


def check_messages(events, ranks, uncertainty):
    """A ring takes 2(N - 1) rounds on each rank, and nothing arrives before it was sent, but by the clocks' uncertainty. In microseconds."""
    def key(event):
        return tuple(event["args"][name] for name in ("number", "round", "chunk", "segment"))

    def is_of_ring(event):
        return event.get("args", {}).get("algorithm") == "ring" and "round" in event["args"]

    sent = {(event["pid"], event["args"]["peer"], *key(event)): event for event in events if event["name"] == "send" and is_of_ring(event)}
    received = {(event["args"]["peer"], event["pid"], *key(event)): event for event in events
                if event["name"] in ("receive", "reduce") and is_of_ring(event)}
    rounds = {}
    for event in events:
        if event["name"].startswith("all_reduce") and event["args"]["bytes"] > 1000:  # an element for each chunk and more
            rounds[event["pid"], event["args"]["number"]] = []
    for (sender, _, number, step, _, _) in sent:
        if (sender, number) in rounds:
            rounds[sender, number].append(step)
    check(len(rounds) >= 2 * ranks and all(set(steps) == set(range(1, 2 * ranks - 1)) for steps in rounds.values()), f"rounds: {rounds}")
    both = sent.keys() & received.keys()
    check(len(both) >= 0.9 * max(len(sent), len(received)), f"{len(both)} of {len(sent)} sent and {len(received)} received match")
    for (sender, receiver, *_), (begin, end) in ((at, (sent[at]["ts"], received[at]["ts"] + received[at]["dur"])) for at in both):
        check(end + uncertainty[sender] + uncertainty[receiver] + 0.01 >= begin, f"from {sender} to {receiver}: {begin} to {end}")


def check_other_clock(small, spans_of):
    """Rank 1 in a time namespace, with a steady clock that is 500 s ahead: steps are beside each other all the same."""
    ahead = ["unshare", "-T", "--monotonic", "500", "--fork"]
    if shutil.which("unshare") is None or subprocess.run(ahead + ["true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: clocks that differ; this system gives no time namespace")
        return
    program = [PROGRAM] + (small + f"--epochs 2 --comm-algorithm ring --trace {path('other.json')}").split()
    done = subprocess.run(mpirun() + ["-np", "1", *program, ":", "-np", "1", *ahead, *program], capture_output=True, text=True,
                          env=environment(), timeout=300)
    check(done.returncode == 0, f"exit code {done.returncode}: {done.stdout}{done.stderr}")
    events, uncertainty = spans_of("other.json")
    with open(path("other.json")) as file:
        offset = json.load(file)["otherData"]["clocks"][1]["offset us"]
    check(abs(offset + 500e6) < uncertainty[1] + 1, f"offset {offset} us, known within {uncertainty[1]} us")
    check_messages(events, 2, uncertainty)
    steps = {(event["pid"], event["name"]): event for event in events if event["name"].startswith("step ")}
    for number in range(3, 8):
        first, other = steps[0, f"step {number}"], steps[1, f"step {number}"]
        check(first["ts"] < other["ts"] + other["dur"] and other["ts"] < first["ts"] + first["dur"], f"{first} is not beside {other}")


def trace():
    """--trace: one file of all ranks, with and without a run directory and --profile."""
    ranks = 2 if "TANDEM_MPIEXEC" in os.environ else 1
    small = SMALL.replace("--epochs 1", "").replace("--limit-train 400", "") + "--limit-train 64 --global-batch-size 16 --progress none --threads 1 --no-run-dir "

    def run(arguments, settings=small):
        command = (mpirun() + ["-np", str(ranks)] if ranks > 1 else []) + [PROGRAM] + (settings + arguments).split()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), timeout=300)
        check(done.returncode == 0, f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def spans_of(name):
        with open(path(name)) as file:
            told = json.load(file)
        clocks = sorted(told["otherData"]["clocks"], key=lambda clock: clock["rank"])
        check([clock["rank"] for clock in clocks] == list(range(ranks)), f"clocks: {clocks}")
        events = [event for event in told["traceEvents"] if event["ph"] == "X"]
        for rank, row in {(event["pid"], event["tid"]) for event in events}:
            check_nesting([event for event in events if (event["pid"], event["tid"]) == (rank, row)], f"rank {rank}, row {row}")
        return events, [clock["uncertainty us"] for clock in clocks]

    def steps_of(events, rank):
        return [int(event["name"][5:]) for event in events if event["pid"] == rank and event["name"].startswith("step ")]

    done = run(f"--epochs 2 --trace {path('usual.json')} " + ("--comm-algorithm ring" if ranks > 1 else ""))
    check(f"trace of 5 steps: {path('usual.json')}" in done.stdout and "profile of" not in done.stdout, done.stdout)
    with open(path("usual.html")) as file:
        page = file.read()
    check(re.search(f"Step [3-7] on {ranks} rank", page) and ("by ring" in page) == (ranks > 1), page[-2000:])
    events, uncertainty = spans_of("usual.json")
    for rank in range(ranks):
        check(steps_of(events, rank) == [3, 4, 5, 6, 7], f"rank {rank}: {steps_of(events, rank)}")
        buckets = [event for event in events if event["pid"] == rank and event["name"] == "bucket 0"]
        check(len(buckets) == (5 if ranks > 1 else 0), f"rank {rank} has {len(buckets)} first buckets")
        for direction in ("forward", "backward"):
            modules = {event.get("args", {}).get("module") for event in events
                       if event["pid"] == rank and event["name"].startswith(direction + " ")}
            check(modules >= {"features.0", "classifier.2"}, f"{direction} of modules {modules}")
    if ranks > 1:
        check_messages(events, ranks, uncertainty)
        check_other_clock(small, spans_of)

    replicas = ALONE + (small + f"--epochs 2 --replicas 2 --trace {path('replicas.json')}").split()
    done = subprocess.run(replicas, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), timeout=300)
    check(done.returncode == 0, f"exit code {done.returncode}: {done.stdout}{done.stderr}")
    with open(path("replicas.json")) as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    for rank in range(2):
        check(steps_of(events, rank) == [3, 4, 5, 6, 7], f"replica {rank}: {steps_of(events, rank)}")
        mine = [event for event in events if event["pid"] == rank]
        check(len([event for event in mine if event["name"] == "bucket 0"]) == 5, f"buckets of replica {rank}")
        check(len({event["tid"] for event in mine if event["name"].startswith("forward ")}) == 1, f"replica {rank} has ranges of another")

    done = run(f"--epochs 1 --profile steps=2:3 --trace {path('chosen.json')}")
    check("profile of 2 steps on rank 0" in done.stdout and path("chosen.json") in done.stdout, done.stdout)
    events, _ = spans_of("chosen.json")
    check(steps_of(events, 0) == [2, 3], f"{steps_of(events, 0)}")
    if ranks > 1:
        check({event["name"] for event in events} >= {"offer", "wait for all", "reduce"}, "no steps in shared memory")

    kept = small.replace("--no-run-dir", f"--run-dir {path('traced')}")
    run("--epochs 1", kept)
    run(f"--epochs 3 --resume {path('traced')} --trace {path('resumed.json')}", kept)
    events, _ = spans_of("resumed.json")
    check(steps_of(events, 0) == [7, 8, 9, 10, 11], f"from the resumed run's third step on: {steps_of(events, 0)}")

    done = run(f"--steps 2 --trace {path('short.json')}")
    check(f"note: --trace {path('short.json')}: the run did not come to step 3" in done.stderr, done.stderr)
    check(not os.path.exists(path("short.json")) and not os.path.exists(path("short.html")), "a trace of nothing")

    done = attempt(small + f"--epochs 2 --trace {path('large.json')}", limit=50000)
    check(done.returncode == 1 and f"error: {path('large.json')}: cannot write: File too large" in done.stderr, done.stderr)
    check("trace of" not in done.stdout and not os.path.exists(path("large.json")), f"a trace that is not there: {done.stdout}")


def config():
    options = ("--dataset mnist --data /some/where#1 --limit-train 5 --limit-test 6 --validation-split 0.2 --augment crop-reflect=3,flip-alternating,offset=0.125,cutout-inside=6 "
               "--model mnist_cnn --layers 7 --shared-weights --conv-impl reference "
               "--gemm-impl fused --load-weights a.safetensors --save-weights b.safetensors --batch-size 12 "
               "--grad-accumulation 3 --drop-last --optimizer rmsprop --lr 0.0123 --momentum 0.5 --weight-decay 1e-7 "
               "--param-group *.bias:freeze-step=3,lr-factor=64;*.0.weight:weight-decay=1e-9,momentum=0,schedule=cosine,schedule-steps=7 "
               "--schedule step --warmup-epochs 0.5 --step-epochs 4 --step-factor 0.3 --clip-norm 2 "
               "--label-smoothing 0.1 --mixup 0.4 --cutmix 0.9 --l1 1e-6 --seed 77 --precision bf16 --loss-scale 512.5 --master-weights --backend mpi --comm-progress thread --comm-timeout 12.5 --comm-checks --iface 10.0.0.0/24 "
               "--bucket-mb 0.5 --allreduce-dtype half --check-replicas --device cpu --resident-data off --cuda-graph auto --rehearsal-steps 2 "
               "--run-dir runs/1 --checkpoint-every 30s --keep 2 --best-by validation_loss --resume runs/0 "
               "--on-save-error stop --max-skipped-steps 7 --early-stopping 5,0.25 --ema 0.99 --steps 30 --per-class --log-norms --log-dead-relus "
               "--threads 3 --log c.jsonl --log-every 8 --histograms --profile steps=3:5 --trace t.json --progress none").split()
    measured = ["--autotune", "--tuning-file", "tuning.json"]  # does not go with --conv-impl
    of_vgg_lite = ("--model vgg_lite --batch-norm --dropout 0.25 --epochs 9.9 --schedule linear --warmup-steps 7 "
                   "--warmup-start-factor 0.2 --final-lr-factor 0.07 --final-lr-steps 9").split()  # does not go with --steps and --schedule step
    of_muon = "--optimizer muon --aux-lr 0.5 --normalize-filters --normalize-every 3,2 --newton-schulz 3,-4,2".split()
    of_resnet = "--model resnet9 --drop-path 0.25".split()
    of_airbench = "--model airbench94 --width 0.5 --activation silu --unit-head --draw-whitening-bias --norm-momentum 0.3 --whitening-images 9 --whitening --identity-filters".split()
    of_tricks = "--model bag_of_tricks --celu-alpha 0.5 --ghost-batch 4 --ema 0.9 --ema-every 5 --ema-warm-up".split()
    lines = set()
    in_one_process = "--canonical 8 --replicas 2 --comm-algorithm ring".split()  # does not go with --grad-accumulation and --backend mpi
    of_messages = "--tune-comm --comm-costs costs.json --simulate-network alpha=2ms,hosts=1".split()  # does not go with --comm-algorithm ring
    averaged = "--lookahead 6 --lookahead-decay 0.9 --lookahead-power 2 --tta six --tta-share 0.5 --evaluate-every 3".split()  # do not go with --ema and --early-stopping
    search = "--find-nan --run-dir runs/1".split()  # does not go with --resume and --checkpoint-every
    for arguments in ([], measured, in_one_process, of_messages, averaged, search, of_vgg_lite, of_resnet, of_airbench, of_tricks, of_muon, options):
        text = printed(arguments)
        write_config(text)
        again = printed(["--config", path("run.toml")])
        check(text == again, f"changed on the way:\n{text}\n{again}")
        lines |= {line.split(" = ")[0].removeprefix("# ") for line in text.splitlines() if " = " in line}
    names = {word[2:] for word in measured + in_one_process + of_messages + averaged + search + of_vgg_lite + of_resnet + of_airbench + of_tricks + of_muon + options if word.startswith("--")}
    check(names <= lines, f"not printed: {names - lines}")
    check(lines - names == {"nesterov", "global-batch-size"}, f"not in this test: {lines - names}")

    # From a pipe, which can be read once.
    text = printed(["--lr", "0.0625", "--replicas", "2"])
    check("lr = 0.0625" in text, text)
    check(printed(["--config", "/dev/stdin"], text) == text, "another config from a pipe")

    # Defaults follow the choices that the command line, or an editor, makes instead of the printed ones.
    for before, choice in (("", "--optimizer adamw"), ("--schedule step", "--schedule cosine"),
                           ("--precision fp16", "--precision fp32"), ("", "--precision fp16"),
                           ("", "--batch-size 8"), ("", "--dataset synthetic"), ("", "--grad-accumulation 3")):
        words = choice.split()
        plain = printed(words)
        text = printed(before.split())
        write_config(text)
        over = printed(["--config", path("run.toml")] + words)
        check(over == plain, f"{before} printed, then {choice}:\n{over}\nexpected:\n{plain}")
        name = words[0][2:]
        line = f"{name} = {words[1]}" if words[1].isdigit() else f'{name} = "{words[1]}"'
        edited, found = re.subn(f"^(# )?{name} = .*$", line, text, flags=re.M)
        write_config(edited if found else text + line + "\n")
        over = printed(["--config", path("run.toml")])
        check(over == plain, f"{before} printed, then {choice} by hand:\n{over}\nexpected:\n{plain}")


def printed(arguments, text=""):
    done = subprocess.run([PROGRAM, "--print-config"] + arguments, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    check(done.returncode == 0 and done.stderr == "", f"{arguments}: {done.stderr}")
    return done.stdout


def write_config(text):
    with open(path("run.toml"), "w") as file:
        file.write(text)


def one_error(command, code, because, **options):
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environment(), timeout=100, **options)
    lines = done.stderr.splitlines()
    check(done.returncode == code and len(lines) == 1 and lines[0].startswith("error: ") and because in lines[0],
          f"{command}: exit code {done.returncode}, expected {code} and '{because}': {done.stderr}")


def programs():
    """Each with few arguments that make it run for a moment."""
    folder, bench = os.path.dirname(PROGRAM), "--shape 1,2,4,4,2,3,3,1,1 --groups 1 --launches 1 --warmup 0 --impl reference"
    net = "--model mnist_cnn --layers 1 --in-channels 1 --image-size 8 --batch-size 1 --steps 1 --warmup 0"
    return {"cifar_train": ALONE + (SMALL + "--limit-train 20 --limit-test 20 --threads 1").split(),
            "conv_bench": [os.path.join(folder, "conv_bench"), *bench.split(), "--peak-flops", "1e9", "--peak-bandwidth", "1e9"],
            "train_bench": [os.path.join(folder, "train_bench"), *net.split()],
            "device_query": [os.path.join(folder, "device_query")]}


def empty_paths():
    """What a script's unset variable leaves of --save-weights "$weights" does not lose the weights."""
    options = {"cifar_train": ["data", "log", "save-weights", "load-weights", "tuning-file", "config"],
               "conv_bench": ["json", "svg"], "train_bench": ["batch", "load-weights"]}
    for program, names in options.items():
        for name in names:
            one_error(programs()[program] + ["--" + name, ""], 2, f"--{name}: the path is empty", stdout=subprocess.DEVNULL)


def standard_output():
    """Standard output that is full or closed is told, once the work is done; files are not mixed up with it."""
    whole = subprocess.run(programs()["cifar_train"] + ["--save-weights", path("w.safetensors")], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=environment())
    check(whole.returncode == 0, whole.stderr)
    expected = contents("w.safetensors")
    for name, command in programs().items():
        if name == "cifar_train":
            command = command + ["--save-weights", path("w.safetensors"), "--log", path("log.jsonl")]
        for arguments in (command, command[:1] + ["--help"]):
            one_error(arguments, 1, "standard output cannot be written", preexec_fn=lambda: os.close(1))
            if os.path.exists("/dev/full"):
                with open("/dev/full", "w") as full:
                    one_error(arguments, 1, "standard output cannot be written", stdout=full)
    reader, writer = os.pipe()  # as behind `| head`: what trains does not end by it
    os.close(reader)
    one_error(programs()["cifar_train"] + ["--save-weights", path("w.safetensors")], 1, "standard output cannot be written", stdout=writer)
    os.close(writer)
    check(contents("w.safetensors") == expected, "the weights hold something else")
    records = [json.loads(line)["record"] for line in contents("log.jsonl").decode().splitlines()]
    check(set(records) == {"run", "epoch", "result"}, f"records: {records}")
    closed = subprocess.run(programs()["cifar_train"] + ["--save-weights", path("w.safetensors"), "--log", path("all.jsonl")],
                            env=environment(), preexec_fn=lambda: os.closerange(0, 3))
    check(closed.returncode == 1, f"exit code {closed.returncode} without any standard stream")
    closed = subprocess.run(programs()["conv_bench"] + ["--json", path("all.json")], env=environment(),
                            preexec_fn=lambda: os.closerange(0, 3))
    check(closed.returncode == 1 and json.loads(contents("all.json"))["results"], "conv_bench without any standard stream")
    check(contents("w.safetensors") == expected, "the weights hold something else")


def precision():
    """Masters, loss scale and memory of half precision; on two ranks, where there is an mpirun."""
    ranks = 2 if "TANDEM_MPIEXEC" in os.environ else 1
    net = ("--dataset synthetic --limit-train 48 --limit-test 4 --model small_cnn --global-batch-size 16 --epochs 1 "
           "--log-every 1 --lr 0.01 --check-replicas ")
    train("first", net + f"--epochs 0 --save-weights {path('first')}")
    # So large a scale that every gradient overflows: no step is taken, and no digit of the weights is lost.
    records = train("skips", net + f"--precision fp16 --loss-scale 1e30 --save-weights {path('skips')}", ranks)
    steps, result = of_kind(records, "step"), of_kind(records, "result")[0]
    check([step["skipped_steps"] for step in steps] == [1, 2, 3], f"skipped steps: {steps}")
    check(all(step["loss_scale"] == 1e30 for step in steps), f"loss scales: {steps}")
    check(result["skipped_steps"] == 3, f"the end does not tell the skipped steps: {result}")
    first, skips = weights("first"), weights("skips")
    learnt = [name for name in first if "running" not in name]
    check(sorted(first) == sorted(skips), f"not all saved in f32: {sorted(set(first) - set(skips))}")
    check(all(first[name] == skips[name] for name in learnt), "skipped steps changed weights")

    activations = {}
    for kind in ("fp32", "fp16", "bf16"):
        extra = "--allreduce-dtype half " if kind == "bf16" else ""
        records = train(kind, net + extra + f"--precision {kind} --save-weights {path(kind)}", ranks)
        check(records[0]["config"]["precision"] == kind, f"run record: {records[0]}")
        scale = 65536 if kind == "fp16" else 1
        check(of_kind(records, "step")[0]["loss_scale"] == scale, f"{kind}: {of_kind(records, 'step')}")
        result = of_kind(records, "result")[0]
        check(result["skipped_steps"] == 0, f"{kind}: {result}")
        activations[kind] = result["peak_tensor_bytes"]["activations"]
        check(weights(kind)[learnt[0]] != first[learnt[0]], f"{kind}: weights do not change")
    for kind in ("fp16", "bf16"):
        check_close({name: weights("fp32")[name] for name in learnt if name.endswith("weight")}, weights(kind),
                    0.02, f"{kind} against fp32")
        check(activations[kind] < 0.6 * activations["fp32"], f"memory of activations: {activations}")


def check_gradients(images, batch, runs, extra=""):
    """One step so large that the weights after it are its gradient, scaled. `runs` lists (ranks, micro-batches)."""
    expected = None
    for ranks, accumulation in [(1, 1)] + runs:
        name = f"gradient_{images}_{ranks}_{accumulation}"
        train(name, EXACT + f"--limit-train {images} --global-batch-size {batch} --grad-accumulation {accumulation} "
                            f"--epochs 1 --lr 1e6 --momentum 0 --weight-decay 0 --schedule constant {extra} "
                            f"--save-weights {path(name)}", ranks)
        expected = expected or weights(name)
        check_close(expected, weights(name), 1e-5, f"gradient of {images} images, {ranks} ranks x {accumulation}")


def exact_sgd():
    backend = f"--backend {sys.argv[3]} "
    # A rate at which training is stable: beyond it, rounding errors grow from step to step, on one rank as on several.
    real = os.path.isdir("/usr/share/datasets/fashion-mnist")
    data = "--dataset fashion-mnist --lr 0.01 " if real else "--dataset synthetic --lr 0.005 "
    curves = {}
    for ranks in (1, 2, 4):
        records = train(f"curve{ranks}", EXACT + data + "--limit-train 1600 --epochs 1 --global-batch-size 32 "
                        "--log-every 1 --momentum 0 --schedule constant " + (backend if ranks > 1 else ""), ranks)
        curves[ranks] = [step["loss"] for step in of_kind(records, "step")]
        check(len(curves[ranks]) == 50, f"{len(curves[ranks])} steps")
    check(curves[1][-1] < curves[1][0] - 0.3 or not real, f"the loss does not fall: {curves[1]}")
    for ranks in (2, 4):
        worst = max(abs(a - b) for a, b in zip(curves[1], curves[ranks]))
        print(f"{ranks} ranks: losses of 50 steps differ by at most {worst:.1e}")
        check(worst <= 1e-3, f"{ranks} ranks: loss curves differ by {worst:.2e}")
    for ranks in (2, 4):
        check_gradients(32, 32, [(ranks, 1)], backend if ranks > 1 else "")


def replicas():
    """Ranks that are threads of one process train what as many processes do, and go on with their checkpoints."""
    options = ("--model resnet9 --dataset synthetic --limit-train 200 --limit-test 40 --global-batch-size 32 "
               "--augment crop,flip --check-replicas --log-every 1 --schedule constant ")
    losses = {}
    for name, more, ranks in (("threads", "--replicas 2", 1), ("processes", "--backend native", 2)):
        records = train(name, f"{options} --epochs 2 {more} --save-weights {path(name)}", ranks)
        losses[name] = [step["loss"] for step in of_kind(records, "step")]
        epoch = of_kind(records, "epoch")[-1]
        check(epoch["world_size"] == 2 and epoch["backend"] == ("threads" if ranks == 1 else "native"), f"{epoch}")
    check(len(losses["threads"]) == 14 and losses["threads"] == losses["processes"], f"losses: {losses}")
    check(contents("threads") == contents("processes"), "weights of two replicas are not those of two processes")
    run = path("begun")
    train("begun_log", f"{options} --epochs 1 --replicas 2 --run-dir {run}")
    train("rest_log", f"{options} --epochs 2 --resume auto --run-dir {run} --save-weights {path('rest')}", 2)
    check(contents("rest") == contents("threads"), "processes went on from a checkpoint of replicas to other weights")


def few_threads():
    """Where the system does not give a thread to each replica, all end, and one error says so."""
    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, 1 << 30))  # what each new thread takes of the address space
        resource.setrlimit(resource.RLIMIT_AS, (5 << 30, 5 << 30))

    done = subprocess.run(ALONE + "--dataset synthetic --model mnist_cnn --steps 1 --threads 1 --replicas 16".split(), timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    check(done.returncode == 2 and re.fullmatch(r"error: the system gives threads to \d+ of 16 ranks: .*; start fewer, or raise "
                                                r"its limits\n", done.stderr), f"{done}")


# Ranks, backend and its options, threads: by the argument of the case. The first of each is of one rank.
CANONICAL_RUNS = {
    "": ((1, "self", 2), (1, "self", 1), (2, "mpi", 1), (2, "native", 2), (4, "native", 1), (1, "threads --replicas 2", 1),
         (2, "native --bucket-mb 0.1", 1), (2, "native --comm-algorithm ring", 1)),
    "gloo": ((1, "self", 1), (2, "gloo", 1)),
    "four": ((1, "self", 1), (4, "mpi", 1), (4, "native --comm-algorithm double-tree --bucket-mb 1", 1),
             (2, "mpi --bucket-mb 0.1", 1), (1, "threads --replicas 4", 1)),
    "four-gloo": ((1, "self", 1), (4, "gloo", 1)),
}


def canonical():
    """The same bits on any number of ranks and threads, of any backend: in figures, weights and state."""
    networks = {
        "batch_norm": "--model resnet9 --augment crop,flip --limit-train 77 --ema 0.9",  # the last batch is of 13
        "dropout": "--model vgg_lite --dropout 0.3 --limit-train 64 --precision fp16 --mixup 0.2 --clip-norm 1",
    }
    for network, options in networks.items():
        expected = None
        for ranks, backend, threads in CANONICAL_RUNS[" ".join(sys.argv[3:4])]:
            name = f"{network}_{ranks}_{backend}_{threads}".replace(" ", "_")
            records = train(name, f"--dataset synthetic --limit-test 33 --epochs 2 --global-batch-size 32 --log-every 1 "
                                  f"--canonical 4 --backend {backend} {options} --save-weights {path(name)} "
                                  "--check-replicas", ranks, threads)
            figures = [{key: value for key, value in record.items() if "loss" in key or "accuracy" in key}
                       for record in records]
            result = (figures, contents(name))
            expected = expected or result
            check(len(of_kind(records, "step")) == 2 * (3 if network == "batch_norm" else 2), f"{name}: {len(records)}")
            check(figures == expected[0], f"{name}: figures differ from those of one rank")
            check(contents(name) == expected[1], f"{name}: weights differ from those of one rank")
        plain = f"{network}_plain"
        train(plain, f"--dataset synthetic --limit-test 33 --epochs 2 --global-batch-size 32 {options} "
                     f"--save-weights {path(plain)}", 2)
        check(contents(plain) != expected[1], f"{network}: canonical mode makes no difference")


def exact_uneven():
    # A step that the ranks, or the micro-batches, cannot share evenly; in the last one most of them have nothing.
    check_gradients(97, 108, [(2, 1), (3, 1), (1, 4), (2, 3)])
    check_gradients(1, 24, [(4, 1), (2, 3)])
    # 97 images in steps of 24: whole epochs, the last step with 1 image.
    regular = "--mixup 0.4 --cutmix 1 --l1 1e-4 --label-smoothing 0.1 "
    plain = [step["loss"] for step in check_uneven("", [(1, 1), (2, 1), (4, 1), (1, 4), (2, 3)])]
    mixed = [step["loss"] for step in check_uneven(regular, [(1, 1), (2, 1), (2, 3)])]
    changed = sum(abs(a - b) > 1e-4 for a, b in zip(plain, mixed))
    check(changed >= 8, f"mixing and penalties change {changed} of 10 steps")  # a step of one image may keep it as it is


def check_uneven(options, layouts):
    """The same losses on each of these numbers of (ranks, micro-batches); the steps of the first."""
    expected = None
    for ranks, accumulation in layouts:
        name = f"r{ranks}a{accumulation}" + ("mixed" if options else "")
        records = train(name, EXACT + f"--limit-train 97 --epochs 2 --global-batch-size 24 --lr 0.005 --clip-norm 1 "
                                      f"--log-every 1 --grad-accumulation {accumulation} {options}", ranks)
        steps, last = of_kind(records, "step"), of_kind(records, "epoch")[-1]
        expected = expected or (steps, last)
        check(len(steps) == 10, f"{name}: {len(steps)} steps")
        worst = max(abs(a["loss"] - b["loss"]) for a, b in zip(expected[0], steps))
        check(worst < 1e-4, f"{name} {options}: losses differ by {worst:.1e}")
        for field in ("train_loss", "test_loss"):
            check(abs(expected[1][field] - last[field]) < 1e-4, f"{name} {options}: {field} differs")
    return expected[0]


if __name__ == "__main__":
    try:
        cases = (learning, determinism, files, logs, full_disks, own_images, whitening, prediction, run_directories, profile, trace, config,
                 empty_paths, standard_output, precision, exact_sgd,
                 replicas, few_threads, canonical, exact_uneven)
        {case.__name__: case for case in cases}[sys.argv[2]]()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
