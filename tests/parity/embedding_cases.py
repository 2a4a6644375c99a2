"""Lookup of rows."""

import numpy as np
from torch.nn import functional

from case import f32_values
from op_case import OpSpec, make_cases


def embedding_specs(generator):
    for name, rows, features, shape in (("few", 3, 5, (20,)), ("tokens", 100, 17, (4, 9)), ("one", 1, 1, (2, 1))):
        indices = generator.integers(0, rows, shape)
        most = int(np.bincount(indices.ravel()).max())

        def bound(inputs, grad, result, most=most):
            sums = np.zeros(inputs["weight"].shape)
            np.add.at(sums, inputs["indices"], np.abs(grad))
            return {"output": 0.0, "grad.weight": most * sums}

        yield OpSpec(
            f"embedding.{name}",
            "embedding",
            {"indices": indices, "weight": f32_values(generator, rows, features)},
            lambda t: functional.embedding(t["indices"], t["weight"]),
            bound,
        )
        padding = rows // 2
        yield OpSpec(
            f"embedding.{name}.padding",
            "embedding",
            {"indices": indices, "weight": f32_values(generator, rows, features)},
            lambda t, p=padding: functional.embedding(t["indices"], t["weight"], padding_idx=p),
            bound,
            {"padding_idx": padding},
        )


def cases():
    for number, spec in enumerate(embedding_specs(np.random.default_rng(10))):
        yield from make_cases(spec, 7000 + number)
