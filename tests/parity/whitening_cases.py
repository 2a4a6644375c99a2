"""The filters of a whitening layer beside PyTorch's: torch.linalg.eigh of the second moments of all patches, in f64
(scripts/torch_speed_run.py, whitening_filters).

Ours are made of images in f32, by sums and eigenvectors in f64, and rounded to f32 once: by at most u32 = 2^-24 of each number. In f64 both
solvers give eigenvectors of a matrix that is at most SOLVER * d * u64 * |A| away from A, the moments of d x d numbers (the sums of n
products stray less, as they are added up in parts). By the theorem of Davis and Kahan an eigenvector turns by at most that over the gap to the next
eigenvalue, and an eigenvalue moves by at most as much, which changes 1 / sqrt(lambda + eps) by that over 2 (lambda + eps) of itself. Eigenvectors have
no sign: that of each is taken from ours.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from case import Case, share_used
from tracked import UNIT_ROUNDOFF

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from torch_speed_run import whitening_filters  # noqa: E402

SOLVER = 20.0  # both solvers together; what is known of them is a small constant
SIZES = ((2, 5e-4), (3, 1e-2))  # of patches, and eps: recipes/airbench94.toml and recipes/bag-of-tricks.toml


def smooth_images(seed, count=40, side=32):
    """Neighbours and colours are alike, as in photographs: eigenvalues of very different size."""
    images = np.random.default_rng(seed).standard_normal((count, 3, side + 4, side + 4))
    for axis in (2, 3):
        images = sum(weight * np.roll(images, shift, axis) for shift, weight in ((0, 1.0), (1, 0.9), (2, 0.6), (3, 0.2)))
    mix = np.array([[1.0, 0.8, 0.6], [0.7, 1.0, 0.8], [0.5, 0.7, 1.0]])
    return np.einsum("cd,ndhw->nchw", mix, images)[:, :, 2:-2, 2:-2].astype(np.float32) / 4


def limits(images, kernel, eps):
    """PyTorch's filters in f64, and how far ours may be off, by number."""
    numbers = 3 * kernel * kernel
    like = torch.zeros(2 * numbers, 3, kernel, kernel, dtype=torch.float64)
    filters = whitening_filters(torch.from_numpy(images).double(), like, eps).numpy()
    # A filter has the norm 1 / sqrt(lambda + eps).
    squares = (filters[:numbers].reshape(numbers, -1) ** 2).sum(1)
    values = 1 / squares - eps
    assert (np.diff(values) < 0).all(), "the largest eigenvalue comes first"
    gaps = np.minimum(np.append(np.inf, -np.diff(values)), np.append(-np.diff(values), np.inf))
    moved = SOLVER * numbers * UNIT_ROUNDOFF["f64"] * values[0]
    off = np.sqrt(1 / (values + eps)) * (moved / gaps + moved / (2 * (values + eps)))
    return filters, UNIT_ROUNDOFF["f32"] * np.abs(filters) + np.tile(off, 2)[:, None, None, None]


def cases():
    for kernel, eps in SIZES:
        images = smooth_images(80 + kernel)
        filters, limit = limits(images, kernel, eps)

        def expect(result, filters=filters, limit=limit):
            ours = result.tensors["filters"].astype(np.float64)
            if ours.shape != filters.shape:
                yield "shape", np.inf, None
                return
            # Never 0 or NaN, with which filters of such numbers would be as expected.
            signs = np.where((ours * filters).sum((1, 2, 3), keepdims=True) > 0, 1.0, -1.0)
            yield "a filter", share_used(ours, signs * filters, limit), None
            half = len(ours) // 2
            yield "the negatives", share_used(ours[half:], -ours[:half], np.zeros_like(ours[half:])), None

        yield Case(f"whitening.{kernel}x{kernel}", {"kind": "whitening", "kernel": [kernel, kernel], "eps": eps}, {"images": images}, expect)
