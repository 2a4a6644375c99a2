"""Every layer class: output, gradients and buffers as those of the torch.nn function, from a state dict."""

from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

import conv_cases
import elementwise_cases
import image_cases
import pointwise_cases
import row_norm_cases
from op_case import OpSpec, exact, make_cases, multilinear


def layer(spec, kind, **options):
    return replace(spec, name=f"layer.{kind}.{spec.name}", op=f"layer.{kind}", options={**spec.options, **options})


def convolution_specs(generator):
    for name in ("3x3_same", "3x3_stride2", "groups2"):
        geometry = conv_cases.GEOMETRIES[name]
        _, c, _, _, k, r, s = geometry[:7]
        plain, fused, *bare = conv_cases.conv_specs(name, geometry, generator)
        sizes = dict(in_channels=c, out_channels=k, kernel=[r, s])
        yield layer(plain, "Conv2d", **sizes)
        yield layer(fused, "ConvBiasReLU", **sizes)
        for spec in bare:
            yield layer(spec, "Conv2d", bias=False, **sizes)
    for name in ("4x4_stride2", "groups2"):
        geometry = conv_cases.TRANSPOSED_GEOMETRIES[name]
        _, c, _, _, k, r, s = geometry[:7]
        plain, *bare = conv_cases.transposed_specs(name, geometry, generator)
        sizes = dict(in_channels=c, out_channels=k, kernel=[r, s])
        yield layer(plain, "ConvTranspose2d", **sizes)
        for spec in bare:
            yield layer(spec, "ConvTranspose2d", bias=False, **sizes)
    plain, bare, fused = conv_cases.linear_specs("small", conv_cases.LINEAR_SIZES["small"], generator)
    sizes = dict(in_features=5, out_features=7)
    yield layer(plain, "Linear", **sizes)
    yield layer(bare, "Linear", bias=False, **sizes)
    yield layer(fused, "Linear", relu=True, **sizes)


def batch_norm_specs(generator):
    for spec in image_cases.batch_norm_specs(generator):
        if ".image." in spec.name:
            yield layer(replace_counter(spec), "BatchNorm2d", channels=spec.inputs["x"].shape[1])


def row_norm_specs(generator):
    for spec in row_norm_cases.layer_norm_specs(generator):
        yield layer(spec, "LayerNorm", affine="weight" in spec.inputs)
    for spec in row_norm_cases.group_norm_specs(generator):
        yield layer(spec, "GroupNorm", channels=spec.inputs["x"].shape[1], affine="weight" in spec.inputs)


def replace_counter(spec):
    """With num_batches_tracked, which counts training passes."""

    def function(t):
        t["num_batches_tracked"] += int(spec.options["training"])
        return spec.function(t)

    def bound(*arguments):
        return {**spec.bound(*arguments), "state.num_batches_tracked": 0.0}

    return replace(
        spec,
        inputs={**spec.inputs, "num_batches_tracked": np.array(4)},
        function=function,
        bound=bound,
        state=(*spec.state, "num_batches_tracked"),
    )


def other_specs(generator):
    wanted = {
        "relu": "ReLU",
        "gelu": "GELU",
        "silu": "SiLU",
        "tanh": "Tanh",
        "sigmoid": "Sigmoid",
        "leaky_relu": "LeakyReLU",
        "celu.0.25": "CELU",
        "hardswish": "Hardswish",
        "flatten": "Flatten",
        "max_pool2d.3x3_stride2.odd": "MaxPool2d",
        "avg_pool2d.count_inside.odd": "AvgPool2d",
        "global_avg_pool2d.odd": "GlobalAvgPool2d",
    }
    specs = [
        *elementwise_cases.unary_specs(generator),
        *pointwise_cases.activation_specs(generator),
        *pointwise_cases.view_specs(generator),
        *image_cases.pool_specs(generator),
    ]
    for spec in specs:
        if spec.name in wanted:
            yield layer(spec, wanted[spec.name])
    x = generator.uniform(-1, 1, (3, 8)).astype(np.float32).astype(np.float64)
    for name, options in (("eval", {"p": 0.5, "training": False}), ("p0", {"p": 0.0, "training": True})):
        yield OpSpec(
            f"layer.Dropout.{name}",
            "layer.Dropout",
            {"x": x},
            lambda t, o=options: functional.dropout(t["x"], o["p"], o["training"]),
            exact,
            options,
        )
    yield OpSpec(
        "layer.Scale",
        "layer.Scale",
        {"x": np.abs(x)},
        lambda t: t["x"] * 0.125,
        multilinear(lambda t: t["x"] * 0.125, {}),
        {"factor": 0.125},
    )


def cases():
    generator = np.random.default_rng(6)
    torch.manual_seed(6)
    specs = [*convolution_specs(generator), *batch_norm_specs(generator), *other_specs(generator)]
    specs += row_norm_specs(generator)
    for number, spec in enumerate(specs):
        yield from make_cases(spec, 3000 + number)
