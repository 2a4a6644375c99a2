"""One parity case: what is sent to the runner, what must come back, and how near."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import safetensors_file


@dataclass
class Case:
    """`description` and `tensors` go to the runner. `expect(result)` yields triples: what, the share of the limit that
    is used, and PyTorch f32's own share or None; `result` is the SafetensorsFile that came back. `files` are more
    safetensors for the runner, by suffix."""

    name: str
    description: dict
    tensors: dict
    expect: object
    files: dict = field(default_factory=dict)
    bf16: tuple = ()  # tensors that hold bits of bfloat16

    def write(self, folder):
        for suffix, tensors in self.files.items():
            safetensors_file.write(folder / f"{self.name}.{suffix}.safetensors", tensors)
        safetensors_file.write(
            folder / f"{self.name}.case.safetensors",
            self.tensors,
            {"case": json.dumps(self.description)},
            bf16=self.bf16,
        )

    def judge(self, folder):
        """(passed, skipped, a line about it)"""
        try:
            result = safetensors_file.read(Path(folder) / f"{self.name}.result.safetensors")
        except (OSError, safetensors_file.SafetensorsError) as error:
            return False, False, f"no result: {error}"
        if "error" in result.metadata:
            text = result.metadata["error"]
            return False, "no oneDNN" in text, text
        shares = list(self.expect(result))
        if not shares:
            return False, False, "nothing was compared"
        what, worst, peer = max(shares, key=lambda share: np.inf if np.isnan(share[1]) else share[1])  # NaN is larger than nothing
        text = f"{100.0 * worst:6.2f} % of the limit" + ("" if peer is None else f" (PyTorch {100.0 * peer:.2f} %)")
        return worst <= 1.0, False, f"{text}, {what}"


def share_used(actual, expected, limit):
    """The largest |actual - expected| / limit; 0 / 0 counts as 0, NaN equals NaN, shapes must agree."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    if actual.shape != expected.shape:
        return np.inf
    if actual.size == 0:
        return 0.0
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(same, 0.0, np.abs(actual - expected) / limit)
    return float(np.max(np.where(np.isnan(share), np.inf, share)))


def f32_values(generator, *shape, low=-1.0, high=1.0):
    """Uniform numbers that f32 holds exactly, as f64."""
    return generator.uniform(low, high, shape).astype(np.float32).astype(np.float64)
