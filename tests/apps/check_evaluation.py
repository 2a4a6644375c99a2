#!/usr/bin/env python3
"""Runs of cifar_train with a validation split, averaged weights and an evaluation in detail: check_evaluation.py PROGRAM RANKS."""
import base64
import json
import os
import shutil
import sys
import zlib

from check_training import FOLDER, attempt, check, contents, of_kind, path, train

RANKS = int(sys.argv[2])
NET = ("--dataset synthetic --limit-train 400 --limit-test 90 --model mnist_cnn --layers 2 --global-batch-size 40 "
       "--lr 0.02 --schedule constant --device cpu ")


def pixels(png):
    """Width, height and channels of a sound PNG file."""
    data = base64.b64decode(png, validate=True)
    check(data.startswith(b"\x89PNG\r\n\x1a\n"), "no PNG file")
    check(zlib.crc32(data[12:29]) == int.from_bytes(data[29:33], "big"), "damaged PNG header")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"), {0: 1, 2: 3}[data[25]]


def check_evaluation(evaluation, result):
    check(evaluation["split"] == "test" and evaluation["images"] == 90, f"{evaluation['split']}, {evaluation['images']}")
    check(evaluation["epoch"] == result["epoch"], "another epoch than the last")
    check(evaluation["accuracy"] == result["test_accuracy"], "another accuracy than the result's")
    check(evaluation["loss"] == result["test_loss"], "another loss than the result's")
    confusion, classes = evaluation["confusion"], len(evaluation["classes"])
    check(classes == 10 and all(len(row) == classes for row in confusion), "confusion is not 10 x 10")
    check(sum(map(sum, confusion)) == 90, "not every image is in the confusion")
    right = sum(confusion[i][i] for i in range(classes))
    check(abs(100 * right / 90 - result["test_accuracy"]) < 1e-9, "the diagonal is not the accuracy")
    for i, entry in enumerate(evaluation["per_class"]):
        check(entry["images"] == sum(confusion[i]), f"{entry}: images")
        check(abs(entry["accuracy"] - 100 * confusion[i][i] / sum(confusion[i])) < 1e-9, f"{entry}: accuracy")
    bins = evaluation["calibration"]["bins"]
    check(len(bins) == 15 and sum(b["images"] for b in bins) == 90, "bins")
    ece = sum(b["images"] * abs(b["accuracy"] - b["confidence"]) for b in bins) / 90
    check(abs(evaluation["calibration"]["ece"] - ece) < 1e-9, "ece is not that of its bins")
    check(all(b["images"] == 0 or b["from"] < b["confidence"] <= b["to"] + 1e-9 for b in bins), "confidence out of its bin")
    worst = evaluation["worst"]
    check(len(worst) == min(24, 90 - right) and len(worst) > 0, f"{len(worst)} worst of {90 - right}")
    losses = [image["loss"] for image in worst]
    check(losses == sorted(losses, reverse=True), "the worst are not in order")
    for image in worst:
        check(image["label"] != image["predicted"] and 0 <= image["index"] < 90, f"{image}")
        if "png" in image:
            check(pixels(image["png"]) == (32, 32, 3), "another picture")


