#!/usr/bin/python3
"""Runs of cifar_train that PyTorch goes on with: test_checkpoint_to_pytorch.py PROGRAM

Every step is of all images, so that both have the same batches. Ten steps from the same checkpoint are taken by
cifar_train, and by PyTorch in f64 and in f32 from what scripts/checkpoint_to_pytorch.py makes of it. In f64, PyTorch's
steps are exact against what f32 can hold. Behind them, each part of what there is (weights, running means, running
variances, each moment of the optimizer) may stray from the exact one as PyTorch's own f32 does, times FACTOR; counts of
steps and batches are equal. Where one of these parts of the checkpoint is lost, PyTorch must stray ten times as far as that,
or the test could not see it.

Where PyPI's safetensors is there, it reads the same tensors for PyTorch as the converter does.
"""

import copy
import glob
import importlib.util
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError as error:
    print(f"skipped: {sys.executable} cannot import torch ({error}); install python3-torch")
    sys.exit(77)

from torch.nn import functional

import torch_models
from kinks import NearestKink, NearKink

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "checkpoint_to_pytorch.py"
sys.path.append(str(ROOT / "build" / "python-packages"))  # of setup.sh --tests; this Python's own packages go first
try:
    import safetensors.torch
except ImportError as error:
    safetensors = None
    print(f"not checked: what PyPI's safetensors reads: {error}")

PROGRAM = sys.argv[1]
SIDE, IMAGES, BEFORE, STEPS = 8, 10, 6, 10
FACTOR = 8.0  # both round the same sums, in other orders
CLEARANCE = 3e-6  # from kinks, as in training_cases.py: a value on the other side of one goes elsewhere than rounding does
SEEDS = 20  # of which one keeps clear of kinks
RUNS = {
    "momentum": "--optimizer sgd --lr 0.02 --momentum 0.9 --nesterov false --weight-decay 0.01",
    "nesterov": "--optimizer sgd --lr 0.02 --momentum 0.9 --nesterov --weight-decay 0.01",
    "groups": "--optimizer sgd --lr 0.02 --momentum 0.9 --nesterov --weight-decay 0.01 "
    "--param-group *.bias:lr-factor=2,weight-decay=0 --param-group classifier.*:momentum=0.5,lr-factor=0.5",
    "plain": "--optimizer sgd --lr 0.02 --momentum 0 --weight-decay 0",
    "adam": "--optimizer adam --lr 0.002 --weight-decay 0.01",
    "adamw": "--optimizer adamw --lr 0.002 --weight-decay 0.1",
    "rmsprop": "--optimizer rmsprop --lr 0.0005 --momentum 0.5 --weight-decay 0.01",
    "batch norm": "--optimizer sgd --lr 0.02 --momentum 0.9 --nesterov --weight-decay 0.01",
    "batch norm, adam": "--optimizer adam --lr 0.0005 --weight-decay 0.01",
    "batch norm, adamw": "--optimizer adamw --lr 0.0005 --weight-decay 0.1",
    "batch norm, rmsprop": "--optimizer rmsprop --lr 0.0002 --momentum 0.5 --weight-decay 0.01",
}
LOST = {"running_var": 1.0}  # what a part is without the checkpoint; others are 0
COUNTS = ("num_batches_tracked", "step")


def check(condition, text):
    if not condition:
        sys.exit("FAILED: " + text)


