#!/usr/bin/env python3
"""Compares fused convolution with bias and ReLU, forward and backward, with PyTorch's Conv2d and ReLU on a GPU.

    cmake --preset cuda && cmake --build --preset cuda --target conv_bench
    python3 scripts/compare_torch_gpu.py

As compare_torch_conv.py does on the CPU; PyTorch as it is and compiled, in NCHW and in channels_last, in fp32 (without
TF32, unless --tf32 is given) and fp16. PyTorch chooses its algorithms by measuring (cudnn.benchmark).
"""

import sys
from pathlib import Path

import command_line
import torch_convolutions

ROOT = Path(__file__).resolve().parent.parent


def parse_arguments():
    parser = command_line.Parser(__doc__)
    torch_convolutions.add_common_options(parser, ROOT / "build/cuda/apps/conv_bench")
    parser.add_argument("--batch", default="128,512", help="batch sizes (default 128,512)")
    parser.add_argument("--precision", default="fp32,fp16", help="fp32, fp16, bf16 (default fp32,fp16)")
    parser.add_argument("--tf32", action="store_true", help="lets PyTorch multiply f32 in TF32")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch = torch_convolutions.import_torch()
    if not torch.cuda.is_available():
        command_line.complain("PyTorch sees no GPU here; scripts/compare_torch_conv.py compares on the CPU")
    if arguments.serve:
        return torch_convolutions.serve(torch, "cuda", arguments.tf32)
    torch_convolutions.check_common_options(arguments)
    more = ["--device", "cuda", "--batch", arguments.batch, "--precision", arguments.precision]
    command = torch_convolutions.bench_command(arguments, *more, "--impl", f"{torch_convolutions.OURS},ours")
    tf32 = ["--tf32"] if arguments.tf32 else []
    parties = torch_convolutions.start_parties(command, [sys.executable, __file__, "--serve", *tf32], threads=1)
    print(f"{parties['pytorch'].greeting['version']}, {arguments.rounds} rounds, TF32 {'on' if tf32 else 'off'}")
    modes = ["eager", "compiled"] if parties["pytorch"].greeting["compiles"] else ["eager"]
    implementations = [f"{mode}-{layout}" for mode in modes for layout in ("nchw", "channels_last")]
    rows = torch_convolutions.compare(parties, implementations, ["ours"], arguments.rounds)
    torch_convolutions.summarize(rows)
    torch_convolutions.write_report(arguments.json, parties, rows)
    for party in parties.values():
        party.quit()
    return 0


if __name__ == "__main__":
    command_line.run(main)