def held_out():
    """A split, an average, early stopping and norms: what the log and the folder say of them fits."""
    run_dir = path("run")
    records = train("log", NET + f"--run-dir {run_dir} --epochs 3 --validation-split 0.2 --ema 0.9 --log-norms --log-dead-relus --per-class "
                                 "--early-stopping 50", RANKS)
    run, result, epochs = records[0], records[-1], of_kind(records, "epoch")
    check((run["train_images"], run["validation_images"], run["test_images"]) == (320, 80, 90), f"{run}")
    check(run["steps_per_epoch"] == 8, f"{run['steps_per_epoch']} steps")
    for epoch in epochs:
        check("test_loss" not in epoch and "test_accuracy" not in epoch, "the test set was looked at in an epoch")
        check(0 <= epoch["validation_accuracy"] <= 100 and epoch["validation_loss"] > 0, f"{epoch}")
        check([layer["name"] for layer in epoch["layers"]] != [] and
              all(layer[f"{what}_norm"] > 0 for layer in epoch["layers"] for what in ("gradient", "update", "weight")),
              f"{epoch['layers']}")
        check(epoch["relus"] != [] and all(0 <= relu["dead"] <= relu["channels"] for relu in epoch["relus"]), f"{epoch['relus']}")
        check(set(epoch["time"]) == {"data", "forward", "backward", "communication", "optimizer", "evaluation", "writing"},
              f"{epoch['time']}")
        check(sum(epoch["time"].values()) > 0.9 * epoch["seconds"], f"{epoch['time']} of {epoch['seconds']} s")
        check(epoch["memory"]["parameters"] > 0 and epoch["memory"]["activations"] > 0, f"{epoch['memory']}")
    check(0 <= result["test_accuracy"] <= 100, f"{result}")
    best = max(epochs, key=lambda epoch: epoch["validation_accuracy"])
    check(result["best"] == {"by": "validation_accuracy", "epoch": best["epoch"], "value": best["validation_accuracy"]},
          f"{result['best']}")
    with open(os.path.join(run_dir, "evaluation.json")) as file:
        check_evaluation(json.load(file), result)
    # The saved weights are those that were evaluated.
    again = of_kind(train("again", NET + f"--epochs 0 --load-weights {run_dir}/final.safetensors", RANKS), "result")[0]
    check(again["test_accuracy"] == result["test_accuracy"], "saved weights give another accuracy")
    check(abs(again["test_loss"] - result["test_loss"]) < 1e-6, "saved weights give another loss")
    raw = of_kind(train("raw", NET + "--epochs 3 --validation-split 0.2", RANKS), "epoch")
    check([epoch["train_loss"] for epoch in raw] == [epoch["train_loss"] for epoch in epochs], "the average changes training")
    check(raw[-1]["validation_loss"] != epochs[-1]["validation_loss"], "the average is not what is evaluated")


def steps():
    train("fourteen", NET + f"--steps 14 --save-weights {path('a')}", RANKS)
    records = train("seven", NET + f"--steps 7 --run-dir {path('seven')}", RANKS)
    check([epoch["epoch"] for epoch in of_kind(records, "epoch")] == [1], "7 of 10 steps are in the first epoch")
    records = train("on", NET + f"--steps 14 --run-dir {path('seven')} --resume auto --save-weights {path('b')}", RANKS)
    check([epoch["epoch"] for epoch in of_kind(records, "epoch")] == [1, 2], "steps 8 to 14 end the first epoch")
    check(contents("a") == contents("b"), "14 steps at once give other weights")


def slow_weights():
    """--lookahead ends with other weights, also where it was left; --tta evaluates these otherwise, and changes no training."""
    options = NET + "--steps 17 --lookahead 5 --lookahead-decay 0.9 --lookahead-power 1 "
    plain = of_kind(train("plain", NET + "--steps 17", RANKS), "result")[0]
    one_view = of_kind(train("one_view", options + f"--save-weights {path('slow')}", RANKS), "result")[0]
    check(one_view["test_loss"] != plain["test_loss"], "--lookahead changes nothing")
    run_dir = path("six")
    records = train("six", options + f"--tta six --run-dir {run_dir} --checkpoint-every 7", RANKS)
    check(contents("slow") == contents("six/final.safetensors"), "--tta changes training")
    six = of_kind(records, "result")[0]
    check(six["test_loss"] != one_view["test_loss"], "--tta changes nothing")
    with open(os.path.join(run_dir, "evaluation.json")) as file:
        check_evaluation(json.load(file), six)
    again = of_kind(train("evaluated", NET + f"--epochs 0 --load-weights {path('slow')} --tta six", RANKS), "result")[0]
    check(again["test_accuracy"] == six["test_accuracy"], "saved weights give another accuracy")
    check(abs(again["test_loss"] - six["test_loss"]) < 1e-6, "saved weights give another loss")
    # From the checkpoint of step 14, which is within a period of five.
    for name in os.listdir(os.path.join(run_dir, "checkpoints")):
        if "14" not in name:
            shutil.rmtree(os.path.join(run_dir, "checkpoints", name))
    train("on", options + f"--run-dir {run_dir} --resume auto --save-weights {path('on')}", RANKS)
    check(contents("slow") == contents("on"), "a run that goes on ends with other weights")


def stops():
    # No epoch can be better by 100 percent than the one before: the second and the third are not.
    log = os.path.join(FOLDER, "stops.jsonl")
    done = attempt(NET + f"--epochs 9 --early-stopping 2,100 --per-class --log {log}")
    check(done.returncode == 0, done.stderr)
    check("stopped early: no better since" in done.stdout and "test accuracy by class" in done.stdout, done.stdout)
    with open(log) as file:
        records = [json.loads(line) for line in file]
    check(len(of_kind(records, "epoch")) == 3 and records[-1]["stopped_early"] is True, "early stopping")


if __name__ == "__main__":
    try:
        held_out()
        steps()
        slow_weights()
        stops()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
