#!/usr/bin/env python3
"""Reads event files with PyPI's tensorboard: check_events.py WRITE_EVENTS [CIFAR_TRAIN].

Where that package is missing (setup.sh --tests gets it), or cannot be loaded, the exit code is 77: skipped.
"""
import csv
import glob
import io
import json
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../apps"))
from run_case import environment  # noqa: E402

SKIPPED = 77
try:
    import numpy as np
    from tensorboard.backend.event_processing import event_file_loader, plugin_event_accumulator
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
    from tensorboard.util import tensor_util
except ImportError as error:
    if os.environ.get("CI") == "true":
        sys.exit(f"FAILED: PyPI's tensorboard cannot be loaded: {error}; where CI=true this is not skipped")
    print(f"skipped: PyPI's tensorboard cannot be loaded: {error}")
    sys.exit(SKIPPED)


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def load(folder):
    """All of a run's events, none of them thinned out."""
    events = plugin_event_accumulator.EventAccumulator(folder, size_guidance={"tensors": 0},
                              purge_orphaned_data=True)
    events.Reload()
    return events


def series(events, tag):
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto).item()) for event in events.Tensors(tag)]


def raw(path):
    return list(event_file_loader.LegacyEventFileLoader(path).Load())


def bins(events, tag):
    return tensor_util.make_ndarray(events.Tensors(tag)[0].tensor_proto)


def event_files(folder):
    return sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*")))


def check_beginning(path, first_step):
    first, second = raw(path)[:2]
    check(first.file_version == "brain.Event:2", f"{path} begins with {first}")
    check(second.session_log.status == second.session_log.START and second.step == first_step, f"{path}: {second}")


def check_kinds(folder, has_images):
    events = load(folder)
    (path,) = event_files(folder)
    check_beginning(path, 0)
    loss = series(events, "loss/train")
    check([step for step, _ in loss] == list(range(1, 21)), f"steps: {loss}")
    check(all(value == np.float32(1 / step) for step, value in loss), f"values: {loss}")
    check(math.isnan(series(events, "odd/nan")[0][1]), "NaN")
    check(series(events, "odd/inf") == [(1, math.inf)] and series(events, "odd/negative_inf") == [(1, -math.inf)], "Inf")
    check(series(events, "odd/late") == [(1 << 40, 2.5)], "a large step")
    check(series(events, "t" * 100_000) == [(1, 1.0)], "a huge tag")
    check(series(events, "odd/\ufffd\ufffd utf-8 ü") == [(1, 3.0)], f"tags: {[tag[:50] for tag in events.Tags()['tensors']]}")
    plain = bins(events, "histograms/plain")
    check(plain[:, 2].sum() == 6 and plain[0, 0] == -1 and plain[-1, 1] == 3, f"histogram: {plain}")
    filled = plain[plain[:, 2] > 0]
    check(filled[:, 2].tolist() == [1, 2, 1, 1, 1], f"bins: {filled}")
    for (left, right, _), value in zip(filled, [-1, 0, 0.5, 1, 3]):
        check(left <= value <= right, f"{value} is not in [{left}, {right}]")
    for tag in ("empty", "nothing_finite"):
        check(bins(events, "histograms/" + tag).shape == (0, 3), f"{tag}: {bins(events, 'histograms/' + tag)}")
    check(bins(events, "histograms/alike").tolist() == [[2, 2, 4]], "histogram of one value")
    check(bins(events, "histograms/not_finite")[:, 2].sum() == 2, "histogram with what is not finite")
    text = events.Tensors("text/markdown")[0]
    check(text.step == 4 and text.tensor_proto.string_val[0].decode() == "**bold** and ü, broken \ufffd", f"text: {text}")
    check(events.SummaryMetadata("text/markdown").plugin_data.plugin_name == "text", "plugin of text")
    check(has_images == ("images/color" in events.Tags()["tensors"]), f"images: {events.Tags()}")
    if has_images:
        check_images(events, folder)


def check_images(events, folder):
    from PIL import Image
    pixels = {3: lambda c, y, x: 100 * c + 10 * y + x, 1: lambda c, y, x: 10 * y + x}
    for tag, channels in (("images/color", 3), ("images/grey", 1)):
        width, height, png = events.Tensors(tag)[0].tensor_proto.string_val
        check((width, height) == (b"7", b"5"), f"{tag}: {width} x {height}")
        image = np.asarray(Image.open(io.BytesIO(png))).reshape(5, 7, channels)
        expected = np.array([[[pixels[channels](c, y, x) for c in range(channels)] for x in range(7)] for y in range(5)])
        check((image == expected).all(), f"{tag}: {image}")
    check(events.SummaryMetadata("images/color").display_name == "a title", "title")
    for event in raw(event_files(folder)[0]):  # without the name, readers warn of each image
        for value in event.summary.value:
            if value.HasField("image"):
                check(value.metadata.plugin_data.plugin_name == "images", f"{value.tag}: {value.metadata}")


