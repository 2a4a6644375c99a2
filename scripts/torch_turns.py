"""What compare_elementwise.py, compare_functions.py and compare_matmul.py share: calls timed in PyTorch, in turns with a program of ours."""
import argparse
import json
import math
import statistics
import sys
import time

from command_line import Parser, complain, program, whole_number
from turns import Party, add_torch_memory, environment_for


def serve_torch(threads, prepare):
    """What our program does, with PyTorch: prepare(torch) gives what its greeting has beside the version, and a function that
    takes the words of a request and gives the seconds of each call."""
    import torch

    torch.set_num_threads(threads)
    greeting, measure = prepare(torch)
    print(json.dumps({"version": torch.__version__, **greeting}), flush=True)
    for line in sys.stdin:
        if line.strip() == "quit":
            return
        print(json.dumps({"seconds": statistics.fmean(measure(*line.split()))}), flush=True)


def seconds_of(torch, function, both, leaves, others, grad):
    """Of one call, and of its backward to `leaves` where `both`; the result is freed within the time."""
    leaves = [leaf.detach().requires_grad_(both) for leaf in leaves]
    with torch.set_grad_enabled(both):
        start = time.perf_counter()
        result = function(*leaves, *others)
        if both:
            result.backward(grad)
        del result
        return time.perf_counter() - start


def medians(parties, warm_up, request, pairs):
    """Seconds of ours and of PyTorch: of `pairs` answers each, in turns, after a request that does not count."""
    seconds = {party: [] for party in parties}
    for party in parties.values():
        party.request(warm_up)
    for _ in range(pairs):
        for which, party in parties.items():
            seconds[which].append(party.request(request)["seconds"])
    return [statistics.median(seconds[which]) for which in ("ours", "PyTorch")]


def add_arguments(parser, bench):
    parser.add_argument("--threads", type=whole_number(1, 4096), default=2, help="of each process (default 2)")
    parser.add_argument("--pairs", type=whole_number(1), default=7, help="rounds (default 7)")
    parser.add_argument("--bench", default=str(bench), help=f"path of {bench.name}")
    parser.add_argument("--python", default=sys.executable, help="the Python whose PyTorch is timed (default: this one)")
    add_torch_memory(parser)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)


def parties_of(arguments, script):
    threads = str(arguments.threads)
    torch_command = [arguments.python, script, "--serve", "--threads", threads]
    return {
        "ours": Party([arguments.bench, threads], environment_for(arguments.threads)),
        "PyTorch": Party(torch_command, environment_for(arguments.threads, arguments.torch_memory)),
    }


def compare_rows(parties, rows, pairs, unit):
    """Prints a line for each (label, warm-up, request); the geometric mean of PyTorch's times over ours."""
    per_second = {"ms": 1e3, "us": 1e6}[unit]
    digits = {"ms": 3, "us": 1}[unit]
    ratios = []
    for label, warm_up, request in rows:
        ours, theirs = (per_second * seconds for seconds in medians(parties, warm_up, request, pairs))
        ratios.append(theirs / ours)
        print(f"{label}{ours:10.{digits}f} {unit} {theirs:10.{digits}f} {unit} {theirs / ours:8.2f}", flush=True)
    return math.exp(statistics.fmean(map(math.log, ratios)))


def compare(doc, bench, script, prepare, parts, unit):
    """The whole script: parts(greeting) gives (title, rows) of each table."""
    parser = Parser(doc)
    add_arguments(parser, bench)
    arguments = parser.parse_args()
    if arguments.serve:
        try:
            return serve_torch(arguments.threads, prepare)
        except ImportError as error:
            complain(f"{sys.executable} cannot import torch ({error}): give another Python by --python")
    program(arguments.bench, f"cmake --preset cpu && cmake --build --preset cpu --target {bench.name}")
    parties = parties_of(arguments, script)
    greeting = parties["PyTorch"].greeting
    for title, rows in parts(greeting):
        print(f"\n{title}, {arguments.threads} threads; ours, PyTorch {greeting['version']}, ratio")
        print(f"geometric mean {compare_rows(parties, rows, arguments.pairs, unit):.2f}", flush=True)
    for party in parties.values():
        party.quit()


MODES = (("forward", "forward"), ("both", "forward and backward"))
