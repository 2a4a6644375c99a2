"""PyTorch networks whose 3x3 convolutions run as Winograd's F(4x4, 3x3).

The rounding errors of Winograd convolution are about ten times those of a direct sum, whoever computes it. What an f32
network strays by when it convolves that way is measured on this twin: the same algorithm, made of PyTorch's tensor
functions. As in our kernels, the input gradient is a forward convolution by the flipped weights.
"""

import functools

import torch
from torch.nn import functional

import winograd_bounds


def both_sides(matrix, tiles):
    """(matrix tile matrix^T)^T of tiles [i, j, ...], as two large products."""
    matrix = torch.from_numpy(matrix).to(tiles.dtype)
    outputs, inputs = matrix.shape
    half = (matrix @ tiles.reshape(inputs, -1)).reshape(outputs, inputs, -1).transpose(0, 1)
    return (matrix @ half.reshape(inputs, -1)).reshape(outputs, outputs, *tiles.shape[2:])


def conv2d(x, weight, padding):
    n, c, height, width = x.shape
    k = weight.shape[0]
    outputs = (height + 2 * padding[0] - 2, width + 2 * padding[1] - 2)
    rows, columns = (-(-size // 4) for size in outputs)
    right, bottom = 4 * columns + 2 - width - padding[1], 4 * rows + 2 - height - padding[0]
    padded = functional.pad(x, (padding[1], right, padding[0], bottom))
    tiles = padded.unfold(2, 6, 4).unfold(3, 6, 4)  # n, c, rows, columns, 6, 6
    d = both_sides(winograd_bounds.B_T, tiles.permute(4, 5, 0, 2, 3, 1)).reshape(36, n * rows * columns, c)
    g = both_sides(winograd_bounds.G, weight.permute(2, 3, 1, 0)).reshape(36, c, k)
    y = both_sides(winograd_bounds.A_T, (d @ g).reshape(6, 6, n, rows, columns, k))
    y = y.permute(2, 5, 3, 0, 4, 1).reshape(n, k, 4 * rows, 4 * columns)
    return y[:, :, : outputs[0], : outputs[1]]


class Convolution(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight, padding):
        context.save_for_backward(x, weight)
        context.padding = padding
        return conv2d(x, weight, padding)

    @staticmethod
    def backward(context, grad):
        x, weight = context.saved_tensors
        flipped = weight.flip(2, 3).transpose(0, 1)
        grad_x = conv2d(grad, flipped, tuple(2 - pad for pad in context.padding))
        with torch.enable_grad():
            weight = weight.detach().requires_grad_()
            grad_weight = torch.autograd.grad(conv2d(x, weight, context.padding), weight, grad)[0]
        return grad_x, grad_weight, None


def forward(layer, x):
    y = Convolution.apply(x, layer.weight, layer.padding)
    return y if layer.bias is None else y + layer.bias[:, None, None]


def use_winograd(model):
    """Changes the forward of every convolution that our kernels may run by Winograd; returns the model."""
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d) and winograd_bounds.applies(
            module.stride, module.dilation, module.groups, module.kernel_size, (module.in_channels, module.out_channels)
        ):
            module.forward = functools.partial(forward, module)
    return model
