"""PyTorch twins of the networks in layers/models, with the same state dicts."""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional


def conv3x3(in_channels, out_channels, bias, stride=1):
    return nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=bias)


def vgg_lite(in_channels=3, image_size=32, classes=10, batch_norm=False):
    features, channels = [], in_channels
    for i, width in enumerate((32, 64, 128, 256, 256, 256)):
        features.append(conv3x3(channels, width, bias=True))
        if batch_norm:
            features.append(nn.BatchNorm2d(width))
        features.append(nn.ReLU(inplace=True))
        if i % 2 == 1:
            features.append(nn.MaxPool2d(2))
        channels = width
    features.append(nn.Flatten())
    side = image_size // 8
    classifier = nn.Sequential(
        nn.Linear(channels * side * side, 256),
        nn.ReLU(inplace=True),
        nn.Identity(),
        nn.Linear(256, 32),
        nn.ReLU(inplace=True),
        nn.Identity(),
        nn.Linear(32, classes),
    )
    return nn.Sequential(OrderedDict(features=nn.Sequential(*features), classifier=classifier))


def small_cnn(in_channels=3, image_size=32, classes=10):
    del image_size  # any
    features, channels = [], in_channels
    for i, width in enumerate((32, 64, 128, 128)):
        features.append(conv3x3(channels, width, bias=False))
        if i < 3:
            features.append(nn.MaxPool2d(2))
        features += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        channels = width
    classifier = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
    return nn.Sequential(OrderedDict(features=nn.Sequential(*features), classifier=classifier))


class SharedConvolutions(nn.Module):
    """Two convolutions, "0" and "2", the second applied again and again."""

    def __init__(self, in_channels, layers):
        super().__init__()
        self.layers = layers
        self.add_module("0", conv3x3(in_channels, 32, bias=True))
        self.add_module("2", conv3x3(32, 32, bias=True))

    def forward(self, x):
        x = torch.relu(self._modules["0"](x))
        for _ in range(self.layers - 1):
            x = torch.relu(self._modules["2"](x))
        return x


def mnist_cnn(in_channels=1, image_size=28, classes=10, layers=4, shared_weights=False):
    if shared_weights:
        features = SharedConvolutions(in_channels, layers)
    else:
        features = []
        for layer in range(layers):
            features += [conv3x3(in_channels if layer == 0 else 32, 32, bias=True), nn.ReLU(inplace=True)]
        features = nn.Sequential(*features)
    classifier = nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * (image_size // 2) ** 2, classes))
    return nn.Sequential(OrderedDict(features=features, classifier=classifier))


class Residual(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return x + self.body(x)


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def resnet9(in_channels=3, image_size=32, classes=10):
    def unit(channels, width):
        return [conv3x3(channels, width, bias=False), nn.BatchNorm2d(width), nn.ReLU()]

    def residual(channels):
        return Residual(nn.Sequential(*unit(channels, channels), *unit(channels, channels)))

    classifier = nn.Sequential(
        nn.MaxPool2d(image_size // 8), nn.Flatten(), nn.Linear(512, classes, bias=False), Scale(0.125)
    )
    return nn.Sequential(
        OrderedDict(
            prep=nn.Sequential(*unit(in_channels, 64)),
            layer1=nn.Sequential(*unit(64, 128), nn.MaxPool2d(2), residual(128)),
            layer2=nn.Sequential(*unit(128, 256), nn.MaxPool2d(2)),
            layer3=nn.Sequential(*unit(256, 512), nn.MaxPool2d(2), residual(512)),
            classifier=classifier,
        )
    )


class BasicBlock(nn.Module):
    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.conv1 = conv3x3(in_channels, out_channels, bias=False, stride=stride)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = conv3x3(out_channels, out_channels, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = None
        if stride != 1 or in_channels != out_channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False), nn.BatchNorm2d(out_channels)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


def resnet18(in_channels=3, image_size=32, classes=10):
    del image_size  # any
    model = OrderedDict(conv1=conv3x3(in_channels, 64, bias=False), bn1=nn.BatchNorm2d(64), relu=nn.ReLU())
    channels = 64
    for stage in range(1, 5):
        width = 32 << stage
        model[f"layer{stage}"] = nn.Sequential(
            BasicBlock(channels, width, 1 if stage == 1 else 2), BasicBlock(width, width, 1)
        )
        channels = width
    model.update(avgpool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), fc=nn.Linear(channels, classes))
    return nn.Sequential(model)


class AirbenchGroup(nn.Module):
    def __init__(self, in_channels, out_channels, residual, momentum):
        super().__init__()

        def norm():
            result = nn.BatchNorm2d(out_channels, eps=1e-12, momentum=momentum)
            result.weight.requires_grad = False
            return result

        self.conv1 = conv3x3(in_channels, out_channels, bias=False)
        self.norm1 = norm()
        self.conv2 = conv3x3(out_channels, out_channels, bias=False)
        self.norm2 = norm()
        self.conv3 = conv3x3(out_channels, out_channels, bias=False) if residual else None
        self.norm3 = norm() if residual else None

    def forward(self, x):
        x = functional.gelu(self.norm1(functional.max_pool2d(self.conv1(x), 2)))
        y = functional.gelu(self.norm2(self.conv2(x)))
        return y if self.conv3 is None else functional.gelu(self.norm3(self.conv3(y)) + x)


def airbench(widths, residual, momentum):
    """The network of legacy/airbench94.py, 95 and 96 in KellerJordan/cifar10-airbench, with its state dict."""

    def make(in_channels=3, image_size=32, classes=10, width=1.0):
        channels = 8 * in_channels
        layers = [nn.Conv2d(in_channels, channels, 2), nn.GELU()]
        layers[0].weight.requires_grad = False
        for wide in widths:
            out = max(1, int(width * wide + 0.5))
            layers.append(AirbenchGroup(channels, out, residual, momentum))
            channels = out
        head = nn.Linear(channels, classes, bias=False)
        return nn.Sequential(*layers, nn.MaxPool2d((image_size - 1) // 8), nn.Flatten(), head, Scale(1 / 9))

    return make


MODELS = {
    "airbench94": airbench((64, 256, 256), False, 0.4),
    "airbench95": airbench((128, 384, 384), False, 0.4),
    "airbench96": airbench((128, 384, 512), True, 0.1),
    "vgg_lite": vgg_lite,
    "small_cnn": small_cnn,
    "mnist_cnn": mnist_cnn,
    "resnet9": resnet9,
    "resnet18": resnet18,
}


def make_model(name, **options):
    """The twin of layers::make_model(ModelOptions{name, ...})."""
    return MODELS[name](**options)
