"""Tests of safetensors_file.py: round trips, hostile files, and PyPI's package reading ours where it is installed."""

import json
import struct
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {sys.executable} cannot import numpy ({error}); install python3-numpy")
    sys.exit(77)

import safetensors_file

TENSORS = {
    "weight": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "double": np.array([1.5, np.nan]),
    "half": np.ones((2, 2), np.float16),
    "count": np.array(7, dtype=np.int64),
    "empty": np.zeros((0, 3), np.float32),
    "bytes": np.array([0, 255, 3], np.uint8),
    "transposed": np.arange(6, dtype=np.int32).reshape(2, 3).T,
    "brain": np.array([0x3F80, 0xC000], np.uint16),
}


def image(header, body=b""):
    """The bytes of a file with this header (JSON text or an object)."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


HOSTILE = {
    "empty file": b"",
    "short length": b"\x01\x00",
    "huge header": struct.pack("<Q", 2**63) + b"{}",
    "header past the end": struct.pack("<Q", 100) + b"{}",
    "not an object": image(b"[]"),
    "not JSON": image(b"{nonsense}"),
    "not UTF-8": image(b'{"\xff": 1}'),
    "duplicate name": image(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b"1234",
    ),
    "unknown dtype": image({"a": entry("F31")}, b"1234"),
    "extra key": image({"a": {**entry(), "more": 1}}, b"1234"),
    "negative size": image({"a": entry(shape=(-1,))}, b"1234"),
    "fractional size": image({"a": entry(shape=(1.0,))}, b"1234"),
    "boolean size": image({"a": entry(shape=(True,))}, b"1234"),
    "size overflow": image({"a": entry(shape=(2**62, 2**62))}, b"1234"),
    "wrong size": image({"a": entry(shape=(2,))}, b"1234"),
    "past the end": image({"a": entry(shape=(2,), offsets=(0, 8))}, b"1234"),
    "hole": image({"a": entry(), "b": entry(offsets=(8, 12))}, b"123456789012"),
    "overlap": image({"a": entry(), "b": entry()}, b"1234"),
    "trailing bytes": image({"a": entry()}, b"12345"),
    "metadata not text": image({"__metadata__": {"a": 1}}),
    "metadata not an object": image({"__metadata__": []}),
}


def main():
    failures = 0

    def check(name, passed):
        nonlocal failures
        failures += not passed
        print(f"{'passed' if passed else 'FAILED'}  {name}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tensors.safetensors"
        safetensors_file.write(path, TENSORS, {"note": "ünïcode"}, bf16=("brain",))
        back = safetensors_file.read(path)
        same = all(
            np.array_equal(back.tensors[name], value, equal_nan=value.dtype.kind == "f")
            and back.tensors[name].shape == value.shape
            and back.tensors[name].dtype == value.dtype
            for name, value in TENSORS.items()
        )
        check("round trip", same and set(back.tensors) == set(TENSORS) and back.metadata == {"note": "ünïcode"})
        check("bf16 keeps its name", back.dtypes["brain"] == "BF16" and back.dtypes["weight"] == "F32")
        safetensors_file.write(path, {})
        check("no tensors at all", safetensors_file.read(path).tensors == {})
        for name, data in HOSTILE.items():
            try:
                safetensors_file.parse(data)
                check(f"refuses: {name}", False)
            except safetensors_file.SafetensorsError as error:
                check(f"refuses: {name}", "\n" not in str(error))
        try:
            import safetensors.numpy as package
        except ImportError:
            print("skipped PyPI's safetensors is not installed: reading ours by it was not tried")
        else:
            tensors = {name: value for name, value in TENSORS.items() if name != "brain"}
            safetensors_file.write(path, tensors, {"note": "x"})
            read = package.load_file(path)
            check(
                "PyPI's package reads ours",
                all(
                    np.array_equal(read[name], value, equal_nan=value.dtype.kind == "f")
                    for name, value in tensors.items()
                ),
            )
            package.save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()}, path)
            check("we read PyPI's", set(safetensors_file.read(path).tensors) == set(tensors))
    print(f"{'no' if failures == 0 else failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
