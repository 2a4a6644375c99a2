"""Casts, bit for bit, and the statistics of dropout."""

import numpy as np
import torch

from case import Case, share_used

TORCH = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
}


def as_array(tensor):
    """numpy has no bfloat16: its bits, as uint16."""
    return tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def as_tensor(array, dtype):
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if dtype == "bf16" else torch.from_numpy(array)


def cast_values(generator, source, target):
    """Values whose cast both sides define: no NaN, and in the range of an integer target."""
    if "u8" in (source, target):
        whole = generator.integers(0, 255, 300).astype(np.float64)
        return whole if source in ("u8", "i32", "i64") else whole + 0.5 * generator.integers(0, 2, 300) * (whole < 128)
    if source in ("i64", "i32"):
        return generator.integers(-30000, 30001, 300).astype(np.float64)
    edge = [
        0.0,
        -0.0,
        1.0,
        65504.0,
        65519.0,
        65520.0,
        1e-8,
        6e-8,
        5.96e-8,
        -3e-5,
        2048.0,
        2049.0,
        2051.0,
        257.0,
        258.0,
        259.0,
    ]
    wide = generator.standard_normal(300) * 10.0 ** generator.uniform(-9, 4, 300)
    values = np.concatenate([edge, wide]).astype(np.float32).astype(np.float64)
    return np.where(np.abs(values) <= 65504, values, 0.0) if target in ("i64", "i32") else values


def cast_case(source, target, generator):
    values = torch.from_numpy(cast_values(generator, source, target)).to(TORCH[source])
    expected = values.to(TORCH[target])
    floating = TORCH[source].is_floating_point and TORCH[target].is_floating_point
    grad = torch.from_numpy(generator.uniform(-1, 1, values.shape)).to(TORCH[target]) if floating else None
    tensors = {"x": values} if grad is None else {"x": values, "grad_output": grad}

    def expect(result):
        same = result.dtypes.get("output") == target.upper() and torch.equal(
            as_tensor(result.tensors["output"], target), expected
        )
        yield "output", 0.0 if same else np.inf, None
        if grad is not None:
            back = as_tensor(result.tensors["grad.x"], source)
            yield "grad.x", 0.0 if torch.equal(back, grad.to(TORCH[source])) else np.inf, None

    return Case(
        f"cast.{source}_to_{target}",
        {"kind": "op", "op": "cast", "options": {"dtype": target}, "constant": [], "state": []},
        {name: as_array(tensor) for name, tensor in tensors.items()},
        expect,
        bf16=tuple(name for name, tensor in tensors.items() if tensor.dtype == torch.bfloat16),
    )


def dropout_case(p, generator):
    """Kept elements are scaled exactly, forward and backward keep the same ones, and their number is within five
    standard deviations of (1 - p) n."""
    x, grad = (generator.uniform(0.5, 1.5, 100_000).astype(np.float32) for _ in range(2))

    def expect(result):
        output, grad_x = result.tensors["output"], result.tensors["grad.x"]
        kept = output != 0
        factor = np.float64(1.0) / (1.0 - p)
        limit = 2 * 2.0**-24 * factor * 1.5 * 1.01
        yield "output", share_used(output, np.where(kept, x * factor, 0.0), limit), None
        yield "grad.x", share_used(grad_x, np.where(kept, grad * factor, 0.0), limit), None
        deviation = np.sqrt(p * (1 - p) * x.size)
        yield "kept elements", abs(kept.sum() - (1 - p) * x.size) / (5 * deviation), None

    return Case(
        f"dropout.p{p}",
        {"kind": "op", "op": "dropout", "options": {"p": p, "seed": 11, "step": 2}, "constant": [], "state": []},
        {"x": x, "grad_output": grad},
        expect,
    )


def cases():
    generator = np.random.default_rng(5)
    for source in TORCH:
        for target in TORCH:
            if source != target:
                yield cast_case(source, target, generator)
    for p in (0.1, 0.5, 0.9):
        yield dropout_case(p, generator)