def hparams_of(events):
    """What the plugin keeps: experiment, session_start_info and session_end_info."""
    found = {}
    for tag in (metadata.EXPERIMENT_TAG, metadata.SESSION_START_INFO_TAG, metadata.SESSION_END_INFO_TAG):
        plugin = events.SummaryMetadata(tag).plugin_data
        check(plugin.plugin_name == metadata.PLUGIN_NAME, f"{tag} is of the plugin {plugin.plugin_name}")
        content = plugin_data_pb2.HParamsPluginData.FromString(plugin.content)
        found[tag.rpartition("/")[2]] = content
    return found


def check_hparams(folder):
    """The plugin's own back end compares the runs."""
    from tensorboard import context
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import backend_context, get_experiment, list_session_groups

    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(folder)
    multiplexer.Reload()
    backend = backend_context.Context(base_plugin.TBContext(
        data_provider=data_provider.MultiplexerDataProvider(multiplexer, folder)))
    request = context.RequestContext()
    experiment = get_experiment.Handler(request, backend, "", api_pb2.GetExperimentRequest()).run()
    names = {info.name for info in experiment.hparam_infos}
    check(names == {"lr", "nesterov", "optimizer", "epochs"}, f"settings: {names}")
    check([info.name.tag for info in experiment.metric_infos] == ["accuracy/test"], f"results: {experiment.metric_infos}")
    groups = list_session_groups.Handler(request, backend, "", api_pb2.ListSessionGroupsRequest(
        start_index=0, slice_size=10, allowed_statuses=[api_pb2.STATUS_SUCCESS])).run()
    rows = {}
    for group in groups.session_groups:
        values = {name: getattr(value, value.WhichOneof("kind")) for name, value in group.hparams.items()}
        rows[values["lr"]] = (values, [metric.value for metric in group.metric_values])
    check(rows == {0.1: ({"lr": 0.1, "nesterov": True, "optimizer": "sgd", "epochs": 8.0}, [81.5]),
                   0.25: ({"lr": 0.25, "nesterov": False, "optimizer": "adam", "epochs": 8.0}, [90.0])}, f"runs: {rows}")


def check_resumed(folder):
    first, second = event_files(folder)
    check_beginning(second, 7)
    points = series(load(folder), "loss/step")
    check(points == [(step, float(step)) for step in range(1, 7)] + [(step, 100.0 + step) for step in range(7, 10)],
          f"points: {points}")


def check_costs(events, epochs, run):
    """Time by phase, memory by kind and norms of layers as the log has them; of the end, the accuracy of each class."""
    def check_series(tag, values):
        found = [value for _, value in series(events, tag)]
        check(found == [np.float32(value) for value in values], f"{tag}: {found}, logged: {values}")

    phases, kinds = list(epochs[0]["time"]), list(epochs[0]["memory"])
    check(len(phases) == 7 and "parameters" in kinds and len(epochs[0]["layers"]) >= 2, f"{epochs[0]}")
    for phase in phases:
        check_series(f"time/{phase}_seconds", [epoch["time"][phase] for epoch in epochs])
    for kind in kinds:
        check_series(f"memory/{kind}_bytes", [epoch["memory"][kind] for epoch in epochs])
    for place, layer in enumerate(epochs[0]["layers"]):
        for norm in ("gradient_norm", "update_norm", "weight_norm"):
            check_series(f"{norm}/{layer['name']}", [epoch["layers"][place][norm] for epoch in epochs])
    check(len(epochs[0]["relus"]) >= 2, f"{epochs[0]}")
    for place, relu in enumerate(epochs[0]["relus"]):
        check_series(f"dead_relus/{relu['name']}", [100.0 * epoch["relus"][place]["dead"] / relu["channels"] for epoch in epochs])
    with open(os.path.join(run, "evaluation.json")) as file:
        evaluation = json.load(file)
    for entry in evaluation["per_class"]:
        check(series(events, f"accuracy_of_class/{entry['class']}")[-1] == (8, np.float32(entry["accuracy"])), f"{entry}")
    check(series(events, "calibration/expected_error")[-1] == (8, np.float32(evaluation["calibration"]["ece"])), "calibration")


