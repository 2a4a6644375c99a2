"""What compare_elementwise.py and compare_matmul.py share: one call timed in PyTorch, and turns of its process with ours."""
import argparse
import statistics
import sys
import time

from command_line import whole_number
from turns import Party, environment_for


def seconds_of(torch, function, both, a, b, grad):
    """Of one call, and of its backward where `both`; the result is freed within the time."""
    a, b = (x.detach().requires_grad_(both) for x in (a, b))
    with torch.set_grad_enabled(both):
        start = time.perf_counter()
        result = function(a, b)
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
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)


def parties_of(arguments, script):
    environment = environment_for(arguments.threads)
    threads = str(arguments.threads)
    return {
        "ours": Party([arguments.bench, threads], environment),
        "PyTorch": Party([arguments.python, script, "--serve", "--threads", threads], environment),
    }
