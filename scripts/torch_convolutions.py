"""Convolution with bias and ReLU in PyTorch, timed on request, and its comparison with conv_bench.

What compare_torch_conv.py (CPU) and compare_torch_gpu.py share. Both sides run as processes that answer the requests of
conv_bench --serve, in turns. PyTorch's side is torch.nn.Sequential(Conv2d, ReLU(inplace=True)), forward and backward by
autograd; ours is conv_bench's "autograd": also on a tape, also with results in new memory.
"""

import json
import math
import statistics
import subprocess
import sys
import time

from command_line import check_output, complain, program, whole_number, write_json
from turns import SETTLE_SECONDS, Party, Turns, environment_for

OURS = "autograd"
PASSES = ("fwd", "both")
LEAST_RUNS, TURN_SECONDS = 2, 0.25


# The PyTorch process -------------------------------------------------------------------------------------------------


class TorchCase:
    """One convolution of conv_bench's list, in one memory layout, as it is or compiled."""

    def __init__(self, torch, case, implementation, device):
        self.torch, self.device = torch, device
        layout = torch.channels_last if "channels_last" in implementation else torch.contiguous_format
        dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[case["dtype"]]
        torch.manual_seed(0)
        convolution = torch.nn.Conv2d(case["c"], case["k"], (case["r"], case["s"]), case["stride"], case["pad"])
        self.plain = torch.nn.Sequential(convolution, torch.nn.ReLU(inplace=True))
        self.plain = self.plain.to(device=device, dtype=dtype, memory_format=layout)
        self.run = torch.compile(self.plain) if implementation.startswith("compiled") else self.plain
        images = torch.randn(case["n"], case["c"], case["h"], case["w"])
        self.x = images.to(device=device, dtype=dtype, memory_format=layout).requires_grad_(not case["first"])
        with torch.no_grad():
            y = self.plain(self.x)
        self.grad_y = torch.randn(y.shape).to(device=device, dtype=dtype, memory_format=layout)

    def run_once(self, which):
        self.x.grad = None
        self.plain.zero_grad(set_to_none=True)
        y = self.run(self.x)
        if which == "both":
            y.backward(self.grad_y)

    def time(self, which, runs):
        """Seconds of each run; on a GPU the mean of them, between two events."""
        if self.device == "cpu":
            seconds = []
            for _ in range(runs):
                start = time.perf_counter()
                self.run_once(which)
                seconds.append(time.perf_counter() - start)
            return seconds
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(runs):
            self.run_once(which)
        end.record()
        end.synchronize()
        return [1e-3 * start.elapsed_time(end) / max(runs, 1)]


def serve(torch, device, tf32=False):
    """Reads conv_bench's greeting from the first line, then answers "time CASE PASS IMPL RUNS" as conv_bench does."""
    if device == "cpu":
        require_onednn(torch)
    else:
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
    cases = json.loads(sys.stdin.readline())["cases"]
    print(json.dumps({"version": version_of(torch, device), "compiles": hasattr(torch, "compile")}), flush=True)
    current, of_current = None, {}
    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        _, index, which, implementation, runs = words
        if index != current:
            current, of_current = index, {}
        if implementation not in of_current:
            of_current[implementation] = TorchCase(torch, cases[int(index)], implementation, device)
        before = time.process_time()
        seconds = of_current[implementation].time(which, int(runs))
        used = (time.process_time() - before) / max(int(runs), 1)
        print(json.dumps({"seconds": seconds, "cpu_seconds": used}), flush=True)


def require_onednn(torch):
    if not (torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled):
        complain(f"PyTorch {torch.__version__} is built without oneDNN: its convolutions are not what others use")


def version_of(torch, device):
    if device == "cpu":
        capability = torch.__config__.show().split("CPU capability usage: ")[1].split()[0]
        return f"PyTorch {torch.__version__} ({capability})"
    name, cudnn = torch.cuda.get_device_name(), torch.backends.cudnn.version()
    return f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {cudnn}, on {name}"


# The comparing process -----------------------------------------------------------------------------------------------


def import_torch():
    try:
        import torch
    except (ImportError, OSError) as error:
        complain(f"{sys.executable} cannot import torch ({error}); install python3-torch and use /usr/bin/python3")
    return torch


def add_common_options(parser, default_bench):
    parser.add_argument("--layers", help="networks, as conv_bench knows them (default vgg_lite,mnist_cnn)")
    parser.add_argument("--shape", action="append", default=[], help="N,C,H,W,K,R,S,stride,pad; may be repeated")
    parser.add_argument("--rounds", type=whole_number(1), default=7, help="turns of each for each pass and layer (default 7)")
    parser.add_argument("--bench", default=str(default_bench), help="path of conv_bench")
    parser.add_argument("--json", help="write all times to this file")
    parser.add_argument("--serve", action="store_true", help="the PyTorch process: only for this script itself")


def check_common_options(arguments):
    program(arguments.bench, "build the target conv_bench, or name it by --bench")
    if arguments.json is not None:
        check_output("--json", arguments.json)
    if not arguments.layers and not arguments.shape:
        arguments.layers = "vgg_lite,mnist_cnn"