def check_run(program, work):
    """A whole run of cifar_train, and what it goes on with."""
    run = os.path.join(work, "runs", "first")
    command = [program, *("--dataset synthetic --limit-train 64 --limit-test 16 --model mnist_cnn --layers 2 --threads 1 "
                          "--global-batch-size 16 --log-every 1 --log-norms --log-dead-relus --histograms --progress none --run-dir").split(), run]
    with open(os.path.join(work, "evaluation.json"), "w") as file:
        json.dump({"classes": ["cat", "dog"], "worst": []}, file)
    for epochs, more in (("1", []), ("2", ["--resume", "auto"])):
        done = subprocess.run(command + ["--epochs", epochs] + more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env=environment(), timeout=300)
        check(done.returncode == 0, done.stdout)
    check(f"  events   tensorboard --logdir {work}/runs\n" in done.stdout, done.stdout)
    first, second = event_files(run)
    check_beginning(first, 1)
    check_beginning(second, 5)
    with open(os.path.join(run, "log.jsonl")) as file:
        records = [json.loads(line) for line in file]
    events = load(run)
    # What the log has, the events have.
    for kind, tag, field in (("step", "loss/step", "loss"), ("epoch", "loss/train", "train_loss"),
                             ("epoch", "accuracy/test", "test_accuracy")):
        logged = [np.float32(record[field]) for record in records if record["record"] == kind]
        read = series(events, tag)
        check([value for _, value in read] == logged, f"{tag}: {read}, logged: {logged}")
        check([step for step, _ in read] == (list(range(1, 9)) if kind == "step" else [4, 8]), f"{tag}: {read}")
    check_costs(events, [record for record in records if record["record"] == "epoch"], run)
    # A setting of hparams, and of text.
    found = hparams_of(events)
    start = found["session_start_info"].session_start_info
    check(start.hparams["model"].string_value == "mnist_cnn" and start.hparams["log-every"].number_value == 1, f"{start}")
    check(found["session_end_info"].session_end_info.status == api_pb2.STATUS_SUCCESS, f"{found}")
    check(b'model = "mnist_cnn"' in events.Tensors("run/settings")[0].tensor_proto.string_val[0], "settings")
    tags = events.Tags()["tensors"]
    weights = [tag for tag in tags if tag.startswith("weights/")]
    check(len(weights) >= 4 and all(tag.replace("weights/", "gradients/") in tags for tag in weights), f"tags: {tags}")
    for tag in weights:
        check([event.step for event in events.Tensors(tag)] == [4, 8], f"{tag}: {events.Tensors(tag)}")
        check(bins(events, tag)[:, 2].sum() > 0, f"{tag}: {bins(events, tag)}")
    gradient = bins(events, weights[0].replace("weights/", "gradients/"))
    check(gradient[0, 0] < 0 < gradient[-1, 1], f"gradients: {gradient}")
    with open(os.path.join(run, "curves.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    epochs = [record for record in records if record["record"] == "epoch"]
    check([row["epoch"] for row in rows] == ["1", "2"], f"{rows}")
    with open(os.path.join(run, "steps.csv"), newline="") as file:
        steps = [(int(row["step"]), float(row["loss"])) for row in csv.DictReader(file)]
    check(steps == [(record["step"], record["loss"]) for record in records if record["record"] == "step"], f"{steps}")
    check([float(row["train_loss"]) for row in rows] == [record["train_loss"] for record in epochs], f"{rows}")
    with open(os.path.join(run, "environment.json")) as file:
        told = json.load(file)
    check(told["state"] == "finished" and told["exit_code"] == 0 and told["command"][1:] == command[1:] + ["--epochs", "2",
          "--resume", "auto"], f"{told}")


def check_validated_run(program, work):
    """Of a run with --validation-split: what it is compared by, and the test at its end, once, also where it goes on."""
    run = os.path.join(work, "validated")
    command = [program, *("--dataset synthetic --limit-train 64 --limit-test 16 --model mnist_cnn --layers 2 --threads 1 "
                          "--global-batch-size 16 --validation-split 0.25 --epochs 2 --progress none --run-dir").split(), run]
    for more in ([], ["--resume", "auto"]):
        subprocess.run(command + more, stdout=subprocess.DEVNULL, check=True, env=environment(), timeout=300)
    with open(os.path.join(run, "log.jsonl")) as file:
        records = [json.loads(line) for line in file]
    result = next(record for record in records if record["record"] == "result")
    events = load(run)
    for figure in ("loss", "accuracy"):
        check(series(events, f"{figure}/test") == [(6, np.float32(result[f"test_{figure}"]))], f"{figure}: {series(events, f'{figure}/test')}")
        check([step for step, _ in series(events, f"{figure}/validation")] == [3, 6], f"{figure} of validation")
    metrics = {info.name.tag for info in hparams_of(events)["experiment"].experiment.metric_infos}
    check({"accuracy/test", "accuracy/validation", "loss/validation"} <= metrics <= set(events.Tags()["tensors"]), f"{metrics}")


def main():
    with tempfile.TemporaryDirectory(prefix="tandem_events_") as work:
        written = subprocess.run([sys.argv[1], work], stdout=subprocess.PIPE, text=True, check=True, env=environment())
        check_kinds(os.path.join(work, "kinds"), "no images" not in written.stdout)
        check_hparams(os.path.join(work, "hparams"))
        check_resumed(os.path.join(work, "resumed"))
        if len(sys.argv) > 2:
            check_run(sys.argv[2], work)
            check_validated_run(sys.argv[2], work)


main()
