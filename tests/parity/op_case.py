"""Cases of one differentiable function: forward and all gradients against PyTorch in f64, within a derived bound.

Inputs are numbers that f32 holds exactly. PyTorch evaluates them in f64; our f32 result may differ from that by the
bound times u = 2^-24, our f64 result by the bound times u = 2^-53, twice over as PyTorch's f64 rounds, too. Bounds are
to first order in u: SAFETY = 2 covers the rest and other arrangements of the same formula.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from case import Case, f32_values, share_used
from tracked import UNIT_ROUNDOFF

SAFETY = 2.0
UNDERFLOW = 2.0**-126  # what f32 may lose where it runs out of exponents
NUMPY = {"f64": np.float64, "f32": np.float32}
TORCH = {"f64": torch.float64, "f32": torch.float32}


@dataclass
class OpSpec:
    """`function` takes the inputs by name as torch tensors and returns the output. `bound(inputs, grad, result)` gives
    the error of each result in units of u. `state`: inputs that are changed in place and compared, too. `grad_filter`
    may zero gradients whose path is undecided (a ReLU input within rounding of 0)."""

    name: str
    op: str
    inputs: dict
    function: object
    bound: object
    options: dict = field(default_factory=dict)
    state: tuple = ()
    constant: tuple = ()  # floating inputs without gradient
    dtypes: tuple = ("f64", "f32")
    grad_filter: object = None


def is_real(array):
    return array.dtype.kind == "f"


def evaluate(spec, inputs, grad, dtype):
    """Output, gradients ("grad.x") and state, as f64 arrays."""
    tensors = {
        name: (
            torch.from_numpy(np.array(value)).to(TORCH[dtype]) if is_real(value) else torch.from_numpy(np.array(value))
        )
        for name, value in inputs.items()
    }
    leaves = [name for name, value in inputs.items() if is_real(value) and name not in spec.state + spec.constant]
    for name in leaves:
        tensors[name].requires_grad_()
    output = spec.function(tensors)
    if grad is not None:
        output.backward(torch.from_numpy(np.array(grad)).to(output.dtype))
    results = {"output": output.detach()}
    if grad is not None:
        results.update({f"grad.{name}": tensors[name].grad for name in leaves})
    results.update({f"state.{name}": tensors[name] for name in spec.state})
    return {name: np.array(value.to(torch.float64).numpy()) for name, value in results.items() if value is not None}


def make_cases(spec, seed):
    """One case per dtype."""
    generator = np.random.default_rng(seed)
    grad = f32_values(generator, *evaluate(spec, spec.inputs, None, "f64")["output"].shape)
    if spec.grad_filter:
        grad = spec.grad_filter(spec.inputs, grad)
    truth = evaluate(spec, spec.inputs, grad, "f64")
    errors = spec.bound(spec.inputs, grad, truth)
    peer = evaluate(spec, spec.inputs, grad, "f32")
    for dtype in spec.dtypes:
        yield Case(
            f"{spec.name}.{dtype}",
            {
                "kind": "op",
                "op": spec.op,
                "options": spec.options,
                "constant": list(spec.constant + spec.state),
                "state": list(spec.state),
            },
            {
                **{
                    name: value.astype(NUMPY[dtype]) if is_real(value) else value for name, value in spec.inputs.items()
                },
                "grad_output": grad.astype(NUMPY[dtype]),
            },
            comparison(truth, peer, errors, dtype),
        )


def comparison(truth, peer, errors, dtype):
    def expect(result):
        for name, value in truth.items():
            rounding = UNIT_ROUNDOFF[dtype] * (2.0 if dtype == "f64" else 1.0)
            limit = np.broadcast_to(SAFETY * rounding * np.asarray(errors[name]), value.shape)
            limit = np.where(limit > 0, limit + UNDERFLOW, 0.0)  # an exact result stays exact
            actual = result.tensors.get(name, np.array(np.nan))
            yield name, share_used(actual, value, limit), (
                share_used(peer[name], value, limit) if dtype == "f32" else None
            )

    return expect


def multilinear(spec_function, terms, constant=()):
    """Bound of a function that is linear in every input, with coefficients that are not negative: each result is a sum
    of `terms[result]` products, so its error is at most (terms + 2) u times the same sum of magnitudes (product, sum,
    and one more for a bias or a scale). Inputs named in `constant` are not linear and keep their values."""

    def bound(inputs, grad, result):
        del result
        magnitudes = {
            name: np.abs(value) if is_real(value) and name not in constant else value for name, value in inputs.items()
        }
        shell = OpSpec("", "", magnitudes, spec_function, None)
        sums = evaluate(shell, magnitudes, np.abs(grad), "f64")
        return {name: (terms.get(name, 1) + 2) * value for name, value in sums.items()}

    return bound


def exact(inputs, grad, result):
    """Nothing is rounded: copies, comparisons, integers."""
    del inputs, grad
    return {name: 0.0 for name in result}
