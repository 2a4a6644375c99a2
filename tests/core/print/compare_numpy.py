#!/usr/bin/env python3
"""Compares the texts of tensors with NumPy's.

    compare_numpy.py RUNNER

RUNNER is tests/core/print/print_runner.cpp. Values must be the text of numpy.array2string, for arrays of all dtypes that
NumPy has: edge cases, random ones of many ranges and shapes, and numbers of all sizes by themselves. bf16, which NumPy has not, is
compared with a search for the shortest digits. Exit code 77 where there is no NumPy.
"""
import fractions
import math
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no numpy")
    sys.exit(77)

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "u8": np.uint8}
# Before NumPy 2.3 the size from which numbers are scientific did not depend on the dtype.
VERSION = tuple(int(part) for part in np.__version__.split(".")[:2])
CUTOFF_BY_DTYPE = VERSION >= (2, 3)
# Before NumPy 2 the least size that is not scientific, 1e-4, was not rounded to the dtype: 1e-4 in f32 lies below it.
CUTOFF_ROUNDED = VERSION >= (2, 0)
SHAPES = [(), (1,), (3,), (0,), (2, 0, 3), (7,), (30,), (1, 1), (2, 3), (4, 1, 3), (2, 2, 2, 2), (1001,), (40, 26), (2, 3, 7, 30),
          (8, 7, 9, 3), (1200, 1), (1, 1200), (5, 1, 250)]


def run(runner, cases):
    """The texts of (dtype name, array of bytes' dtype, options)."""
    sent = b""
    for name, array, options in cases:
        words = [name, options.get("edgeitems", 3), options.get("threshold", 1000), options.get("line_width", 75),
                 options.get("precision", 8), *array.shape]
        sent += " ".join(map(str, words)).encode() + b"\n" + np.ascontiguousarray(array).tobytes()
    done = subprocess.run([runner], input=sent, capture_output=True, check=True)
    texts = done.stdout.decode().split("\0")[:-1]
    assert len(texts) == len(cases), f"{len(texts)} texts for {len(cases)} arrays"
    return texts


def text_of(name, array, options):
    """What NumPy makes of the values, and behind it what is ours."""
    width = options.get("line_width", 75)
    values = np.array2string(array, max_line_width=width, precision=options.get("precision", 8), separator=", ",
                             prefix="tensor(", suffix=")", threshold=options.get("threshold", 1000),
                             edgeitems=options.get("edgeitems", 3))
    text = "tensor(" + values + ","
    what = f"{name}[{', '.join(map(str, array.shape))}], cpu)"
    fits = len(text.rsplit("\n", 1)[-1]) + 1 + len(what) <= width
    return text + (" " if fits else "\n       ") + what


def same_in_all_versions(array):
    if CUTOFF_BY_DTYPE or array.dtype.kind != "f":
        return True
    sizes = np.abs(array[np.isfinite(array)].astype(np.float64))
    if not CUTOFF_ROUNDED and array.dtype != np.float64 and (sizes == float(array.dtype.type(1e-4))).any():
        return False
    return sizes.size == 0 or sizes.max() < 10 ** np.finfo(array.dtype).precision


def edge_arrays():
    for name, dtype in DTYPES.items():
        if np.dtype(dtype).kind != "f":
            info = np.iinfo(dtype)
            yield from ((name, np.array(v, dtype)) for v in ([info.min, 0, info.max], [info.min], [1, 10, 100]))
            continue
        info = np.finfo(dtype)
        inf, nan, tiny = np.inf, np.nan, info.smallest_subnormal
        lists = [[0], [-0.0, 0.0], [nan], [inf], [-inf], [inf, nan, 1], [-inf, 1], [nan, 0], [-inf, 1.25, nan], [inf, 1e-3, 1],
                 [info.max, info.min, tiny], [tiny, -tiny], [info.tiny, 1], [0.1, 0.2, 0.3], [1 / 3], [-1, 1], [1, 1000], [1, 1001],
                 [0.1, 100], [0.1, 101], [0.0001], [0.00009999], [0.0001, 0.01], [99.5, 100], [999, 1000], [999.5], [65504],
                 [-1.5, 22.25, 333], [1e-10 if dtype != np.float16 else 1e-7, 1], [2.0 ** -24, 1], [2049], [-inf, nan, 1e-5, 1e4],
                 [nan, 1e-5], [0.5, 0.25, 0.125], [2 / 3, 200 / 3], [1e5, 1e-3], [12345, 0.5], [0.99999, 0.999999999], [9.9999e-5, 1]]
        if dtype != np.float16:
            lists += [[999999], [1e6], [1e7], [99999999], [1e8], [123456.789], [1e15], [1e16], [16777217, 0.1], [1e-30, 1e30],
                      [8.5e-8, 0.99999999], [0.1 + 0.2, 1e-4], [100000.125], [0.30000001192092896, 1e-3]]
        if dtype == np.float64:
            lists += [[1e-300, 1], [1e300, 1e-300], [5e-324], [1.7976931348623157e308], [1e22], [1e23], [9007199254740993.0],
                      [2.0 ** -44], [2.0 ** 60], [0.123456785, 1], [0.000123456785], [1.5e-8, 1e-5], [1 + 2.0 ** -9 + 2.0 ** -40]]
        with np.errstate(over="ignore"):
            yield from ((name, np.array(v, dtype)) for v in lists)
        yield from ((name, np.array(v, dtype)) for v in (0.0, 1.0, -2.5, np.nan, -np.inf))


