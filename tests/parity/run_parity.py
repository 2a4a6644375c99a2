#!/usr/bin/python3
"""Compares this framework with PyTorch: makes cases, has parity_runner run them, and judges what comes back.

  run_parity.py --runner build/cpu/tests/parity_runner [ops] [layers] [optimizers] [training] [--only TEXT] [--keep DIR]
  run_parity.py --runner build/cpu/tests/parity_runner short_training

One line per case with the share of the derived limit that is used; the last one is "N passed, 0 failed". Exit code 1
where a case fails, 77 where there is no PyTorch.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

GROUPS = {
    "ops": ("conv_cases", "pointwise_cases", "elementwise_cases", "structure_cases", "loss_cases", "row_norm_cases", "embedding_cases",
            "image_cases", "exact_cases"),
    "layers": ("layer_cases", "model_cases", "view_cases", "whitening_cases"),
    "optimizers": ("optimizer_cases",),
    "training": ("training_cases", "recipe_cases"),
    "short_training": ("short_training_cases",),
}
WHOLE_GROUPS = ("ops", "layers", "optimizers", "training")


def make_cases(groups, only):
    for group in groups:
        for module in GROUPS[group]:
            for case in __import__(module).cases():
                if only in case.name:
                    yield case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; default: all but short_training, a part of training")
    parser.add_argument("--runner", required=True, help="path of parity_runner")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains TEXT")
    parser.add_argument("--keep", metavar="DIR", help="leave the files of all cases in DIR")
    parser.add_argument("--threads", type=int, default=2, help="of both sides (default 2)")
    arguments = parser.parse_args()
    unknown = set(arguments.groups) - set(GROUPS)
    if unknown:
        parser.error(f"unknown group {', '.join(unknown)}")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # of both sides: waiting threads leave their core to others
    try:
        import torch
    except ImportError as error:
        print(f"skipped: {sys.executable} cannot import torch ({error}); install python3-torch")
        return 77
    torch.set_num_threads(arguments.threads)
    warnings.filterwarnings("ignore", message=".*epoch parameter.*")  # PyTorch's own SequentialLR

    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory(prefix="tandem_parity.") as temporary:
        folder = Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        cases = list(make_cases(arguments.groups or WHOLE_GROUPS, arguments.only))
        for case in cases:
            case.write(folder)
        run = subprocess.run([arguments.runner, str(folder), str(arguments.threads)], check=False)
        for case in cases:
            good, skip, text = case.judge(folder)
            print(f"{'passed' if good else 'skipped' if skip else 'FAILED'}  {case.name}: {text}")
            passed, failed, skipped = passed + good, failed + (not good and not skip), skipped + skip
    if run.returncode != 0:
        print(f"FAILED  parity_runner ended with {run.returncode}")
        failed += 1
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads{f', {skipped} skipped' if skipped else ''}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
