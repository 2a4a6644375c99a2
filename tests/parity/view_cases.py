"""Test-time augmentation of a whole network: the logits that are averaged over views, of all images or of the least sure ones.

PyTorch's side is scripts/torch_speed_run.py, which the speed run is compared with. Truth is its f64 run; ours may stray from that FACTOR times
as far as its own f32 runs do, and in f64 by as much less as rounding is finer (model_cases.py). A share chooses images by their largest
probabilities: batches are such that those on both sides of the limit are GAP apart, which is far beyond what rounding moves.
"""

import copy
import sys
from pathlib import Path

import numpy as np
import torch

from case import Case
from model_cases import NUMPY, batch, build, run_f64, run_direct, run_winograd, state_arrays, stray_shares

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from torch_speed_run import logits_of_share  # noqa: E402

MODEL, COUNT, GAP = dict(name="airbench94", image_size=32, width=0.25, unit_head=True), 12, 1e-3
VIEWS = (("flip", 1.0), ("six", 1.0), ("six-equal", 1.0), ("six-equal", 0.25), ("flip", 0.4), ("six", 0.5))


def settled():
    """A network whose statistics are those of its images, so that its logits depend on these."""
    twin = build(MODEL, 70).train()
    with torch.no_grad():
        for seed in range(10):
            twin(torch.from_numpy(batch(MODEL, 32, seed)[0]).double())
    # In f32 they are rounded.
    return twin.float().double().eval()


def clear_images(twin, share, seed):
    """Images of which a share is clearly less sure than the others."""
    for number in range(100):
        images, _ = batch(MODEL, COUNT, seed + number)
        with torch.no_grad():
            sure = copy.deepcopy(twin)(torch.from_numpy(images).double()).softmax(1).amax(1).sort().values
        chosen = int(share * COUNT)
        if chosen == COUNT or float(sure[chosen] - sure[chosen - 1]) > GAP:
            return images
    raise RuntimeError("no batch has images that are clearly less sure")


def cases():
    twin = settled()
    for number, (views, share) in enumerate(VIEWS):
        images = clear_images(twin, share, 7000 + 100 * number)

        def run(model, shown, _, views=views, share=share):
            return {"logits": np.array(logits_of_share(model, shown, views, share).double())}

        labels = np.zeros(COUNT, np.int64)
        truth = run_f64(twin, images, labels, run)
        peers = [*run_direct(twin, images, labels, run), run_winograd(twin, images, labels, run)]
        for dtype in ("f32", "f64"):

            def expect(result, dtype=dtype, truth=truth, peers=peers):
                yield from stray_shares(result.tensors, truth, peers, dtype)

            yield Case(
                f"views.{views}.{share}.{dtype}",
                {"kind": "views", "model": MODEL, "views": views, "share": share},
                {"images": images.astype(NUMPY[dtype])},
                expect,
                {"weights": state_arrays(twin, dtype)},
            )
