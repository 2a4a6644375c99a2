#!/usr/bin/env python3
"""Makes the files that the command-line tests read, most of them broken on purpose: make_files.py DIRECTORY."""
import json
import os
import shutil
import struct
import sys

CIFAR_FILE = 10000 * 3073
TRAIN = ["data_batch_%d.bin" % i for i in range(1, 6)]


def sparse(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def cifar(folder, sizes=None, labels=None):
    """A folder of all-black CIFAR-10 files; `sizes` and `labels` {file: (record, label)} break some of them."""
    os.makedirs(folder)
    for name in TRAIN + ["test_batch.bin"]:
        sparse(os.path.join(folder, name), (sizes or {}).get(name, CIFAR_FILE))
    for name, (record, label) in (labels or {}).items():
        with open(os.path.join(folder, name), "r+b") as file:
            file.seek(record * 3073)
            file.write(bytes([label]))


def mnist(folder, magic=0x803, images=20, label=1, labels=None, train=(28, 28), test=(28, 28), extra=0):
    """`train` and `test`: height and width of the images; `extra`: bytes too many in the files of images."""
    os.makedirs(folder)
    for split, (height, width) in (("train", train), ("t10k", test)):
        with open(os.path.join(folder, split + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", magic, images, height, width) + bytes(images * height * width + extra))
        with open(os.path.join(folder, split + "-labels-idx1-ubyte"), "wb") as file:
            count = images if labels is None else labels
            file.write(struct.pack(">II", 0x801, count) + bytes([label]) * count)


def safetensors(path, tensors, cut=0, extra=b"", header=None):
    entries, offset = {}, 0
    for name, shape in tensors.items():
        count = 1
        for size in shape:
            count *= size
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + 4 * count]}
        offset += 4 * count
    text = header if header is not None else json.dumps(entries).encode()
    whole = struct.pack("<Q", len(text)) + text + bytes(offset) + extra
    with open(path, "wb") as file:
        file.write(whole[:len(whole) - cut])


def config(path, text):
    with open(path, "w") as file:
        file.write(text)


def make_files_in(root):
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    at = lambda name: os.path.join(root, name)

    cifar(at("cifar_truncated"), sizes={"data_batch_3.bin": CIFAR_FILE - 100})
    cifar(at("cifar_oversized"), sizes={"test_batch.bin": CIFAR_FILE + 1})
    cifar(at("cifar_bad_label"), labels={"data_batch_1.bin": (7, 12)})
    cifar(at("cifar_missing"))
    os.remove(at("cifar_missing/data_batch_5.bin"))
    cifar(at("cifar_directory"))
    os.remove(at("cifar_directory/data_batch_2.bin"))
    os.mkdir(at("cifar_directory/data_batch_2.bin"))
    os.mkdir(at("empty"))
    config(at("plain_file"), "not a directory\n")

    mnist(at("mnist_magic"), magic=0x1234)
    mnist(at("mnist_label"), label=10)
    mnist(at("mnist_counts"), labels=19)
    mnist(at("mnist_truncated"), extra=-1)
    mnist(at("mnist_oversized"), extra=1)
    mnist(at("mnist_not_square"), train=(28, 24), test=(28, 24))
    mnist(at("mnist_two_sizes"), test=(24, 24))
    mnist(at("mnist_directory"))
    os.remove(at("mnist_directory/train-labels-idx1-ubyte"))
    os.mkdir(at("mnist_directory/train-labels-idx1-ubyte"))
    mnist(at("mnist_gzip"))
    os.remove(at("mnist_gzip/train-images-idx3-ubyte"))
    config(at("mnist_gzip/train-images-idx3-ubyte.gz"), "this was never compressed\n")
    os.mkdir(at("cifar100_truncated"))
    for name in ("train.bin", "test.bin"):
        sparse(at("cifar100_truncated/" + name), 10000 * 3074)

    linear = {"weight": [10, 4]}
    safetensors(at("other_net.safetensors"), linear)
    safetensors(at("strange_names.safetensors"), {"two\nlines \x1b[2J": [1]})
    named = {"weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "__metadata__": {"model": "vgg_lite"}}
    safetensors(at("named.safetensors"), {}, header=json.dumps(named).encode(), extra=bytes(4))
    safetensors(at("truncated.safetensors"), linear, cut=5)
    safetensors(at("oversized.safetensors"), linear, extra=b"more")
    safetensors(at("no_json.safetensors"), {}, header=b"<html>not found</html>")
    config(at("garbage.safetensors"), "PK\3\4 this was a zip archive of something else, wholly\n")
    config(at("tiny.safetensors"), "abc")

    config(at("good.toml"), "# a comment\nlr = 0.05  # another\nmodel = \"vgg_lite\"\nbatch-norm = true\n"
                            "augment = [\"crop\", \"flip\"]\nglobal-batch-size = 1_024\ndata = 'a#b, c'\n")
    config(at("unknown_key.toml"), "epochs = 3\nlearning-rte = 0.1\nmomentm = 0.5\n")
    config(at("near_key.toml"), "momentm = 0.5\n")
    config(at("bad_value.toml"), "epochs = 3\nlr = -1\n")
    config(at("bad_type.toml"), "epochs = \"many\"\n")
    config(at("syntax.toml"), "epochs 3\n")
    config(at("section.toml"), "[training]\nepochs = 3\n")
    config(at("twice.toml"), "epochs = 3\nepochs = 4\n")
    config(at("unquoted.toml"), "model = vgg_lite\n")
    config(at("both_batches.toml"), "batch-size = 8\nglobal-batch-size = 16\n")
    config(at("groups.toml"), 'param-group = ["*.bias:lr-factor=64,weight-decay=0.25", "features.0.weight:freeze-step=3"]\n')
    config(at("momentum.toml"), "momentum = 0.9\n")
    config(at("other_choices.toml"), 'optimizer = "adamw"\nschedule = "one-cycle"\nlr = 0.01\n')
    config(at("two_lines.toml"), 'model = "two\\nlines"\n')
    config(at("notes.txt"), "my notes\n")
    for name in ("damaged_costs.json", "damaged_too.json"):
        config(at(name), '{"format": "tandem message costs", "version": 1}')
    config(at("global_batch.toml"), "global-batch-size = 16\n")
    os.mkdir(at("directory.toml"))


if __name__ == "__main__":
    make_files_in(sys.argv[1])
