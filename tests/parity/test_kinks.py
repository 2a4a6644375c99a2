#!/usr/bin/python3
"""That kinks.py sees every ReLU and every pooling, whichever way a network calls them, and a planted kink in each."""

import sys

try:
    import torch
except ImportError as error:
    print(f"skipped: {sys.executable} cannot import torch ({error}); install python3-torch")
    sys.exit(77)

from torch import nn
from torch.nn import functional

from kinks import NearestKink, NearKink
from torch_models import make_model


def look_at(network, *inputs, clearance=0.0):
    with torch.no_grad(), NearestKink(clearance) as nearest:
        network(*inputs)
    return nearest


def check_every_layer_is_seen():
    # By hand: vgg_lite 6 + 2 ReLUs and 3 poolings, small_cnn 4 and 3, mnist_cnn 4 and 1, resnet18 1 + 8 * 2 ReLUs,
    # resnet9 8 ReLUs and 4 poolings.
    for name, layers in {"vgg_lite": 11, "small_cnn": 7, "mnist_cnn": 5, "resnet18": 17, "resnet9": 12}.items():
        model = make_model(name, in_channels=1 if name == "mnist_cnn" else 3, image_size=32)
        images = torch.randn(2, 1 if name == "mnist_cnn" else 3, 32, 32)
        seen = look_at(model, images).layers
        assert seen == layers, f"{name}: {seen} ReLUs and poolings were seen, not {layers}"


def check_planted_kinks():
    away = torch.arange(1.0, 17.0).reshape(1, 1, 4, 4)  # no zero, no two equal
    near_zero, tie = away.clone(), away.clone()
    near_zero[0, 0, 1, 1] = 1e-7
    tie[0, 0, 1, 0] = tie[0, 0, 1, 1]  # the maximum of the first window
    relus = (torch.relu, functional.relu, torch.Tensor.relu, nn.ReLU(), nn.ReLU(inplace=True), lambda x: x.relu_())
    poolings = (nn.MaxPool2d(2), lambda x: functional.max_pool2d(x, 2), lambda x: torch.max_pool2d(x, 2))
    for networks, planted in ((relus, near_zero), (poolings, tie)):
        for network in networks:
            assert look_at(network, away.clone(), clearance=1e-3).layers == 1
            try:
                look_at(network, planted.clone(), clearance=1e-3)
            except NearKink:
                continue
            raise AssertionError(f"{network}: a planted kink was not seen")


def check_windows_of_one_pixel():
    nearest = look_at(nn.MaxPool2d(1), torch.ones(1, 2, 3, 3), clearance=1e-3)
    assert nearest.layers == 1 and nearest.distance > 1e300, f"{nearest.distance} from a kink that cannot be"


if __name__ == "__main__":
    check_every_layer_is_seen()
    check_planted_kinks()
    check_windows_of_one_pixel()
    print("all kinks were seen")
