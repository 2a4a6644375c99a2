#!/usr/bin/env python3
"""Tests of conv_bench --serve and of the scripts that compare it with PyTorch.

    test_torch_comparison.py SCRIPTS CONV_BENCH

The last test, a whole comparison of one tiny layer, needs PyTorch; without it this ends with exit code 77, if all else is
well.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SHAPE = "2,3,6,6,8,3,3,1,1"
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}")


def run(command, text="", **environment):
    return subprocess.run(
        command, input=text, capture_output=True, text=True, env={**os.environ, **environment}, timeout=240
    )


def check_serving(bench):
    command = [bench, "--serve", "--shape", SHAPE, "--shape", "1,4,5,5,4,1,1,1,0", "--impl", "ours,autograd"]
    requests = "time 0 both autograd 3\ntime 1 bwd ours 2\ntime 0 fwd ours 1\nquit\n"
    result = run(command, requests)
    check(result.returncode == 0, f"serving ends with {result.returncode}: {result.stderr}")
    greeting, *answers = [json.loads(line) for line in result.stdout.splitlines()]
    check([case["k"] for case in greeting["cases"]] == [8, 4], f"cases: {greeting['cases']}")
    check(greeting["cases"][0]["flops"] == 3 * 2 * 2 * 36 * 8 * 27, f"operations: {greeting['cases'][0]}")
    check([len(answer["seconds"]) for answer in answers] == [3, 2, 1], f"answers: {answers}")
    check(all(0 <= answer["cpu_seconds"] < 10 for answer in answers), f"answers: {answers}")
    check(all(0 < second < 10 for answer in answers for second in answer["seconds"]), f"answers: {answers}")
    for request, complaint in (
        ("time 2 fwd ours 1", "there is no case 2"),
        ("time 0 fwd theirs 1", "'theirs' is not among"),
        ("time 0 bwd autograd 1", "ask for both"),
        ("time 0 fwd ours", "only 'time CASE PASS IMPL RUNS' and 'quit' are known"),
        ("step 3", "request 'step'"),
    ):
        result = run(command, request + "\n")
        check(result.returncode == 2, f"'{request}' ends with {result.returncode}")
        check(result.stderr.startswith("error: ") and complaint in result.stderr, f"'{request}': {result.stderr}")


def refuses(command, complaint, **environment):
    result = run(command, **environment)
    check(result.returncode == 2, f"{command} ends with {result.returncode}: {result.stderr}")
    lines = result.stderr.splitlines()
    check(len(lines) == 1 and lines[0].startswith("error: "), f"{command}: {result.stderr}")
    check(complaint in result.stderr, f"{command}: '{complaint}' is not in: {result.stderr}")


def check_step_comparison_refusals(scripts, folder):
    """compare_pytorch.py, with stand-ins for PyTorch, numpy and train_bench."""
    (folder / "torch.py").write_text("__version__ = '1.13'\nclass cuda:\n    is_available = staticmethod(lambda: False)\n")
    (folder / "numpy.py").write_text("")
    bench = folder / "train_bench"
    bench.write_text('#!/bin/sh\ncase "$*" in *cudn*) echo "error: unknown convolution cudn" >&2; exit 2 ;; esac\n')
    bench.chmod(0o755)
    command = [sys.executable, str(scripts / "compare_pytorch.py"), "--bench", str(bench)]
    for options, complaint in (
        (["--pairs", "0"], "--pairs 0: must be at least 1"),
        (["--pairs", "-3"], "--pairs -3: must be at least 1"),
        (["--steps", "0"], "--steps 0: must be at least 1"),
        (["--warmup", "-1"], "--warmup -1: must be at least 0"),
        (["--model", "all", "--batch-size", "64"], "--batch-size: --model all has batch sizes of its own"),
        (["--batch-size", "1.5"], "--batch-size '1.5': not a whole number"),
        (["--threads", "0"], "--threads 0: must be at least 1"),
        (["--lr", "nan"], "--lr 'nan': not a finite number above 0"),
        (["--lr", "0"], "--lr '0': not a finite number above 0"),
        (["--model", "vgg"], "--model invalid choice: 'vgg'"),
        (["--conv-impl", "auto,cudn"], "--conv-impl cudn: unknown convolution cudn"),
        (["--conv-impl", ""], "--conv-impl '': give names"),
        (["--torch-mode", "fast"], "--torch-mode 'fast': choose from eager, compile, reduce-overhead, graphed"),
        (["--torch-mode", "compile"], "--torch-mode compile: PyTorch 1.13 has no torch.compile"),
        (["--torch-mode", "eager,graphed"], "--torch-mode graphed: CUDA graphs are of a GPU: add --device cuda"),
        (["--torch-mode", "reduce-overhead"], "--torch-mode reduce-overhead: CUDA graphs are of a GPU: add --device cuda"),
        (["--device", "cuda", "--torch-mode", "graphed", "--optimizer", "rmsprop"], "PyTorch's rmsprop has no fused form"),
        (["--cuda-graph", "off,on"], "--cuda-graph on: CUDA graphs are of a GPU: add --device cuda"),
        (["--cuda-graph", "auto"], "--cuda-graph 'auto': choose from off, on"),
        (["--json", "/none/steps.json"], "--json '/none/steps.json': name a file in a folder that is there"),
        (["--device", "gpu"], "--device invalid choice: 'gpu'"),
        (["--device", "cuda"], "--device cuda: PyTorch 1.13 sees no GPU; without the option both compute on the CPU"),
        (["--precision", "int8"], "--precision invalid choice: 'int8'"),
        (["--torch-memory", "none"], "--torch-memory 'none': choose from default, kept"),
        (["--torch-format", "nchw,"], "--torch-format '': choose from nchw, channels_last"),
        (["--python", "/none/python"], "/none/python cannot import torch and numpy"),
        (["--python", str(folder)], "cannot import torch and numpy"),
        (["--bench", "/none/train_bench"], "/none/train_bench is not there"),
        (["--bench", str(folder)], "is not there, or no program"),
        (["--pairs"], "--pairs expected one argument"),
        (["--rounds", "3"], "unrecognized arguments: --rounds 3"),
    ):
        refuses([*command, *options], complaint, PYTHONPATH=str(folder))
    (folder / "torch.py").write_text("raise ImportError('no torch here')\n")
    refuses(command, "cannot import torch and numpy (ImportError: no torch here)", PYTHONPATH=str(folder))
    (folder / "torch.py").write_text("class cuda:\n    is_available = staticmethod(lambda: False)\n")


def check_step_comparison(scripts):
    """compare_pytorch.py on a GPU of stand-ins: steps that are launches, and a way of PyTorch that does not run."""
    ours = """#!{python}
