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
    def __init__(self, in_channels, out_channels, residual, momentum, activation):
        super().__init__()
        self.activation = {"gelu": functional.gelu, "silu": functional.silu}[activation]

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
        x = self.activation(self.norm1(functional.max_pool2d(self.conv1(x), 2)))
        y = self.activation(self.norm2(self.conv2(x)))
        return y if self.conv3 is None else self.activation(self.norm3(self.conv3(y)) + x)


def airbench(widths, residual, momentum):
    """The network of legacy/airbench94.py, 95 and 96 in KellerJordan/cifar10-airbench, with its state dict."""

    def make(
        in_channels=3, image_size=32, classes=10, width=1.0, activation="gelu", unit_head=False, norm_momentum=momentum
    ):
        channels = 8 * in_channels
        layers = [nn.Conv2d(in_channels, channels, 2), nn.GELU()]
        layers[0].weight.requires_grad = False
        for wide in widths:
            out = max(1, int(width * wide + 0.5))
            layers.append(AirbenchGroup(channels, out, residual, norm_momentum, activation))
            channels = out
        head = nn.Linear(channels, classes, bias=False)
        if unit_head:
            head.weight.data /= head.weight.data.std()
        scale = Scale(1 / channels if unit_head else 1 / 9)
        return nn.Sequential(*layers, nn.MaxPool2d((image_size - 1) // 8), nn.Flatten(), head, scale)

    return make


class Celu(nn.CELU):
    """In f64 by its formula: PyTorch's gradient has 1 / alpha rounded to f32 there."""

    def forward(self, x):
        if x.dtype != torch.float64:
            return super().forward(x)
        return torch.where(x > 0, x, self.alpha * torch.expm1(torch.clamp(x, max=0) / self.alpha))


class GhostBatchNorm(nn.BatchNorm2d):
    """By the statistics of each `part` images one behind another, in training. Running statistics move towards the mean of those of the
    parts. The weight stays 1. In bag_of_tricks.ipynb of davidcpage/cifar10-fast parts have running statistics of their own, which are
    averaged before an evaluation: the same numbers, as both averages are linear."""

    def __init__(self, channels, part, momentum=0.1):
        super().__init__(channels, momentum=momentum)
        self.part = part
        self.weight.requires_grad = False

    def forward(self, x):
        if not self.training or not self.part:
            return super().forward(x)
        parts = x.split(self.part)
        assert all(len(each) == self.part for each in parts)
        with torch.no_grad():
            dims = (0, 2, 3)
            for running, own in (
                (self.running_mean, [each.mean(dims) for each in parts]),
                (self.running_var, [each.var(dims) for each in parts]),
            ):
                running.lerp_(torch.stack(own).mean(0).to(running.dtype), self.momentum)
            self.num_batches_tracked += 1
        return torch.cat(
            [functional.batch_norm(each, None, None, self.weight, self.bias, True, 0.0, self.eps) for each in parts]
        )


def bag_of_tricks(
    in_channels=3, image_size=32, classes=10, width=1.0, celu_alpha=0.3, ghost_batch=32, norm_momentum=0.1
):
    """The last network of that notebook."""
    channels = [max(1, int(width * at_one + 0.5)) for at_one in (64, 128, 256, 512)]

    def norm(out):
        return [GhostBatchNorm(out, ghost_batch, norm_momentum), Celu(celu_alpha)]

    def unit(wide, out, pool=True):
        return [conv3x3(wide, out, bias=False), *([nn.MaxPool2d(2)] if pool else []), *norm(out)]

    def residual(wide):
        return Residual(nn.Sequential(*unit(wide, wide, pool=False), *unit(wide, wide, pool=False)))

    whiten = nn.Conv2d(in_channels, 9 * in_channels, 3, padding=1, bias=False)
    whiten.weight.requires_grad = False
    first = nn.Conv2d(9 * in_channels, channels[0], 1, bias=False)
    head = nn.Linear(channels[3], classes, bias=False)
    return nn.Sequential(
        OrderedDict(
            prep=nn.Sequential(whiten, first, *norm(channels[0])),
            layer1=nn.Sequential(*unit(channels[0], channels[1]), residual(channels[1])),
            layer2=nn.Sequential(*unit(channels[1], channels[2])),
            layer3=nn.Sequential(*unit(channels[2], channels[3]), residual(channels[3])),
            classifier=nn.Sequential(nn.MaxPool2d(image_size // 8), nn.Flatten(), head, Scale(1 / 16)),
        )
    )


MODELS = {
    "bag_of_tricks": bag_of_tricks,
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