def random_arrays(random):
    for name, dtype in DTYPES.items():
        for _ in range(4):
            for shape in SHAPES:
                if np.dtype(dtype).kind != "f":
                    info = np.iinfo(dtype)
                    low, high = sorted(random.integers(info.min, info.max, 2, dtype, endpoint=True))
                    yield name, random.integers(low, high, shape, dtype, endpoint=True)
                    continue
                with np.errstate(over="ignore"):
                    values = (random.standard_normal(shape) * 10.0 ** random.integers(-6, 9)).astype(dtype)
                    if random.random() < 0.3:
                        values = np.exp(random.standard_normal(shape) * random.integers(1, 12)).astype(dtype)
                    if random.random() < 0.3:
                        values = np.round(values, int(random.integers(0, 4))).astype(dtype)
                values = np.array(values, dtype)
                for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
                    if values.size and random.random() < 0.1:
                        values.flat[int(random.integers(values.size))] = special
                yield name, values


def compare_with_numpy(runner):
    random = np.random.default_rng(14)
    cases = [(name, array, {}) for name, array in (*edge_arrays(), *random_arrays(random))]
    for name, array, _ in cases[::3]:
        cases.append((name, array, {"edgeitems": int(random.integers(1, 6)), "threshold": int(random.integers(0, 60)),
                                    "line_width": int(random.integers(20, 120)), "precision": int(random.integers(0, 18))}))
    halves = np.arange(0, 65536, 13, dtype=np.uint16).view(np.float16)
    cases += [("f16", half.reshape(1), {"precision": 30}) for half in halves]
    # All bits are as likely: subnormal numbers, and all exponents.
    for name, bits, dtype in (("f32", np.uint32, np.float32), ("f64", np.uint64, np.float64)):
        values = random.integers(0, np.iinfo(bits).max, 3000, bits, endpoint=True).view(dtype)
        powers = np.ldexp(dtype(1), np.arange(np.finfo(dtype).minexp, np.finfo(dtype).maxexp))  # where gaps differ
        cases += [(name, value.reshape(1), {"precision": 30}) for value in (*values, *powers)]
    cases = [case for case in cases if same_in_all_versions(case[1])]
    wrong = 0
    for (name, array, options), text in zip(cases, run(runner, cases)):
        expected = text_of(name, array, options)
        if text != expected:
            wrong += 1
            if wrong <= 10:
                print(f"{name} {array.shape} {options}\nNumPy {np.__version__}:\n{expected}\nTandem:\n{text}")
    print(f"{len(cases)} arrays as NumPy {np.__version__} prints them, {wrong} otherwise")
    return wrong


def shortest_bfloat16(bits):
    """The number of the fewest digits that is rounded to this one; the nearest of these."""

    def value_of(number):
        return fractions.Fraction(float(np.array(number << 16, np.uint32).view(np.float32)))

    value, below, above = value_of(bits), value_of(bits - 1), value_of(bits + 1) if bits < 0x7F7F else None
    above = 2 * value - below if above is None else above
    low, high = (below + value) / 2, (value + above) / 2
    exponent = math.floor(math.log10(float(value))) + 1
    for digits in range(1, 20):
        unit = fractions.Fraction(10) ** (exponent - digits)
        near = [k for k in range(int(value / unit) - 1, int(value / unit) + 3)
                if (low <= k * unit <= high if bits % 2 == 0 else low < k * unit < high)]
        if near:
            return min(near, key=lambda k: (abs(k * unit - value), k % 2)) * unit
    raise AssertionError(bits)


def compare_bfloat16(runner):
    """Positive numbers of bf16, each by itself; all powers of two among them, next to which gaps differ."""
    numbers = [*sorted({*range(1, 0x7F80, 17), *range(128, 0x7F80, 128)})]
    cases = [("bf16", np.array([bits], np.uint16), {"precision": 60}) for bits in numbers]
    wrong = 0
    for bits, text in zip(numbers, run(runner, cases)):
        got = fractions.Fraction(text[len("tensor(["):text.index("]")].replace(".e", "e"))
        if got != shortest_bfloat16(bits):
            wrong += 1
            if wrong <= 10:
                print(f"bf16 {bits:#x}: {text}, not {float(shortest_bfloat16(bits))}")
    print(f"{len(numbers)} numbers of bf16 with the fewest digits, {wrong} otherwise")
    return wrong


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(1 if compare_with_numpy(sys.argv[1]) + compare_bfloat16(sys.argv[1]) else 0)