import json, sys
print(json.dumps({{"start_bytes": 1, "flops_per_step": 1000000000}}), flush=True)
for line in sys.stdin:
    if line.strip() == "quit":
        break
    count = int(line.split()[1])
    is_on = sys.argv[-2:] == ["--cuda-graph", "on"]
    launches = count - {missing} if is_on else 0
    print(json.dumps({{"seconds": [0.001 if is_on else 0.002] * count, "loss": 2.0, "graph_launches": launches}}), flush=True)
"""
    theirs = """#!{python}
import json, sys
if sys.argv[1] == "-c":
    print("2.11 True True")
    sys.exit()
if "--write-inputs" in sys.argv:
    sys.exit()
mode = sys.argv[-1].split(":")[0]
print(json.dumps({{"start_bytes": 1, "loop": "fused", "version": "2.11"}}), flush=True)
for line in sys.stdin:
    if line.strip() == "quit":
        break
    if mode in {failing}:
        sys.exit(1)
    seconds = dict(eager=0.004, graphed=0.003)[mode]
    print(json.dumps({{"seconds": [seconds] * int(line.split()[1]), "loss": 2.0}}), flush=True)
"""

    def compare(folder, missing, failing):
        for name, text in (("ours", ours), ("theirs", theirs)):
            path = pathlib.Path(folder) / name
            path.write_text(text.format(python=sys.executable, missing=missing, failing=failing))
            path.chmod(0o755)
        command = [sys.executable, str(scripts / "compare_pytorch.py"), "--bench", f"{folder}/ours", "--python", f"{folder}/theirs"]
        command += ["--device", "cuda", "--pairs", "2", "--steps", "4", "--cuda-graph", "off,on", "--torch-mode", "eager,graphed"]
        return run([*command, "--torch-format", "nchw", "--json", f"{folder}/steps.json"])

    with tempfile.TemporaryDirectory() as folder:
        result = compare(folder, 0, [])
        check(result.returncode == 0, f"exit {result.returncode}: {result.stderr}")
        step_ms = {"ours auto": 2, "ours auto, graph": 1, "pytorch eager nchw": 4, "pytorch graphed nchw": 3}
        told = "step, ms: " + ", ".join(f"{name} {ms}.000" for name, ms in step_ms.items())
        check(result.stdout.splitlines()[-2:] == [told, "ratio 1.50"], result.stdout)
        check("ours auto, graph: 3.00 times PyTorch's speed" in result.stdout, result.stdout)
        (table,) = json.loads(pathlib.Path(f"{folder}/steps.json").read_text())
        check({name: round(ms, 6) for name, ms in table["step_ms"].items()} == step_ms, f"{table}")
        check((table["pytorch"], table["does_not_run"], table["batch_size"]) == ("2.11", [], 128), f"{table}")
        result = compare(folder, 0, ["graphed"])
        check(result.returncode == 1, f"a way that does not run: exit {result.returncode}: {result.stderr}")
        check("pytorch graphed nchw: does not run here" in result.stdout and "ratio 2.00" in result.stdout, result.stdout)
        (table,) = json.loads(pathlib.Path(f"{folder}/steps.json").read_text())
        check(table["does_not_run"] == ["pytorch graphed nchw"], f"{table}")
        result = compare(folder, 0, ["eager", "graphed"])
        check(result.returncode == 1 and "no way of PyTorch runs" in result.stderr, f"none: {result.returncode} {result.stderr}")
        result = compare(folder, 1, [])
        check(result.returncode == 1 and "3 of 4 steps were launches of a graph" in result.stderr, f"too few: {result.stderr}")


def check_refusals(scripts, bench):
    cpu = [sys.executable, str(scripts / "compare_torch_conv.py")]
    gpu = [sys.executable, str(scripts / "compare_torch_gpu.py")]
    with tempfile.TemporaryDirectory() as folder:
        stand_in = pathlib.Path(folder) / "torch.py"
        stand_in.write_text("class cuda:\n    is_available = staticmethod(lambda: False)\n")
        refuses(gpu, "PyTorch sees no GPU here", PYTHONPATH=folder)
        refuses([*cpu, "--bench", "/none/conv_bench"], "/none/conv_bench is not there, or no program: build", PYTHONPATH=folder)
        refuses([*cpu, "--bench", bench, "--rounds", "0"], "--rounds 0: must be at least 1", PYTHONPATH=folder)
        check_step_comparison_refusals(scripts, pathlib.Path(folder))
        for option, value, complaint in (
            ("--rounds", "-1", "must be at least 1"),
            ("--rounds", "1e3", "not a whole number"),
            ("--threads", "5000", "must be at most 4096"),
            ("--json", "", "name a file"),
            ("--json", "/none/report.json", "name a file in a folder that is there"),
            ("--bench", folder, "is not there, or no program"),
            ("--batch", "0", "--batch"),
            ("--layers", "vg", "--layers"),
            ("--torch-memory", "none", "--torch-memory invalid choice: 'none'"),
        ):
            refuses([*cpu, "--bench", bench, option, value], complaint, PYTHONPATH=folder)
        stand_in.write_text("raise ImportError('no torch here')\n")
        for command in (gpu, [*cpu, "--bench", bench]):
            refuses(command, "cannot import torch (no torch here)", PYTHONPATH=folder)


def keeps_memory(folder):
    """Of each stand-in, whether the last one was started with settings of glibc by which it keeps memory."""
    environments = {name: json.loads(pathlib.Path(f"{folder}/{name}.environment").read_text()) for name in ("ours", "theirs")}
    return {name: "MALLOC_TRIM_THRESHOLD_" in environment for name, environment in environments.items()}


def check_tables(scripts):
    """The scripts that time functions in turns, with stand-ins that answer 2 ms for ours and 3 ms for PyTorch."""
    answering = """#!{python}
