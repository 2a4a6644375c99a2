#!/usr/bin/python3
"""Each number of recipes/*.toml beside the same recipe in PyTorch (scripts/torch_recipes.py): test_recipes.py PROGRAM

What cifar_train --recipe NAME --print-config says is read here by rules of its own: the rate, weight decay and momentum of each parameter in
each step, when it freezes, and all else that a recipe sets. `dawn` has no twin there. Exit code 77 where there is no PyTorch.
"""

import fnmatch
import json
import math
import subprocess
import sys
from pathlib import Path

try:
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: {sys.executable} cannot import torch ({error}); install python3-torch")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import torch_recipes  # noqa: E402

PROGRAM, IMAGES, WIDTH = sys.argv[1], 50000, 0.125
NEAR = 1e-3  # relative: recipes round what follows from published numbers


def settings_of(name):
    told = subprocess.run([PROGRAM, "--recipe", name, "--print-config"], capture_output=True, text=True, check=True).stdout
    pairs = (line.lstrip("# ").partition(" = ") for line in told.splitlines() if " = " in line)
    return {key: json.loads(value) for key, _, value in pairs}


def groups_of(settings):
    """(pattern, options), of which the last that matches counts."""
    for group in settings["param-group"].split("; "):
        pattern, _, options = group.partition(":")
        yield pattern, dict(option.split("=") for option in options.split(","))


def factor(settings, step, steps, options):
    """What the rate is multiplied by."""
    warmup, last = settings["warmup-steps"], settings["final-lr-steps"]
    if "schedule-steps" in options:
        warmup, last, steps = 0, 0, int(options["schedule-steps"])
    if step < warmup:
        return settings["warmup-start-factor"] + (1 - settings["warmup-start-factor"]) * step / warmup
    done = min((step - warmup) / (steps - warmup - last), 1)
    return 1 - (1 - settings["final-lr-factor"]) * done


class Differences:
    def __init__(self):
        self.found = []

    def check(self, what, ours, theirs, near=0.0):
        numbers = isinstance(ours, (int, float)) and isinstance(theirs, (int, float))
        same = math.isclose(ours, theirs, rel_tol=near, abs_tol=1e-12) if numbers else ours == theirs
        if not same:
            self.found.append(f"{what}: {ours} here, {theirs} in PyTorch")


def compare_optimizers(found, settings, recipe, steps, batches):
    network = recipe.make_model(WIDTH)
    optimizer = recipe.make_optimizer(network, torch.float32, steps)
    is_muon = settings["optimizer"] == "muon"
    found.check("optimizer", settings["optimizer"], "muon" if isinstance(optimizer, torch_recipes.torch_muon.Muon) else "sgd")
    groups, seen = list(groups_of(settings)), set()
    theirs_of = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            continue
        theirs, is_filter = theirs_of[id(parameter)], parameter.ndim == 4
        matching = [(pattern, options) for pattern, options in groups if fnmatch.fnmatchcase(name, pattern)]
        pattern, options = matching[-1] if matching else ("", {})
        seen.add(pattern)
        by_sgd = is_muon and not is_filter
        base = settings["aux-lr"] if by_sgd else settings["lr"]
        their_scale = recipe.lr * (optimizer.aux_factor if by_sgd else 1.0)
        momentum = theirs["momentum"]
        decay = theirs["weight_decay"]
        if is_muon:
            of_kind = optimizer.of_filters if is_filter else optimizer.of_others
            momentum = of_kind["momentum"] if momentum is None else momentum
            decay = of_kind["weight_decay"] if decay is None else decay
        own_momentum = 0.85 if by_sgd else settings["momentum"]  # of SGD beside Muon, as --help tells
        found.check(f"{name}: momentum", float(options.get("momentum", own_momentum)), momentum, NEAR)
        found.check(f"{name}: weight decay", float(options.get("weight-decay", settings["weight-decay"])), decay, NEAR)
        freeze = int(options.get("freeze-step", steps))
        found.check(f"{name}: freezes at", freeze, min(recipe.freeze_step(batches), steps) if name == "0.bias" else steps)
        for step in range(freeze):
            ours = base * float(options.get("lr-factor", 1)) * factor(settings, step, steps, options)
            rate = their_scale * theirs["factor"] * recipe.factor(step, theirs.get("steps", steps))
            found.check(f"{name}: rate of step {step}", ours, rate, NEAR)
    found.check("groups that match", {pattern for pattern, _ in groups}, seen - {""})
    if is_muon:
        first, more, _ = optimizer.normalize_every
        every = [int(number) for number in settings.get("normalize-every", "1").split(",")]
        found.check("normalize-every", (every + [0])[:2], [first, more])
        coefficients = tuple(float(number) for number in settings.get("newton-schulz", "3.4445,-4.775,2.0315").split(","))
        found.check("newton-schulz", coefficients, optimizer.coefficients)
    else:
        found.check("nesterov", settings["nesterov"], optimizer.param_groups[0]["nesterov"])


