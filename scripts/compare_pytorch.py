#!/usr/bin/python3
"""Times whole training steps of this framework and of PyTorch on this machine, in turn.

  scripts/compare_pytorch.py --model vgg_lite --batch-size 128
  scripts/compare_pytorch.py --model all
  scripts/compare_pytorch.py --python ~/venv/bin/python --torch-mode eager,compile --torch-format channels_last
  scripts/compare_pytorch.py --device cuda --bench build/cuda/apps/train_bench --precision fp16 --torch-mode eager,compile
  scripts/compare_pytorch.py --device cuda --bench build/cuda/apps/train_bench --cuda-graph off,on --torch-mode eager,graphed

Long-lived processes (ours, and PyTorch in each mode and memory format that is asked for: NCHW images, or channels_last
images and weights) start from the same weights and hold the same batch. Round after round each in turn times a few
steps (zero_grad, forward, loss, backward, optimizer) while the others wait for input; a round gives one pair per
PyTorch process. Images per second come from the median step of a turn. The last line, `ratio R`, is the median over
rounds of ours over PyTorch in the way that is the best one over all rounds.

PyTorch is that of `--python`; this script itself needs none. "compile" is torch.compile of the network with its loss
(it takes a C++ compiler), before the first turn; "reduce-overhead" is the mode of it that records CUDA graphs, and
"graphed" an eager step that is recorded as a whole, with backward and the optimizer, as one CUDA graph: both take a
GPU. `--cuda-graph off,on` has our step taken without and with one. A way of PyTorch that fails is named and left out,
and the exit code is 1. PyTorch runs at its best: oneDNN on, gradients set to None, ReLU in
place, no dropout modules, the faster of its single- and multi-tensor (foreach) optimizer loops, tried at the start.
Threads are set on both sides; waiting threads sleep on both sides. On the CPU each way of PyTorch runs twice: with
memory as the C library gives it, and with settings of glibc by which it keeps what it has (scripts/turns.py), because
PyTorch itself keeps none. The environment is handed on: ATEN_CPU_CAPABILITY=avx512 tries its wider elementwise kernels.

With `--device cuda` both compute on the GPU, and the last thing of each step is to read the loss. PyTorch chooses its
convolutions by measuring (cudnn.benchmark), and its optimizer may be one fused kernel. `--precision tf32` lets it
multiply in TF32; fp16 and bf16 are autocast, and fp16 with a GradScaler, as ours scale the loss.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command_line import Parser, check_output, complain, positive_number, program, run, several, whole_number, write_json
from torch_convolutions import refusal, require_onednn, version_of
from turns import MEMORY, SETTLE_SECONDS, Party, Turns, environment_for

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "parity"))

MODELS = {
    "vgg_lite": dict(in_channels=3, image_size=32),
    "small_cnn": dict(in_channels=3, image_size=32),
    "mnist_cnn": dict(in_channels=1, image_size=28, layers=10),
    "resnet18": dict(in_channels=3, image_size=32),
    "airbench94": dict(in_channels=3, image_size=32),
}
ALL_SIZES = {"vgg_lite": (128, 32), "small_cnn": (128, 32), "mnist_cnn": (128, 32), "resnet18": (64,)}
OURS = "ours"  # begins the names of our processes; behind it the code that convolves
GRAPH = ", graph"  # ends those whose steps are launches of a CUDA graph
MODES, FORMATS = ("eager", "compile", "reduce-overhead", "graphed"), ("nchw", "channels_last")
COMPILED = {"compile": "default", "reduce-overhead": "reduce-overhead"}  # modes of torch.compile
EAGER_STEPS = 3  # that a graph is recorded behind


# The PyTorch process -------------------------------------------------------------------------------------------------


def make_torch_optimizer(torch, parameters, name, lr, loop, more=()):
    kinds = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "rmsprop": torch.optim.RMSprop,
        "sgd": torch.optim.SGD,
    }
    options = {"momentum": 0.9} if name == "sgd" else {}
    return kinds[name](parameters, lr=lr, **LOOPS[loop], **options, **dict(more))


FUSED = "in one kernel (fused)"
LOOPS = {
    "over single tensors": {"foreach": False},
    "over all tensors at once (foreach)": {"foreach": True},
    FUSED: {"fused": True},
}


class TorchStep:
    """A network of PyTorch, its batch and its loss; called with an optimizer it does a step and gives seconds and loss."""

    def __init__(self, torch, arguments):
        import safetensors_file
        import torch_models

        self.torch, self.arguments, self.device = torch, arguments, arguments.device
        self.mode, memory_format = arguments.serve.split(":")
        layout = torch.channels_last if memory_format == "channels_last" else torch.contiguous_format
        self.weights = safetensors_file.read(arguments.weights).tensors
        self.model = torch_models.make_model(arguments.model, **MODELS[arguments.model])
        self.load_weights()
        self.model = self.model.to(device=self.device, memory_format=layout).train()
        half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(arguments.precision)
        batch = safetensors_file.read(arguments.batch).tensors
        # In halves where convolutions are, as ours: no step casts them.
        self.images = torch.from_numpy(batch["images"]).to(device=self.device, dtype=half, memory_format=layout)
        self.labels = torch.from_numpy(batch["labels"]).to(self.device)
        self.criterion = torch.nn.CrossEntropyLoss()
        # A cache of casts would outlive the recording of a graph.
        self.autocast = torch.autocast(
            self.device, dtype=half, enabled=half is not None, cache_enabled=self.mode != "graphed"
        )
        self.scaler = torch.amp.GradScaler(self.device, enabled=half is torch.float16) if half else None
        self.loss_function = self.plain_loss
        if self.mode in COMPILED:
            self.loss_function = torch.compile(self.plain_loss, mode=COMPILED[self.mode])
        self.graph, self.graph_loss, self.steps_taken = None, None, 0
        self.stream = torch.cuda.Stream() if self.mode == "graphed" else None

    def load_weights(self):
        self.model.load_state_dict({name: self.torch.from_numpy(value) for name, value in self.weights.items()})

    def plain_loss(self):
        with self.autocast:
            return self.criterion(self.model(self.images), self.labels)

    def synchronize(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def __call__(self, optimizer):
        start = time.perf_counter()
        if self.mode == "graphed":
            loss = self.graphed(optimizer)
        else:
            optimizer.zero_grad(set_to_none=True)
            loss = self.take(optimizer)
        value = loss.item()  # waits for all of the step, as the optimizer works on the same stream
        return time.perf_counter() - start, value

    def take(self, optimizer):
        """All of a step but setting gradients to None; its loss, for which nothing waits."""
        loss = self.loss_function()
        if self.scaler is None:
            loss.backward()
            optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(optimizer)
            self.scaler.update()
        return loss.detach()

    def graphed(self, optimizer):
        """The first steps are eager, on a stream of their own; the next is recorded, and launched from then on. Gradients
        stay where the recorded backward has put them (torch.cuda.graph's whole-network capture)."""
        cuda = self.torch.cuda
        if self.graph is None:
            optimizer.zero_grad(set_to_none=True)
            if self.steps_taken < EAGER_STEPS:
                self.steps_taken += 1
                self.stream.wait_stream(cuda.current_stream())
                with cuda.stream(self.stream):
                    loss = self.take(optimizer)
                cuda.current_stream().wait_stream(self.stream)
                return loss
            graph = cuda.CUDAGraph()
            with cuda.graph(graph, stream=self.stream):
                self.graph_loss = self.take(optimizer)
            self.graph = graph
        self.graph.replay()
        return self.graph_loss

    def best_optimizer(self):
        """The fastest of PyTorch's loops, by name, and an optimizer that uses it: they differ in the update alone, which is
        timed on the gradients of one step; after that all starts afresh. A graph takes the fused one, which waits for no
        answer of a loss scale."""
        if self.mode == "graphed":
            return FUSED, self.make_optimizer(FUSED)
        arguments, trials = self.arguments, {}
        self.loss_function().backward()
        for loop in LOOPS:
            if "fused" in LOOPS[loop] and (self.device == "cpu" or arguments.optimizer == "rmsprop"):
                continue
            optimizer = self.make_optimizer(loop)
            times = []
            for _ in range(5):
                self.synchronize()
                start = time.perf_counter()
                optimizer.step()
                self.synchronize()
                times.append(time.perf_counter() - start)
            trials[loop] = min(times)
        self.load_weights()
        best = min(trials, key=trials.get)
        return best, self.make_optimizer(best)

    def make_optimizer(self, loop):
        name = self.arguments.optimizer
        # Adam counts its steps on the GPU then; SGD has no count.
        capturable = {"capturable": True} if self.mode == "graphed" and name != "sgd" else {}
        return make_torch_optimizer(self.torch, self.model.parameters(), name, self.arguments.lr, loop, capturable)


def serve_pytorch(arguments):
    """Answers "step N" with the times of N steps, as train_bench --serve does."""
    import torch

    start_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    torch.set_num_threads(arguments.threads)
    if arguments.device == "cpu":
        require_onednn(torch)
    else:
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = arguments.precision == "tf32"
    step = TorchStep(torch, arguments)
    loop, optimizer = step.best_optimizer()
    version = version_of(torch, arguments.device).removeprefix("PyTorch ")
    print(json.dumps({"start_bytes": start_bytes, "loop": loop, "version": version}), flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        timed = [step(optimizer) for _ in range(int(words[1]))]
        print(json.dumps({"seconds": [seconds for seconds, _ in timed], "loss": timed[-1][1]}), flush=True)


# The comparing process -----------------------------------------------------------------------------------------------


def write_inputs(arguments):
    """The weights and the batch that all start from; runs in the Python that has PyTorch."""
    import numpy as np
    import torch

    import safetensors_file
    import torch_models

    folder, model = Path(arguments.write_inputs), MODELS[arguments.model]
    torch.manual_seed(0)
    twin = torch_models.make_model(arguments.model, **model)
    safetensors_file.write(
        folder / "weights.safetensors", {name: value.numpy() for name, value in twin.state_dict().items()}
    )
    generator = np.random.default_rng(0)
    shape = (arguments.batch_size, model["in_channels"], model["image_size"], model["image_size"])
    safetensors_file.write(
        folder / "batch.safetensors",
        {
            "images": generator.standard_normal(shape).astype(np.float32),
            "labels": generator.integers(0, 10, arguments.batch_size),
        },
    )


def start_parties(arguments, folder, model):
    """The processes by name, and the names of PyTorch's ways that do not run here, as some version's graphs may not."""
    files = [str(folder / "batch.safetensors"), str(folder / "weights.safetensors")]
    common = ["--model", model, "--optimizer", arguments.optimizer, "--lr", str(arguments.lr)]
    common += ["--threads", str(arguments.threads), "--device", arguments.device, "--precision", arguments.precision]
    geometry = [text for key, value in MODELS[model].items() for text in (f"--{key.replace('_', '-')}", str(value))]
    ours = [arguments.bench, "--serve", *common, *geometry, "--batch", files[0], "--load-weights", files[1]]
    environments = {memory: environment_for(arguments.threads, memory) for memory in MEMORY}
    # By name; started one after the other, as PyTorch tries its convolutions (cudnn.benchmark) and its optimizer's loops.
    parties, failed = {}, []
    for impl in arguments.conv_impl:
        for graph in arguments.cuda_graph:
            is_on = graph == "on"
            command = [*ours, "--conv-impl", impl, *(["--cuda-graph", "on"] if is_on else [])]
            parties[f"{OURS} {impl}" + (GRAPH if is_on else "")] = started(command, environments["default"], arguments)
    torch_side = [arguments.python, __file__, *common, "--batch", files[0], "--weights", files[1], "--serve"]
    for mode in arguments.torch_mode:
        for memory_format in arguments.torch_format:
            for memory in arguments.torch_memory:
                name = f"pytorch {mode} {memory_format}" + (", memory kept" if memory == "kept" else "")
                try:
                    parties[name] = started([*torch_side, f"{mode}:{memory_format}"], environments[memory], arguments)
                except SystemExit as ended:  # it has said why
                    if ended.code == 2:
                        raise
                    failed.append(name)
                    print(f"warning: {name} does not run here, and is left out", file=sys.stderr)
    if all(name.startswith(OURS) for name in parties):
        complain("no way of PyTorch runs: nothing to compare with", code=1)
    return parties, failed


def started(command, environment, arguments):
    """A process that has taken the steps before the first round, and is idle."""
    party = Party(command, environment)
    party.request(f"step {arguments.warmup}")
    time.sleep(SETTLE_SECONDS)
    return party


def take_turns(parties, arguments):
    """The median step and the processor time per step of each party in each round, and its last loss; complains where a
    waiting process was not idle."""
    medians, processor, losses = {name: [] for name in parties}, {name: [] for name in parties}, {}
    turns = Turns(parties)
    order = list(parties)
    for pair in range(arguments.pairs):
        first = pair % len(order)
        for name in order[first:] + order[:first]:  # so that no one always follows the same one
            timed, used = turns.take(name, f"step {arguments.steps}")
            processor[name].append(used / arguments.steps)
            medians[name].append(statistics.median(timed["seconds"]))
            losses[name] = timed["loss"]
            if name.endswith(GRAPH) and timed["graph_launches"] != arguments.steps:
                complain(
                    f"{name}: {timed['graph_launches']} of {arguments.steps} steps were launches of a graph; the first are "
                    "none, nor those that a loss scale skips before: give more --warmup",
                    code=1,
                )
    turns.complain()
    return medians, processor, losses


def output_of(command):
    """What a program prints; where it fails, so does this script."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1].removeprefix("error: ")
        complain(f"{command[0]} ended with {done.returncode}: {last}", code=1)
    return done.stdout


class Peak:
    """The machine's peak: the most that was ever measured, as other programs only make it less."""

    def __init__(self, arguments):
        self.command = [arguments.bench, "--peak", "--threads", str(arguments.threads)]
        self.gflops = 0.0
        self.measure()

    def measure(self):
        self.gflops = max(self.gflops, json.loads(output_of(self.command))["peak_gflops"])
        return self.gflops


COMPARED = []  # a dictionary for each table


def compare(arguments, model, batch_size, peak):
    """Prints the table of one model and batch size; the ratio."""
    with tempfile.TemporaryDirectory(prefix="tandem_compare.") as temporary:
        folder = Path(temporary)
        command = [arguments.python, __file__, "--write-inputs", str(folder), "--model", model]
        output_of([*command, "--batch-size", str(batch_size)])
        parties, failed = start_parties(arguments, folder, model)
        medians, processor, losses = take_turns(parties, arguments)
        memory = {name: party.peak_memory() for name, party in parties.items()}
        # What the program and its libraries took before there was a model is taken off.
        grown = {name: memory[name] - party.greeting["start_bytes"] for name, party in parties.items()}
        first = next(iter(parties))
        gflop = parties[first].greeting["flops_per_step"] * 1e-9
        loops = {name: party.greeting.get("loop") for name, party in parties.items()}
        version = next(party.greeting["version"] for party in parties.values() if "version" in party.greeting)
        for party in parties.values():
            party.quit()
    peak_gflops = peak.measure() if peak else math.nan

    where = f"{arguments.threads} threads" if arguments.device == "cpu" else arguments.device
    print(
        f"\n{model}, batch {batch_size}, {arguments.precision}, {arguments.optimizer}, {where}, "
        f"{gflop:.2f} GFLOP per step; {arguments.pairs} rounds of {arguments.steps} steps"
    )
    if peak:
        print(
            f"machine: {peak_gflops:.0f} GFLOP/s of f32 multiply-adds in registers at most; GFLOP/s below count operations "
            "by\nthe definition of convolution, of which Winograd's algorithm saves more than half, so its share may pass "
            "100 %"
        )
    columns = ("images/s", "step ms", "CPU ms", "GFLOP/s", "% of peak", "peak MiB", "grown MiB")
    shown = len(columns) if peak else 4  # of a GPU neither its peak nor its memory is known here
    width = max(map(len, medians))
    print(" " * width + "".join(f"{column:>11}" for column in columns[:shown]))
    for name, times in medians.items():
        step, rate = statistics.median(times), gflop / statistics.median(times)
        values = (
            f"{batch_size / step:.1f}",
            f"{1e3 * step:.{1 if peak else 3}f}",
            f"{1e3 * statistics.median(processor[name]):.1f}",
            f"{rate:.1f}",
            f"{100 * rate / peak_gflops:.1f}",
            f"{memory[name] / 2**20:.0f}",
            f"{grown[name] / 2**20:.0f}",
        )
        print(f"{name:<{width}}" + "".join(f"{value:>11}" for value in values[:shown]))
    theirs = [name for name in medians if not name.startswith(OURS)]
    better = min(theirs, key=lambda name: statistics.median(medians[name]))

    def ratios_of(ours):
        return [theirs / ours for theirs, ours in zip(medians[better], medians[ours])]

    ratios = ratios_of(first)
    print(
        f"PyTorch {version}: best as {better}; optimizer loop {loops[better]}, the fastest here; "
        f"ratios of {first}: {' '.join(f'{ratio:.2f}' for ratio in ratios)}"
    )
    for name in medians:
        if name.startswith(OURS) and name != first:
            print(f"{name}: {statistics.median(ratios_of(name)):.2f} times PyTorch's speed")
    unset = [name for name in theirs if not name.endswith("kept")]
    if unset and len(unset) < len(theirs):
        usual = min(unset, key=lambda name: statistics.median(medians[name]))
        ratio = statistics.median(theirs / ours for theirs, ours in zip(medians[usual], medians[first]))
        print(f"with memory as the C library gives it, {usual}: {first} has {ratio:.2f} times its speed")
    COMPARED.append(
        {
            "model": model,
            "batch_size": batch_size,
            "precision": arguments.precision,
            "optimizer": arguments.optimizer,
            "device": arguments.device,
            "steps_per_round": arguments.steps,
            "pytorch": version,
            "step_ms": {name: 1e3 * statistics.median(times) for name, times in medians.items()},
            "step_ms_by_round": {name: [1e3 * seconds for seconds in times] for name, times in medians.items()},
            "does_not_run": failed,
            "ratio": statistics.median(ratios),
        }
    )
    if arguments.json:
        write_json("--json", arguments.json, COMPARED)
    spread = max(losses.values()) - min(losses.values())
    print(
        f"loss after {arguments.warmup + arguments.pairs * arguments.steps} steps: "
        + ", ".join(f"{name} {loss:.5f}" for name, loss in losses.items())
        + f" (spread {spread:.1e})"
    )
    for name in failed:
        print(f"{name}: does not run here")
    print("step, ms: " + ", ".join(f"{name} {1e3 * statistics.median(times):.3f}" for name, times in medians.items()))
    return statistics.median(ratios)


def parse_arguments():
    parser = Parser(__doc__)
    parser.add_argument(
        "--model",
        default="vgg_lite",
        choices=[*MODELS, "all"],
        help="default vgg_lite; all: each, batch 128 and 32, resnet18 64",
    )
    parser.add_argument("--batch-size", type=whole_number(1), help="images per step (default 128); not with --model all")
    parser.add_argument("--threads", type=whole_number(1, 4096), default=2, help="of each process (default 2)")
    parser.add_argument("--pairs", type=whole_number(1), default=5, help="rounds (default 5)")
    parser.add_argument("--steps", type=whole_number(1), default=5, help="steps per turn (default 5)")
    parser.add_argument("--warmup", type=whole_number(0), default=3, help="steps of each before the first round (default 3)")
    parser.add_argument("--optimizer", default="adam", choices=["adam", "adamw", "rmsprop", "sgd"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="where both compute (default cpu)")
    parser.add_argument(
        "--precision",
        default="fp32",
        choices=["fp32", "tf32", "fp16", "bf16"],
        help="default fp32; on the CPU the only one that PyTorch does well",
    )
    parser.add_argument("--lr", type=positive_number, default=1e-3)
    parser.add_argument(
        "--conv-impl",
        type=several(),
        default=["auto"],
        help="of ours (default auto); several, as auto,direct: each takes its turns, the first one's ratio counts",
    )
    parser.add_argument(
        "--cuda-graph",
        type=several(("off", "on")),
        default=["off"],
        help="of ours, on a GPU: whether each step is one launch of a CUDA graph (default off); off,on: both take turns",
    )
    parser.add_argument("--bench", default=str(ROOT / "build/cpu/apps/train_bench"), help="path of train_bench")
    parser.add_argument("--python", default=sys.executable, help="the Python whose PyTorch is timed (default: this one)")
    parser.add_argument(
        "--torch-mode",
        type=several(MODES),
        default=["eager"],
        help="eager (default), compile, and on a GPU reduce-overhead and graphed; several take turns",
    )
    parser.add_argument(
        "--torch-format", type=several(FORMATS), default=list(FORMATS), help="nchw, channels_last (default: both)"
    )
    parser.add_argument(
        "--torch-memory",
        type=several(MEMORY),
        help="default, kept: by settings of glibc (default: both on the CPU; default on a GPU)",
    )
    parser.add_argument("--json", help="write the times there, a table after another")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--write-inputs", help=argparse.SUPPRESS)
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    parser.add_argument("--weights", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.model == "all" and arguments.batch_size is not None:
        complain("--batch-size: --model all has batch sizes of its own; name one model, or leave --batch-size out")
    arguments.batch_size = arguments.batch_size or 128
    of_gpus = [mode for mode in arguments.torch_mode if mode in ("reduce-overhead", "graphed")]
    if arguments.device == "cpu" and of_gpus:
        complain(f"--torch-mode {of_gpus[0]}: CUDA graphs are of a GPU: add --device cuda, or leave it out")
    if arguments.device == "cpu" and "on" in arguments.cuda_graph:
        complain("--cuda-graph on: CUDA graphs are of a GPU: add --device cuda, or leave it out")
    if "graphed" in arguments.torch_mode and arguments.optimizer == "rmsprop":
        complain("--torch-mode graphed: PyTorch's rmsprop has no fused form, which a graph needs: choose another --optimizer")
    if arguments.json:
        check_output("--json", arguments.json)
    if arguments.torch_memory is None:
        arguments.torch_memory = list(MEMORY) if arguments.device == "cpu" else ["default"]
    return arguments


def check_python(arguments):
    code = "import torch, numpy; print(torch.__version__, hasattr(torch, 'compile'), torch.cuda.is_available())"
    try:
        found = subprocess.run([arguments.python, "-c", code], capture_output=True, text=True)
        problem = (found.stderr.strip().splitlines() or ["no message"])[-1] if found.returncode else ""
    except (OSError, ValueError) as error:
        problem = str(error)
    if problem:
        complain(
            f"{arguments.python} cannot import torch and numpy ({problem}): install python3-torch and use "
            "/usr/bin/python3, or give another by --python"
        )
    version, compiles, has_gpu = found.stdout.split()[-3:]
    if arguments.device == "cuda" and has_gpu != "True":
        complain(f"--device cuda: PyTorch {version} sees no GPU; without the option both compute on the CPU")
    if COMPILED.keys() & set(arguments.torch_mode) and compiles != "True":
        complain(f"--torch-mode {','.join(arguments.torch_mode)}: PyTorch {version} has no torch.compile; leave that out")


def check_bench(arguments):
    program(arguments.bench, "cmake --preset cpu && cmake --build --preset cpu --target train_bench")
    for impl in arguments.conv_impl:
        small = ["--model", "mnist_cnn", "--layers", "1", "--in-channels", "1", "--image-size", "28", "--batch-size", "1"]
        what = refusal(arguments.bench, "--serve", *small, "--device", arguments.device, "--conv-impl", impl)
        if what:
            complain(f"--conv-impl {impl}: {what.splitlines()[-1].removeprefix('error: ')}")


def main():
    arguments = parse_arguments()
    if arguments.serve:
        return serve_pytorch(arguments)
    if arguments.write_inputs:
        return write_inputs(arguments)
    check_python(arguments)
    check_bench(arguments)
    peak = Peak(arguments) if arguments.device == "cpu" else None
    if arguments.model != "all":
        print(f"ratio {compare(arguments, arguments.model, arguments.batch_size, peak):.2f}")
        return 1 if any(table["does_not_run"] for table in COMPARED) else 0
    ratios = {(model, size): compare(arguments, model, size, peak) for model, sizes in ALL_SIZES.items() for size in sizes}
    print()
    for (model, size), ratio in sorted(ratios.items(), key=lambda entry: entry[0] == ("vgg_lite", 128)):
        print(f"{model}, batch {size}: {ratio:.2f}")
    print(f"ratio {ratios['vgg_lite', 128]:.2f}")
    return 1 if any(table["does_not_run"] for table in COMPARED) else 0


if __name__ == "__main__":
    run(main)
