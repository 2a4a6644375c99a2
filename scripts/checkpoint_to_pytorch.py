#!/usr/bin/env python3
"""Makes a file for PyTorch of a checkpoint: scripts/checkpoint_to_pytorch.py CHECKPOINT OUT.pt

CHECKPOINT is a checkpoint's folder (DIR/checkpoints/step-...). torch.load(OUT.pt) gives a dict:

  model       the state_dict of the model, in f32 where it was trained in half precision with master weights
  optimizer   the state_dict of a torch.optim optimizer of model.parameters(), its parameters in that order
  epochs, steps   that the run had done
  metadata    what the checkpoint says of its run

Going on there:

  saved = torch.load("OUT.pt")
  model.load_state_dict(saved["model"])
  optimizer.load_state_dict(saved["optimizer"])

The numbers of the parameter group (learning rate, momentum, ...) are those of the run's settings, which checkpoints of
cifar_train hold. The learning rate is the one that --lr set: what a schedule makes of it at this step is the schedule's.
A run with --param-group gives a group for the parameters that no pattern matches, if there are such, and one for each
pattern; "params" are places in model.parameters(). The optimizer that loads them is made of the same groups:

  parameters = list(model.parameters())
  groups = [{"params": [parameters[i] for i in group["params"]]} for group in saved["optimizer"]["param_groups"]]

A group that is frozen is to be frozen there, too (requires_grad_(False)).

A checkpoint without settings gets {"state": ...} alone, without "param_groups"; take those of your own optimizer:

  state = {**optimizer.state_dict(), "state": saved["optimizer"]["state"]}
  optimizer.load_state_dict(state)

The rules are PyTorch's: momentum's first step is the gradient, weight decay is added to the gradient but for AdamW, where
it shrinks the weight, and eps is added behind the root. Gradients that are clipped, scaled or averaged over ranks are your
loop's. Needs PyTorch and numpy, and xxhash to find damaged tensors.
"""

import fnmatch
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "parity"))

BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


def fail(text):
    sys.exit(f"checkpoint_to_pytorch: {text}")


def check_hashes(path, file):
    """Every tensor must be the one that was written: its bytes are hashed with the hash of its dtype and shape as seed."""
    hashes = {key.removeprefix("xxh3."): value for key, value in file.metadata.items() if key.startswith("xxh3.")}
    missing = set(hashes) - set(file.tensors)
    if missing:
        fail(f"damaged: {path} lacks {sorted(missing)[0]}; take another checkpoint")
    try:
        import xxhash
    except ImportError:
        print("note: the hashes of the tensors are not checked, for want of a package: apt-get install python3-xxhash, or "
              "pip install xxhash", file=sys.stderr)
        return
    for name, array in file.tensors.items():
        if name not in hashes:
            fail(f"{path} has no hash of tensor {name}: it is no file of a checkpoint")
        description = f"{file.dtypes[name].lower()}[{', '.join(str(size) for size in array.shape)}]"
        found = xxhash.xxh3_64(array.tobytes(), seed=xxhash.xxh3_64_intdigest(description.encode())).hexdigest()
        if found != hashes[name]:
            fail(f"damaged: {path}: tensor {name} has the hash {found}, and {hashes[name]} was written; take another checkpoint")


def read(path):
    """The tensors of a safetensors file as PyTorch's, and its metadata."""
    import safetensors_file
    import torch

    try:
        file = safetensors_file.read(path)
    except OSError as error:
        fail(f"{path}: {error.strerror}: is this the folder of a checkpoint?")
    except safetensors_file.SafetensorsError as error:
        fail(f"damaged: {error}; take another checkpoint")

    def tensor(name, array):
        if file.dtypes[name] == "BF16":
            return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
        return torch.from_numpy(array)

    check_hashes(path, file)
    return {name: tensor(name, array) for name, array in file.tensors.items()}, file.metadata


