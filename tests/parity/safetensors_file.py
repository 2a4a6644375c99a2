"""A strict reader and a writer of safetensors files on numpy alone (Debian has no package of it).

The reader enforces the format's rules: header length, JSON without duplicate keys, offsets that cover the data
without hole or overlap, sizes that fit shapes. bf16 has no numpy type: it is read and written as uint16 under the
dtype name "BF16".
"""

import json
import os
import struct
from dataclasses import dataclass, field

import numpy as np

MAX_HEADER_BYTES = 100_000_000
NUMPY_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U8": "u1",
    "BOOL": "?",
}
NAMES = {np.dtype(code): name for name, code in NUMPY_TYPES.items() if name != "BF16"}


class SafetensorsError(ValueError):
    """The file breaks a rule of the format."""


@dataclass
class SafetensorsFile:
    """Tensors and text metadata by name; `dtypes` holds the format's own names ("F32")."""

    tensors: dict = field(default_factory=dict)
    metadata: dict = field(default_factory=dict)
    dtypes: dict = field(default_factory=dict)


def write(path, tensors, metadata=None, bf16=()):
    """Writes `tensors` (name -> array) to `path`, by way of a temporary file. Names in `bf16` hold uint16 bits."""
    header, parts, offset = {}, [], 0
    if metadata:
        header["__metadata__"] = {str(key): str(value) for key, value in metadata.items()}
    # Widest elements first, so that every tensor starts on a multiple of its element size.
    for name in sorted(tensors, key=lambda name: (-np.asarray(tensors[name]).itemsize, name)):
        array = np.asarray(tensors[name])
        array = array if array.flags.c_contiguous else np.ascontiguousarray(array)  # that call makes rank 0 rank 1
        dtype = "BF16" if name in bf16 else NAMES[array.dtype]
        parts.append(array.astype(NUMPY_TYPES[dtype], copy=False).tobytes())
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(parts[-1])]}
        offset += len(parts[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.writelines(parts)
    os.replace(temporary, path)


def read(path):
    """The SafetensorsFile at `path`; raises SafetensorsError where the file breaks a rule."""
    with open(path, "rb") as file:
        return parse(file.read(), str(path))


def parse(data, where="data"):
    """The SafetensorsFile in the bytes `data`."""

    def check(condition, problem):
        if not condition:
            raise SafetensorsError(f"{where}: {problem}")

    def unique(pairs):
        check(len({key for key, _ in pairs}) == len(pairs), "a name occurs twice in the header")
        return dict(pairs)

    check(len(data) >= 8, "shorter than the 8 bytes of the header's length")
    length = struct.unpack("<Q", data[:8])[0]
    check(length <= MAX_HEADER_BYTES, f"header of {length} bytes is over the limit of {MAX_HEADER_BYTES}")
    check(8 + length <= len(data), f"header of {length} bytes does not fit into {len(data)} bytes")
    check(data[8:9] == b"{", "the header does not start with '{'")
    try:
        header = json.loads(data[8 : 8 + length].decode("utf-8"), object_pairs_hook=unique)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise SafetensorsError(f"{where}: the header is not JSON: {error}") from None

    result = SafetensorsFile(metadata=header.pop("__metadata__", {}))
    check(
        isinstance(result.metadata, dict) and all(isinstance(value, str) for value in result.metadata.values()),
        "__metadata__ must map text to text",
    )
    body = memoryview(data)[8 + length :]
    spans = []
    for name, entry in header.items():
        check(isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}, f"bad entry for '{name}'")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        check(dtype in NUMPY_TYPES, f"'{name}' has unknown dtype {dtype!r}")
        for numbers in (shape, offsets):
            check(
                isinstance(numbers, list) and all(type(n) is int and 0 <= n < 2**63 for n in numbers),
                f"'{name}': shape and offsets must be lists of counts",
            )
        check(
            len(offsets) == 2 and offsets[0] <= offsets[1] <= len(body),
            f"'{name}' ends behind the file or before it starts",
        )
        kind, count = np.dtype(NUMPY_TYPES[dtype]), 1
        for size in shape:
            count *= size
        check(
            count * kind.itemsize == offsets[1] - offsets[0],
            f"'{name}': shape {shape} does not fit its offsets {offsets}",
        )
        spans.append((offsets[0], offsets[1], name))
        result.tensors[name] = np.frombuffer(body[offsets[0] : offsets[1]], kind).reshape(shape).copy()
        result.dtypes[name] = dtype
    end = 0
    for start, stop, name in sorted(spans):
        check(start == end, f"'{name}' leaves a hole or overlaps: starts at {start}, expected {end}")
        end = stop
    check(end == len(body), f"{len(body) - end} bytes behind the last tensor")
    return result
