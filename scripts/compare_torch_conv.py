#!/usr/bin/python3
"""Compares fused convolution with bias and ReLU, forward and backward, with PyTorch's Conv2d and ReLU on the CPU.

    cmake --preset cpu && cmake --build --preset cpu --target conv_bench
    /usr/bin/python3 scripts/compare_torch_conv.py

conv_bench and PyTorch, in NCHW and in channels_last, are processes that time the same layers in turns, with the same
number of threads; so does oneDNN without fusion (conv_bench's "onednn-unfused"), where it is built in. Both sides record
the operation on a tape and put results into new memory, which PyTorch's process has kept from what was freed before
unless --torch-memory says otherwise. A layer's ratio is the median over rounds of PyTorch's time, in the layout that is
the better one over all rounds, over ours; the last lines are geometric means over layers.
"""

import sys
from pathlib import Path

import command_line
import torch_convolutions
import turns

ROOT = Path(__file__).resolve().parent.parent


def parse_arguments():
    parser = command_line.Parser(__doc__)
    torch_convolutions.add_common_options(parser, ROOT / "build/cpu/apps/conv_bench")
    parser.add_argument("--batch", default="128,32", help="batch sizes (default 128,32)")
    parser.add_argument("--threads", type=command_line.whole_number(1, 4096), default=2, help="of each process (default 2)")
    turns.add_torch_memory(parser)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.serve:
        torch = torch_convolutions.import_torch()
        torch.set_num_threads(arguments.threads)
        return torch_convolutions.serve(torch, "cpu")
    torch_convolutions.check_common_options(arguments)
    torch_convolutions.import_torch()
    threads = ["--threads", str(arguments.threads)]
    command = torch_convolutions.bench_command(arguments, "--batch", arguments.batch, *threads)
    unfused = ["onednn-unfused"] if has_onednn(arguments.bench) else []
    command += ["--impl", ",".join([torch_convolutions.OURS, *unfused])]
    parties = torch_convolutions.start_parties(
        command, [sys.executable, __file__, "--serve", *threads], arguments.threads, arguments.torch_memory
    )
    print(f"{parties['pytorch'].greeting['version']}, {arguments.threads} threads, {arguments.rounds} rounds")
    rows = torch_convolutions.compare(parties, ["nchw", "channels_last"], unfused, arguments.rounds)
    torch_convolutions.summarize(rows)
    torch_convolutions.write_report(arguments.json, parties, rows)
    for party in parties.values():
        party.quit()
    return 0


def has_onednn(bench):
    return not torch_convolutions.refusal(bench, "--impl", "onednn-unfused", "--serve", "--shape", "1,1,1,1,1,1,1,1,0")


if __name__ == "__main__":
    command_line.run(main)