def compare_averages(found, settings, recipe, steps):
    average = recipe.average(recipe.make_model(WIDTH), steps)
    kind = type(average).__name__ if average else None
    found.check("an average", {5: "Lookahead"}.get(settings["lookahead"], "Average" if settings["ema"] else None), kind)
    if kind == "Lookahead":
        found.check("lookahead", (settings["lookahead"], settings["lookahead-decay"], settings["lookahead-power"]), (average.EVERY, average.BASE, 3.0))
    if kind == "Average":
        found.check("ema", (settings["ema-every"], settings["ema"], settings["ema-warm-up"]), (average.EVERY, average.DECAY, False))


def compare_model(found, settings, recipe):
    network = recipe.make_model(WIDTH)
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    found.check("names of the network", settings["model"], "airbench94" if hasattr(network[0], "bias") else "bag_of_tricks")
    if settings["model"] == "bag_of_tricks":
        found.check("ghost-batch", settings["ghost-batch"], norms[0].part)
        found.check("celu-alpha", settings["celu-alpha"], next(m for m in network.modules() if isinstance(m, torch.nn.CELU)).alpha)
        return
    found.check("norm-momentum", settings.get("norm-momentum", 0.4), norms[0].momentum)
    found.check("activation", settings["activation"], network[2].activation.__name__)
    found.check("unit-head", settings["unit-head"], math.isclose(float(network[7].weight.detach().std()), 1, rel_tol=1e-5))
    found.check("draw-whitening-bias", settings["draw-whitening-bias"], bool(network[0].bias.detach().any()))


def compare(name, recipe):
    found, settings = Differences(), settings_of(name)
    batches = IMAGES // recipe.batch
    steps = math.ceil(recipe.epochs * batches)
    augment = [f"crop-reflect={recipe.crop}", "flip-alternating" if recipe.flip == "alternating" else "flip"]
    augment += [f"{key}={value}" for key, value in (("offset", recipe.offset), ("gain", recipe.gain)) if value]
    for key, theirs in (
        ("global-batch-size", recipe.batch),
        ("drop-last", True),
        ("epochs", recipe.epochs),
        ("schedule", "linear"),
        ("label-smoothing", recipe.smoothing),
        ("whitening-images", recipe.whitening_images),
        ("augment", ",".join(augment)),
        ("tta", recipe.views),
    ):
        found.check(key, settings[key], theirs)
    found.check("tta-share", settings.get("tta-share", 1.0), recipe.share)
    compare_model(found, settings, recipe)
    compare_optimizers(found, settings, recipe, steps, batches)
    compare_averages(found, settings, recipe, steps)
    return found.found


def main():
    failed = 0
    for name, recipe in torch_recipes.RECIPES.items():
        differences = compare(name, recipe)
        print(f"{'FAILED' if differences else 'passed'}  {name}" + "".join(f"\n  {line}" for line in differences[:10]))
        failed += bool(differences)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
