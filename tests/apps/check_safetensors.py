#!/usr/bin/env python3
"""PyPI's safetensors reads what we write, and we read what it writes: check_safetensors.py CIFAR_TRAIN FOLDER

Runs leave final.safetensors, and in their checkpoints model.safetensors and training.safetensors, in f32 and in halves. The
library reads each of them: the same names, dtypes, shapes and bytes as a reader of our own for tests (tests/parity). Then
it writes them anew, in its own order of tensors, and cifar_train evaluates those weights and goes on from that checkpoint:
to the same bits as a run that was never left.

Where the library is missing (setup.sh --tests gets it) the exit code is 77: skipped; where CI=true it is an error.
"""
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

from run_case import environment

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "parity"))
try:
    import safetensors

    import safetensors_file
except ImportError as error:
    if os.environ.get("CI") == "true":
        sys.exit(f"FAILED: PyPI's safetensors cannot be loaded: {error}; where CI=true this is not skipped")
    print(f"skipped: PyPI's safetensors cannot be loaded: {error}")
    sys.exit(77)

PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
SMALL = ("--device cpu --threads 1 --dataset synthetic --limit-train 48 --limit-test 40 --global-batch-size 16 --augment none "
         "--schedule constant --seed 5 --keep 9 --progress none")
RUNS = {
    "f32": "--model small_cnn --optimizer adamw --ema 0.9",
    "masters": "--model mnist_cnn --layers 1 --precision fp16",
    "fp16": "--model mnist_cnn --layers 1 --precision fp16 --no-master-weights",
    "bf16": "--model mnist_cnn --layers 1 --precision bf16 --no-master-weights",
}
FIRST = "step-0000000003"  # the checkpoint behind the first epoch


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def train(name, options):
    command = [PROGRAM, *SMALL.split(), *options.split(), "--run-dir", str(FOLDER / name)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), timeout=300)
    check(done.returncode == 0, f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def result_of(name):
    with open(FOLDER / name / "log.jsonl") as file:
        return [record for record in map(json.loads, file) if record["record"] == "result"][-1]


def library_reads(path):
    """Its tensors as (dtype, shape, bytes), and the metadata; what our reader says must be the same."""
    tensors = {name: (entry["dtype"], list(entry["shape"]), bytes(entry["data"]))
               for name, entry in safetensors.deserialize(path.read_bytes())}
    with safetensors.safe_open(str(path), framework="numpy") as file:
        metadata = file.metadata()
        check(sorted(file.keys()) == sorted(tensors), f"{path}: two readings differ")
    ours = safetensors_file.read(path)
    expected = {name: (ours.dtypes[name], list(array.shape), array.tobytes()) for name, array in ours.tensors.items()}
    check(tensors == expected, f"{path}: the library reads other tensors than are there")
    check(metadata == ours.metadata, f"{path}: the library reads other metadata than are there")
    check(tensors, f"{path}: there are no tensors")
    return tensors, metadata


def library_rewrites(path):
    """As the library lays tensors out. Returns whether that differs from how we do."""
    before = path.read_bytes()
    tensors, metadata = library_reads(path)
    names = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
             "U8": "uint8"}
    buffers = {name: ctypes.create_string_buffer(content, len(content)) for name, (_, _, content) in tensors.items()}
    data = {name: safetensors.TensorSpec(dtype=names[dtype], shape=shape, data_ptr=ctypes.addressof(buffers[name]),
                                          data_len=len(content))
            for name, (dtype, shape, content) in tensors.items()}
    path.write_bytes(safetensors.serialize(data, metadata))
    again = library_reads(path)
    check(again == (tensors, metadata), f"{path}: the library does not read what it has written")
    return path.read_bytes() != before


def checkpoint(name, step=FIRST):
    return FOLDER / name / "checkpoints" / step


def check_case(case, options):
    train(case, f"{options} --epochs 2")
    dtypes = set()
    for path in [FOLDER / case / "final.safetensors", *sorted((FOLDER / case / "checkpoints").glob("*/*.safetensors"))]:
        dtypes |= {dtype for dtype, _, _ in library_reads(path)[0].values()}
    check({"fp16": "F16", "bf16": "BF16"}.get(case, "F32") in dtypes and {"I64", "F64"} <= dtypes, f"{case}: {dtypes}")

    # Its file of weights, evaluated by us.
    weights = FOLDER / f"{case}.safetensors"
    shutil.copy(FOLDER / case / "final.safetensors", weights)
    differs = library_rewrites(weights)
    train(f"{case}_evaluated", f"{options.replace('--ema 0.9', '')} --epochs 0 --load-weights {weights}")
    first, second = result_of(case), result_of(f"{case}_evaluated")
    for figure in ("test_loss", "test_accuracy"):
        check(first[figure] == second[figure], f"{case}: {figure} is {first[figure]}, from the library's file {second[figure]}")

    # Its checkpoint, from which we go on.
    (FOLDER / f"{case}_on" / "checkpoints").mkdir(parents=True)
    shutil.copytree(checkpoint(case), checkpoint(f"{case}_on"))
    for path in checkpoint(f"{case}_on").glob("*.safetensors"):
        differs = library_rewrites(path) or differs
    check(differs, f"{case}: the library lays tensors out as we do: nothing was tested")
    train(f"{case}_on", f"{options} --epochs 2 --resume auto")
    whole, resumed = (library_reads(FOLDER / name / "final.safetensors")[0] for name in (case, f"{case}_on"))
    check(whole == resumed, f"{case}: going on from the library's checkpoint ends elsewhere")
    print(f"{case}: {sorted(dtypes)}")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for case, options in RUNS.items():
        check_case(case, options)
    shutil.rmtree(FOLDER)


main()