def bench_command(arguments, *more):
    layers = ["--layers", arguments.layers] if arguments.layers else []
    shapes = [word for shape in arguments.shape for word in ("--shape", shape)]
    return [arguments.bench, "--serve", *layers, *shapes, *more]


def refusal(bench, *options):
    """What a program with --serve says where it does not take these options; empty if it does."""
    done = subprocess.run([bench, *options], input="quit\n", capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip() or f"ends with {done.returncode}"


def start_parties(command, torch_command, threads, torch_memory="default"):
    bench = Party(command, environment_for(threads))
    torch_environment = environment_for(threads, torch_memory)
    return {"ours": bench, "pytorch": Party(torch_command, torch_environment, json.dumps(bench.greeting))}


def time_case(turns, index, contestants, rounds):
    """{(contestant, pass): per round the median time and the processor time of a run}, both in seconds; a contestant is a
    pair of party and implementation."""
    runs, times = {}, {}
    for party, implementation in contestants:
        for which in PASSES:
            key = (party, implementation), which
            request = f"time {index} {which} {implementation} "
            turns.parties[party].request(request + "2")
            seconds = turns.parties[party].request(request + "1")["seconds"][0]
            runs[key] = max(LEAST_RUNS, min(1000, math.ceil(TURN_SECONDS / max(seconds, 1e-6))))
            times[key] = []
            time.sleep(SETTLE_SECONDS)
    order = list(runs)
    for turn in range(rounds):
        first = turn * len(order) // rounds  # so that no one always follows the same one
        for key in order[first:] + order[:first]:
            (party, implementation), which = key
            answer, _ = turns.take(party, f"time {index} {which} {implementation} {runs[key]}")
            times[key].append((statistics.median(answer["seconds"]), answer["cpu_seconds"]))
    return times


WALL, PROCESSOR = 0, 1  # of a pair of times


def median_of(times, clock):
    return statistics.median(pair[clock] for pair in times)


def ratios_of(times, ours, theirs, which, clock):
    """The one of `theirs` that is the fastest over all rounds, and its time over ours in each round."""
    best = min(theirs, key=lambda key: median_of(times[key, which], clock))
    return best, [b[clock] / a[clock] for a, b in zip(times[ours, which], times[best, which])]


def compare(parties, torch_implementations, our_implementations, rounds):
    """Prints a line per layer; returns the rows. The ratio is of forward and backward, PyTorch's best over ours."""
    cases = parties["ours"].greeting["cases"]
    ours, torch_keys = ("ours", OURS), [("pytorch", name) for name in torch_implementations]
    keys, turns, rows = [ours, *[("ours", name) for name in our_implementations], *torch_keys], Turns(parties), []
    print("ms, forward and backward / forward alone. Ratio: PyTorch's best over ours, median of rounds (least to most)")
    print(f"{'':<44}" + "".join(f"{name:>21}" for _, name in keys) + f"{'ratio':>21}{'forward':>9}{'CPU time':>9}")
    for index, case in enumerate(cases):
        times = time_case(turns, index, keys, rounds)
        best, ratios = ratios_of(times, ours, torch_keys, "both", WALL)
        row = {
            "case": case,
            "best": best[1],
            "ratio": statistics.median(ratios),
            "forward_ratio": statistics.median(ratios_of(times, ours, torch_keys, "fwd", WALL)[1]),
            "cpu_ratio": statistics.median(ratios_of(times, ours, torch_keys, "both", PROCESSOR)[1]),
            "ratios": ratios,
            "seconds": {f"{name} {which}": times[(party, name), which] for party, name in keys for which in PASSES},
        }
        rows.append(row)
        milliseconds = [
            "/".join(f"{1e3 * median_of(times[key, which], WALL):.3g}" for which in ("both", "fwd")) for key in keys
        ]
        print(
            f"{case['text'] + ', ' + str(case['n']) + ', ' + case['dtype']:<44}"
            + "".join(f"{value:>21}" for value in milliseconds)
            + f"{row['ratio']:.2f} ({min(ratios):.2f} to {max(ratios):.2f})".rjust(21)
            + f"{row['forward_ratio']:>9.2f}{row['cpu_ratio']:>9.2f}",
            flush=True,
        )
    turns.complain()
    return rows


def summarize(rows):
    """Geometric means, over all rows and of each batch size and dtype."""
    groups = {"all": rows}
    for row in rows:
        groups.setdefault(f"batch {row['case']['n']}, {row['case']['dtype']}", []).append(row)
    for name, members in groups.items():
        keys = ("ratio", "forward_ratio", "cpu_ratio")
        means = [statistics.geometric_mean(row[key] for row in members) for key in keys]
        print(
            f"geometric mean, {name} ({len(members)} layers): {means[0]:.2f}, forward alone {means[1]:.2f}, "
            f"by processor time {means[2]:.2f}"
        )
    losing = [f"{row['case']['text']} at batch {row['case']['n']}" for row in rows if row["ratio"] < 1.0]
    print("slower than PyTorch: " + ("; ".join(losing) if losing else "none"))


def write_report(path, parties, rows):
    if path is not None:
        whole = {"version": parties["pytorch"].greeting["version"], "ours": parties["ours"].greeting, "rows": rows}
        write_json("--json", path, whole)
