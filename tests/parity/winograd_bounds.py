"""Error bounds of 3x3 convolutions that may run as Winograd's F(4x4, 3x3).

Its output is A^T [sum over c of (G g G^T) * (B^T d B)] A per tile of 6x6 inputs and 4x4 outputs (Lavin and Gray, 2016).
Each number passes a fixed count of roundings in the transforms and one per term of the sum, so the error is at most
that count times u times the same expression of absolute values (Barabasz et al., "Error analysis and improving the
accuracy of Winograd convolution for deep neural networks", 2020). That is larger than the bound of a direct sum, and
not zero where the direct one is: values of a whole tile mix before they cancel.
"""

import numpy as np

# Interpolation at 0, +-A, +-B and infinity; as kernels/conv/winograd/transforms.h.
A, B = 5 / 8, 3 / 2
A2, B2 = A * A, B * B
N0, NA, NB = 1 / (A2 * B2), 1 / (2 * A2 * (A2 - B2)), 1 / (2 * B2 * (B2 - A2))
B_T = np.array(
    [
        [A2 * B2, 0, -A2 - B2, 0, 1, 0],
        [0, -A * B2, -B2, A, 1, 0],
        [0, A * B2, -B2, -A, 1, 0],
        [0, -B * A2, -A2, B, 1, 0],
        [0, B * A2, -A2, -B, 1, 0],
        [0, A2 * B2, 0, -A2 - B2, 0, 1],
    ]
)
G = np.array(
    [
        [N0, 0, 0],
        [NA, NA * A, NA * A2],
        [NA, -NA * A, NA * A2],
        [NB, NB * B, NB * B2],
        [NB, -NB * B, NB * B2],
        [0, 0, 1],
    ]
)
A_T = np.array([[1, 1, 1, 1, 1, 0], [0, A, -A, B, -B, 0], [0, A2, A2, B2, B2, 0], [0, A**3, -(A**3), B**3, -(B**3), 1]])
TRANSFORM_ROUNDINGS = 28  # at most 4, 5 and 4 per dimension in B, G and A (4, 3 and 6 for weights), the product, a bias


def applies(stride, dilation, groups, kernel, channels):
    return (stride, dilation, groups, kernel) == ((1, 1), (1, 1), 1, (3, 3)) and min(channels) >= 16


def both_sides(matrix, tiles):
    """|matrix| tile |matrix|^T of the last two dimensions."""
    matrix = np.abs(matrix)
    return np.einsum("ij,...jk,lk->...il", matrix, tiles, matrix, optimize=True)


def input_tiles(x, padding, outputs):
    """|x| [N,C,H,W] as tiles [N,C,rows,columns,6,6]."""
    rows, columns = (-(-size // 4) for size in outputs)
    sizes = (4 * rows + 2, 4 * columns + 2)
    padded = np.zeros(
        x.shape[:2] + tuple(max(size, edge + pad) for size, edge, pad in zip(sizes, x.shape[2:], padding))
    )
    padded[:, :, padding[0] : padding[0] + x.shape[2], padding[1] : padding[1] + x.shape[3]] = np.abs(x)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (6, 6), axis=(2, 3))
    return windows[:, :, : 4 * rows : 4, : 4 * columns : 4]


def forward_error(x, weight, padding):
    """[N,K,P,Q], in units of u."""
    outputs = tuple(size + 2 * pad - 2 for size, pad in zip(x.shape[2:], padding))
    products = np.einsum(
        "ncpqij,kcij->nkpqij",
        both_sides(B_T, input_tiles(x, padding, outputs)),
        both_sides(G, np.abs(weight)),
        optimize=True,
    )
    tiles = both_sides(A_T, products)
    n, k, rows, columns = tiles.shape[:4]
    full = tiles.transpose(0, 1, 2, 4, 3, 5).reshape(n, k, 4 * rows, 4 * columns)
    return (weight.shape[1] + TRANSFORM_ROUNDINGS) * full[:, :, : outputs[0], : outputs[1]]


def input_gradient_error(grad, weight, padding):
    flipped = weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    return forward_error(grad, flipped, tuple(2 - pad for pad in padding))


def weight_gradient_error(x, grad, padding):
    tiles = both_sides(B_T, input_tiles(x, padding, grad.shape[2:]))
    n, _, rows, columns = tiles.shape[:4]
    padded = np.zeros(grad.shape[:2] + (4 * rows, 4 * columns))
    padded[:, :, : grad.shape[2], : grad.shape[3]] = np.abs(grad)
    grads = both_sides(A_T.T, padded.reshape(n, -1, rows, 4, columns, 4).transpose(0, 1, 2, 4, 3, 5))
    sums = np.einsum("ncpqij,nkpqij->kcij", tiles, grads, optimize=True)
    return (n * rows * columns + TRANSFORM_ROUNDINGS) * both_sides(G.T, sums)
