"""PyTorch's side of optimizers, schedules and training steps, from the same descriptions as the runner's."""

import torch
from torch.nn import functional
from torch.optim import lr_scheduler

from torch_muon import Muon


class Stepper:
    """An optimizer with its schedule: one step() of both."""

    def __init__(self, optimizer, scheduler):
        self.optimizer, self.scheduler = optimizer, scheduler

    def zero_grad(self):
        self.optimizer.zero_grad(set_to_none=True)

    def lr(self):
        return self.optimizer.param_groups[0]["lr"]

    def step(self):
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()


def make_optimizer(parameters, description, schedule):
    options = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in description.items()
        if key not in ("name", "groups")
    }
    kinds = {
        "sgd": torch.optim.SGD,
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "rmsprop": torch.optim.RMSprop,
        "muon": Muon,
    }
    groups = description.get("groups", [])
    if groups:
        grouped = {index for group in groups for index in group["parameters"]}
        rest = [parameter for index, parameter in enumerate(parameters) if index not in grouped]
        parameters = [{"params": rest}] + [
            {
                "params": [parameters[index] for index in group["parameters"]],
                "lr": options["lr"] * group.get("lr_factor", 1.0),
                **{key: group[key] for key in ("weight_decay", "momentum") if key in group},
            }
            for group in groups
        ]
    optimizer = kinds[description["name"]](parameters, **options)
    return Stepper(optimizer, make_scheduler(optimizer, schedule))


def make_scheduler(optimizer, schedule):
    name, base = schedule["name"], optimizer.param_groups[0]["lr"]
    if name == "constant":
        return None
    if name == "step":
        return lr_scheduler.StepLR(optimizer, schedule["period"], schedule["gamma"])
    if name == "multi_step":
        return lr_scheduler.MultiStepLR(optimizer, schedule["milestones"], schedule["gamma"])
    if name == "cosine":
        return lr_scheduler.CosineAnnealingLR(optimizer, schedule["duration"], base * schedule.get("final_factor", 0.0))
    if name == "linear":
        return lr_scheduler.LinearLR(
            optimizer, 1.0, end_factor=schedule.get("final_factor", 0.0), total_iters=schedule["duration"]
        )
    if name == "one_cycle":
        return lr_scheduler.OneCycleLR(
            optimizer,
            base,
            schedule["total_steps"],
            pct_start=schedule.get("pct_start", 0.3),
            div_factor=schedule.get("div_factor", 25.0),
            cycle_momentum=False,
            final_div_factor=schedule.get("final_div_factor", 1e4),
            anneal_strategy="linear" if schedule.get("linear") else "cos",
        )
    if name == "warmup":
        first = lr_scheduler.LinearLR(optimizer, schedule["start_factor"], total_iters=schedule["duration"])
        return lr_scheduler.SequentialLR(
            optimizer, [first, make_scheduler(optimizer, schedule["next"])], [schedule["duration"]]
        )
    raise ValueError(f"unknown schedule {name}")


def learning_rates(description, schedule, steps):
    """The learning rate of each step, for parameters in no group."""
    description = {key: value for key, value in description.items() if key != "groups"}
    parameter = torch.zeros((), requires_grad=True)
    parameter.grad = torch.zeros(())
    stepper, rates = make_optimizer([parameter], description, schedule), []
    for _ in range(steps):
        rates.append(stepper.lr())
        if len(rates) < steps:
            stepper.step()
    return rates


def clip(parameters, max_norm):
    return float(torch.nn.utils.clip_grad_norm_(parameters, max_norm))


def train(model, images, labels, optimizer, schedule, label_smoothing=0.0, clip_norm=0.0):
    """One step per batch; the losses."""
    stepper, losses = make_optimizer(list(model.parameters()), optimizer, schedule), []
    for batch, targets in zip(images, labels):
        stepper.zero_grad()
        loss = functional.cross_entropy(model(batch), targets, label_smoothing=label_smoothing)
        loss.backward()
        if clip_norm:
            clip(model.parameters(), clip_norm)
        stepper.step()
        losses.append(float(loss))
    return losses