def write_data(folder):
    """IDX files of noise with labels; the images and labels."""
    random.seed(1)
    pixels = [random.randrange(256) for _ in range(IMAGES * SIDE * SIDE)]
    labels = [i % 10 for i in range(IMAGES)]
    for split in ("train", "t10k"):
        with open(os.path.join(folder, f"{split}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, IMAGES, SIDE, SIDE) + bytes(pixels))
        with open(os.path.join(folder, f"{split}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, IMAGES) + bytes(labels))
    images = torch.tensor(pixels, dtype=torch.float64).reshape(IMAGES, 1, SIDE, SIDE)
    return (images / 255 - 0.1307) / 0.3081, torch.tensor(labels)


def convert(checkpoint, out):
    done = subprocess.run([sys.executable, SCRIPT, checkpoint, out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    check(done.returncode == 0, done.stdout)
    return torch.load(out)


def parts(saved):
    """All tensors of the model and the optimizer, by what they are: name, [tensors]."""
    found = {}
    for name, tensor in saved["model"].items():
        last = name.rpartition(".")[2]
        found.setdefault(last if last in LOST or last in ("running_mean", "num_batches_tracked") else "weights", []).append(tensor)
    for entry in saved["optimizer"]["state"].values():
        for name, tensor in entry.items():
            if tensor is not None:  # a momentum that SGD does not keep
                found.setdefault(name, []).append(tensor)
    return found


def strays(saved, exact):
    """By part, how far it is from the exact one."""
    exact = parts(exact)
    found = {name: (tensors, exact[name]) for name, tensors in parts(saved).items()}
    check(found.keys() == exact.keys(), f"{list(found)} are there, not {list(exact)}")
    return {name: float(torch.cat([(a.double() - b.double()).flatten() for a, b in zip(*both, strict=True)]).norm())
            for name, both in found.items()}


def excess(stray, allowed):
    """The largest share of the limit that a part uses, and its name. A count may not stray."""
    shares = {name: (float("inf") if value else 0.0) if name in COUNTS else value / (FACTOR * allowed[name])
              for name, value in stray.items()}
    return max((share, name) for name, share in shares.items())


def optimizer_of(name, groups, parameters):
    parameters = list(parameters)
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}
    return kinds[name]([{"params": [parameters[place] for place in group["params"]]} for group in groups], lr=0.1)


def model_of(case):
    """The network's name, and options of its own."""
    return ("small_cnn", {}) if case.startswith("batch norm") else ("mnist_cnn", {"layers": 1})


def without(saved, part):
    """The checkpoint with that part as at the run's beginning."""
    saved = copy.deepcopy(saved)
    for tensor in parts(saved)[part]:
        tensor.fill_(LOST.get(part, 0.0))
    return saved


def go_on(saved, data, dtype, case):
    """The model and the optimizer ten steps on, with PyTorch."""
    saved = copy.deepcopy(saved)
    model, own = model_of(case)
    name = RUNS[case].split()[1]
    model = torch_models.make_model(model, in_channels=1, image_size=SIDE, classes=10, **own).to(dtype)
    model.load_state_dict(saved["model"])
    optimizer = optimizer_of(name, saved["optimizer"]["param_groups"], model.parameters())
    optimizer.load_state_dict(saved["optimizer"])
    for _ in range(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(model(data[0].to(dtype)), data[1]).backward()
        optimizer.step()
    places = [place for group in saved["optimizer"]["param_groups"] for place in group["params"]]
    state = optimizer.state_dict()["state"]  # numbered group by group
    by_place = {places[number]: entry for number, entry in state.items()}
    return {"model": model.state_dict(), "optimizer": {"state": dict(sorted(by_place.items()))}}


def run_clear_of_kinks(case, options, folder, data):
    """Two checkpoints, and what PyTorch makes of the first in f64."""
    for seed in range(1, SEEDS + 1):
        saved = run_and_convert(f"{case}{seed}", f"{options} --seed {seed}", folder)
        try:
            with NearestKink(CLEARANCE):
                return saved, go_on(saved[0], data, torch.float64, case)
        except NearKink:
            pass
    sys.exit(f"FAILED: {case}: none of {SEEDS} runs keeps clear of kinks")


def run_and_convert(case, options, folder):
    run = os.path.join(folder, case.replace(" ", "_"))
    model, own = model_of(case.rstrip("0123456789"))
    own = "".join(f" --{option} {value}" for option, value in own.items())
    # Checkpoints hold the settings that the converter reads.
    command = [PROGRAM, *f"--dataset mnist --data {folder} --model {model}{own} --conv-impl reference --epochs "
               f"{BEFORE + STEPS} --global-batch-size {IMAGES} --schedule constant --augment none --threads 1 --keep 100 "
               f"--progress none --run-dir {run} {options}".replace("--nesterov false", "--no-nesterov").split()]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, done.stdout)
    checkpoint = [os.path.join(run, "checkpoints", f"step-{step:010}") for step in (BEFORE, BEFORE + STEPS)]
    saved = [convert(path, os.path.join(folder, f"{case}.pt")) for path in checkpoint]
    check_library(checkpoint[0], saved[0])
    return saved


def check_library(checkpoint, saved):
    """PyPI's safetensors gives PyTorch the same weights and moments."""
    if safetensors is None:
        return
    check_equal(safetensors.torch.load_file(os.path.join(checkpoint, "model.safetensors")), saved["model"])
    training = safetensors.torch.load_file(os.path.join(checkpoint, "training.safetensors"))
    moments = {f"optimizer.{number}.{name}": tensor for number, entry in saved["optimizer"]["state"].items()
               for name, tensor in entry.items() if name != "step"}
    check_equal({name: training[name] for name in moments}, moments)


def check_equal(library, converted):
    check(library.keys() == converted.keys(), f"safetensors reads {list(library)}, the converter {list(converted)}")
    for name, tensor in library.items():
        check(tensor.dtype == converted[name].dtype and torch.equal(tensor, converted[name]), f"safetensors reads another {name}")


def check_run(case, options, folder, data):
    saved, exact = run_clear_of_kinks(case, options, folder, data)
    check((saved[0]["steps"], saved[0]["epochs"]) == (BEFORE, BEFORE), f"{saved[0]['steps']} steps")
    allowed = strays(go_on(saved[0], data, torch.float32, case), exact)
    share, part = excess(strays(saved[1], exact), allowed)
    print(f"{case}: {100 * share:.0f} % of what PyTorch's f32 strays from f64, times {FACTOR:g} ({part}); lost, in that measure:",
          end="")
    for name in parts(saved[0]):
        lost, _ = excess(strays(go_on(without(saved[0], name), data, torch.float64, case), exact), allowed)
        print(f" {name} {lost:.0f},", end="")
        check(lost > 10, f"{case}: {name} could be lost, and the test would not see it")
    print()
    check(share <= 1, f"{case}: PyTorch does not go on as we do: {part}")


def check_refusal(checkpoint, out, because):
    done = subprocess.run([sys.executable, SCRIPT, checkpoint, out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    check(done.returncode == 1 and because in done.stdout and "Traceback" not in done.stdout, done.stdout)
    check(not os.path.exists(out), "a file was written")


def check_refusals(folder):
    out = os.path.join(folder, "none.pt")
    check_refusal(folder, out, "is this the folder of a checkpoint?")
    good = sorted(glob.glob(os.path.join(folder, "*", "checkpoints", "step-*")))[0]
    check_refusal(good, os.path.join(folder, "missing", "none.pt"), "name a file in a folder that there is")
    bad = shutil.copytree(good, os.path.join(folder, "flipped"))
    with open(os.path.join(bad, "model.safetensors"), "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    if importlib.util.find_spec("xxhash"):
        check_refusal(bad, out, "has the hash")
    else:
        print("not checked: a flipped bit, for want of python3-xxhash")


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="tandem_to_pytorch_") as folder:
        data = write_data(folder)
        for case, options in RUNS.items():
            check_run(case, options, folder, data)
        check_refusals(folder)


main()
