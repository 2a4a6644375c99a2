"""Muon in PyTorch, as airbench94_muon.py of KellerJordan/cifar10-airbench has it: for filters, with SGD for all else in one optimizer."""

import torch

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def newton_schulz(matrix, steps=3, eps=1e-7, dtype=None, coefficients=COEFFICIENTS):
    """zeropower_via_newtonschulz5 there, whose dtype is bf16. Here the norm is taken before products are in `dtype`."""
    a, b, c = coefficients
    x = (matrix / (matrix.norm() + eps)).to(dtype or matrix.dtype)
    if matrix.size(0) > matrix.size(1):
        x = x.T
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    if matrix.size(0) > matrix.size(1):
        x = x.T
    return x.to(matrix.dtype)


class Muon(torch.optim.Optimizer):
    """`lr` is the rate of filters, and `aux_lr / lr` times that of all others. Momentum and weight decay of a group are those of
    all its parameters; without, filters and others have their own."""

    def __init__(
        self,
        params,
        lr,
        momentum=0.6,
        weight_decay=0.0,
        aux_lr=0.1,
        aux_momentum=0.85,
        aux_weight_decay=0.0,
        eps=1e-7,
        dtype=None,
        normalize=True,
        normalize_every=(1, 0, 1),
        coefficients=COEFFICIENTS,
    ):
        """normalize_every: first distance, growth and steps of the run, as cifar10_speedrun.py of hiverge/cifar10-speedrun counts them."""
        self.aux_factor, self.eps, self.dtype, self.normalize = aux_lr / lr, eps, dtype, normalize
        self.normalize_every, self.coefficients = normalize_every, tuple(coefficients)
        self.steps_taken = self.last_normalized = 0
        self.of_filters = {"momentum": momentum, "weight_decay": weight_decay}
        self.of_others = {"momentum": aux_momentum, "weight_decay": aux_weight_decay}
        super().__init__(params, {"lr": lr, "momentum": None, "weight_decay": None})

    @torch.no_grad()
    def step(self, closure=None):
        self.steps_taken += 1
        first, more, steps = self.normalize_every
        is_due = self.steps_taken - self.last_normalized >= first + int(more * (self.steps_taken / steps))
        self.normalizes = self.normalize and is_due
        if is_due:
            self.last_normalized = self.steps_taken
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                common = self.of_filters if parameter.ndim == 4 else self.of_others
                momentum, decay = (common[key] if group[key] is None else group[key] for key in ("momentum", "weight_decay"))
                self.move(parameter, group["lr"], momentum, decay)

    def move(self, parameter, lr, momentum, decay):
        is_filter = parameter.ndim == 4
        gradient = parameter.grad if is_filter else parameter.grad + decay * parameter
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        buffer = state["momentum_buffer"].mul_(momentum).add_(gradient)
        direction = gradient + momentum * buffer
        if not is_filter:
            parameter.add_(direction, alpha=-lr * self.aux_factor)
            return
        if self.normalizes:
            parameter.mul_(len(parameter) ** 0.5 / parameter.norm())
        update = newton_schulz(
            direction.reshape(len(parameter), -1), eps=self.eps, dtype=self.dtype, coefficients=self.coefficients
        )
        parameter.mul_(1 - lr * decay).add_(update.view(parameter.shape), alpha=-lr)