import json, os, sys
with open("{folder}/{name}.environment", "w") as file:
    json.dump(dict(os.environ), file)
print(json.dumps({{"version": "9.9", "names": ["exp", "add"]}}), flush=True)
for line in sys.stdin:
    if line.strip() == "quit":
        break
    print(json.dumps({{"seconds": {seconds}}}), flush=True)
"""
    with tempfile.TemporaryDirectory() as folder:
        programs = {"ours": 0.002, "theirs": 0.003}
        for name, seconds in programs.items():
            path = pathlib.Path(folder) / name
            path.write_text(answering.format(python=sys.executable, folder=folder, name=name, seconds=seconds))
            path.chmod(0o755)
        for script, tables, row in (
            ("compare_elementwise.py", 4, "exp              2.000 ms      3.000 ms     1.50"),
            ("compare_functions.py", 2, "softmax         64,1000           2000.0 us     3000.0 us     1.50"),
            ("compare_matmul.py", 2, "64,64,64    64,64,64          2000.0 us     3000.0 us     1.50"),
        ):
            command = [sys.executable, str(scripts / script), "--bench", f"{folder}/ours", "--python", f"{folder}/theirs"]
            result = run([*command, "--pairs", "1", "--threads", "1"])
            lines = result.stdout.splitlines()
            check(result.returncode == 0 and lines.count("geometric mean 1.50") == tables, f"{script}: {result.stdout}{result.stderr}")
            check(lines.count(row) == tables, f"{script}: no line '{row}' in {result.stdout}")
            titles = [line for line in lines if line.endswith("1 threads; ours, PyTorch 9.9, ratio")]
            check(len(titles) == tables, f"{script}: titles {titles}")
            check(keeps_memory(folder) == {"ours": False, "theirs": True}, f"{script}: memory {keeps_memory(folder)}")
            result = run([*command, "--pairs", "1", "--threads", "1", "--torch-memory", "default"])
            check(keeps_memory(folder) == {"ours": False, "theirs": False}, f"{script}: memory {keeps_memory(folder)}")
            refuses([*command, "--pairs", "0"], "--pairs 0: must be at least 1")
            refuses([sys.executable, str(scripts / script), "--bench", "/none/bench"], "/none/bench is not there, or no program")


def check_comparison(scripts, bench):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [sys.executable, str(scripts / "compare_torch_conv.py"), "--bench", bench, "--shape", SHAPE]
        result = run([*command, "--rounds", "2", "--threads", "1", "--json", str(report)])
        check(result.returncode == 0, f"comparison ends with {result.returncode}: {result.stderr}")
        check("geometric mean, all (1 layers): " in result.stdout, result.stdout)
        rows = json.loads(report.read_text())["rows"]
        check(len(rows) == 1 and rows[0]["best"] in ("nchw", "channels_last"), f"rows: {rows}")
        seconds = rows[0]["seconds"]
        check(all(len(pairs) == 2 and min(map(min, pairs)) > 0 for pairs in seconds.values()), f"rows: {rows}")
        best = f"{rows[0]['best']} both"
        ratios = sorted(theirs[0] / ours[0] for theirs, ours in zip(seconds[best], seconds["autograd both"]))
        check(abs(rows[0]["ratio"] - sum(ratios) / 2) < 1e-9, f"rows: {rows}")


def main():
    scripts, bench = pathlib.Path(sys.argv[1]), sys.argv[2]
    check_serving(bench)
    check_refusals(scripts, bench)
    check_tables(scripts)
    check_step_comparison(scripts)
    has_torch = importlib.util.find_spec("torch") is not None
    if has_torch:
        check_comparison(scripts, bench)
    if failures:
        sys.exit(1)
    if not has_torch:
        print(f"skipped: {sys.executable} has no torch for a whole comparison; all else is well")
        sys.exit(77)


if __name__ == "__main__":
    main()
