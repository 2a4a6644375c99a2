"""How near a network's forward pass comes to a kink: a ReLU input near 0, a pooling window with two near-equal maxima.

There the gradient jumps, and runs that differ by nothing but rounding may fall on either side. Batches are chosen so
that none of their values is that near; what then remains between two runs is rounding alone.
"""

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class NearKink(Exception):
    """A forward pass came nearer to a kink than allowed."""


class NearestKink(TorchFunctionMode):
    """`with NearestKink() as nearest`: nearest.distance becomes the least distance, in units of each layer's rms, and
    nearest.layers how many ReLUs and poolings were looked at. A distance below `clearance` raises NearKink at once."""

    def __init__(self, clearance=0.0):
        super().__init__()
        self.clearance, self.distance, self.layers = clearance, np.inf, 0

    def note(self, distances, values):
        self.layers += 1
        if distances.numel() > 0:
            self.distance = min(self.distance, float(distances.min() / values.square().mean().sqrt()))
            if self.distance < self.clearance:
                raise NearKink(f"{self.distance:.1e} from a kink")

    def __torch_function__(self, function, types, args=(), kwargs=None):
        # By name: one function reaches a mode as torch.x, torch.nn.functional.x or Tensor.x, depending on who calls it.
        name = getattr(function, "__name__", "").strip("_")
        if name == "relu":
            self.note(args[0].detach().abs(), args[0].detach())
        elif name == "max_pool2d":
            x, kernel = args[0].detach(), args[1]
            windows = functional.unfold(x.flatten(0, 1)[:, None], kernel, stride=kernel)
            # A window of one pixel has no second: minus infinity is far from all.
            first, second = functional.pad(windows, (0, 0, 0, 1), value=-np.inf).topk(2, dim=1).values.unbind(1)
            # Windows of zeros lie behind a ReLU that stops their gradient anyway.
            self.note((first - second)[(first != 0) | (second != 0)], x)
        return function(*args, **(kwargs or {}))


def nearest_kink(model, images):
    """The distance for one batch, without changing the model's buffers."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad(), NearestKink() as nearest:
        model(images)
    model.load_state_dict(state)
    return nearest.distance