def optimizer_state(training, parameters):
    """The "state" of PyTorch's state_dict: by the number of the parameter."""
    import torch

    state = {}
    for name, tensor in training.items():
        found = re.fullmatch(r"optimizer\.([0-9]+)\.(\w+)", name)
        if not found or found[2] == "master":  # the model has those
            continue
        number, kind = int(found[1]), found[2]
        if number >= len(parameters):
            fail(f"{name}: the model has {len(parameters)} parameters only")
        if kind == "step":
            tensor = tensor.to(torch.float32).reshape(())
        elif tensor.shape != parameters[number].shape:
            fail(f"{name} has the shape {list(tensor.shape)}, its parameter {list(parameters[number].shape)}")
        state.setdefault(number, {})[kind] = tensor
    return dict(sorted(state.items()))


def settings_of(metadata):
    """The run's options. Those that checkpoints hold are TOML, of which these are JSON, too; one that was not given is empty."""
    prefix = "setting."
    return {key.removeprefix(prefix): json.loads(value) for key, value in metadata.items() if key.startswith(prefix) and value}


def groups_of(setting, names):
    """The places and options of each group of --param-group, those in none first. Of patterns that match a parameter, the
    last one counts."""
    groups = [([], {})]
    for text in [] if setting == "none" else setting.split(";"):
        pattern, _, entries = text.strip().partition(":")
        groups.append(([], dict(entry.split("=") for entry in entries.split(","))))
        for place, name in enumerate(names):
            if fnmatch.fnmatchcase(name, pattern):
                for places, _ in groups:
                    if place in places:
                        places.remove(place)
                groups[-1][0].append(place)
    grouped = {place for places, _ in groups for place in places}
    groups[0][0].extend(place for place in range(len(names)) if place not in grouped)
    return [group for group in groups if group[0]]


def parameter_groups(settings, names):
    """As this version of PyTorch has them."""
    import torch

    options = {"lr": settings["lr"], "weight_decay": settings["weight-decay"]}
    name = settings["optimizer"]
    if name in ("sgd", "rmsprop"):
        options["momentum"] = settings["momentum"]
    if name == "sgd":
        options["nesterov"] = settings["nesterov"]
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}
    if name not in kinds:
        fail(f"PyTorch's counterpart of the optimizer {name} is not known here")
    groups = groups_of(settings.get("param-group", "none"), names)
    described = []
    for places, own in groups:
        group = {"params": [torch.zeros(()) for _ in places], "lr": options["lr"] * float(own.get("lr-factor", 1))}
        if "weight-decay" in own:
            group["weight_decay"] = float(own["weight-decay"])
        if "momentum" in own:
            group["momentum"] = float(own["momentum"])
        described.append(group)
    result = kinds[name](described, **options).state_dict()["param_groups"]
    for (places, _), group in zip(groups, result):
        group["params"] = places
    return result


def convert(folder):
    model, metadata = read(folder / "model.safetensors")
    training, _ = read(folder / "training.safetensors")
    names = [name for name in model if not name.endswith(BUFFERS)]
    parameters = [model[name] for name in names]
    settings = settings_of(metadata)
    state = optimizer_state(training, parameters)
    if settings.get("optimizer") == "sgd":  # PyTorch counts no steps there
        state = {number: {key: value for key, value in entry.items() if key != "step"} for number, entry in state.items()}
    optimizer = {"state": state}
    if settings:
        optimizer["param_groups"] = parameter_groups(settings, names)
    return {
        "model": model,
        "optimizer": optimizer,
        "epochs": int(training["trainer.epochs"]),
        "steps": int(training["trainer.steps"]),
        "metadata": {key: value for key, value in metadata.items() if not key.startswith("xxh3.")},
    }


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        import torch
    except ImportError as error:
        fail(f"{sys.executable} cannot import torch ({error}): give this script to a Python that has PyTorch")
    converted = convert(pathlib.Path(sys.argv[1]))
    try:
        torch.save(converted, sys.argv[2])
    except (OSError, RuntimeError) as error:  # PyTorch throws the latter where there is no such folder
        fail(f"{sys.argv[2]}: cannot write: {error}: name a file in a folder that there is")
    state = converted["optimizer"]
    print(f"{sys.argv[2]}: {len(converted['model'])} tensors of the model, state of {len(state['state'])} parameters, "
          f"behind step {converted['steps']}")
    if "param_groups" not in state:
        print("note: the checkpoint does not hold its run's settings: take the param_groups of your own optimizer (--help)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
