"""What gdb shows of tensors, shapes, strides, devices and storages.

In gdb, or in ~/.gdbinit:

    source scripts/gdb_printers.py          # installed: PREFIX/share/tandem/gdb_printers.py
    print x                        # f32[2, 3] on cpu = {1, 2, 3, 4, 5, 6}
    set print elements 1000        # values shown at most

Values follow each other in row-major order, whatever the strides. Those of a tensor on a GPU are not shown. The program needs
debug information (-g, of clang -g -fstandalone-debug); the libraries do not.
"""
import struct

import gdb
import gdb.printing

# The C++ type of each dtype's elements and their bytes; gdb knows no halves, which are read as numbers.
ELEMENTS = {"f64": ("double", 8), "f32": ("float", 4), "f16": (None, 2), "bf16": (None, 2), "i64": ("long", 8), "i32": ("int", 4),
            "u8": ("unsigned char", 1)}


def pointee(shared):
    """The pointer of a std::shared_ptr, of libstdc++ or libc++."""
    for member in ("_M_ptr", "__ptr_"):
        try:
            return shared[member]
        except gdb.error:
            pass
    raise gdb.error("this standard library's std::shared_ptr is not known")


def requires_grad(meta):
    """AutogradMeta::requires_grad, the first member behind the pointer to virtual functions. Where the libraries are compiled
    without -g gdb does not know the type's members."""
    if int(meta) == 0:
        return False
    return bytes(gdb.selected_inferior().read_memory(int(meta) + meta.type.sizeof, 1)) != b"\0"


def is_known(value):
    """Whether gdb knows the members of a value's type: clang leaves out those of classes that are constructed elsewhere."""
    return bool(value.type.strip_typedefs().fields())


def enumerator(value):
    """The last part of an enumerator's name: f32 of tandem::DType::f32."""
    return str(value).rsplit("::", 1)[-1]


def dims_of(value):
    """The numbers of a Shape or Strides."""
    array = value["values_"][value["values_"].type.fields()[0].name]
    rank = int(value["rank_"])
    if not 0 <= rank <= array.type.strip_typedefs().range()[1] + 1:
        raise gdb.error(f"a rank of {rank}")
    return [int(array[i]) for i in range(rank)]


def text_of_dims(dims):
    return "[" + ", ".join(map(str, dims)) + "]"


def device_text(device):
    kind = enumerator(device["type"])
    return kind if kind == "cpu" else f"{kind}:{int(device['index'])}"


def offsets(shape, strides):
    """Of each element in row-major order, in elements."""
    if 0 in shape:
        return
    index = [0] * len(shape)
    while True:
        yield sum(i * stride for i, stride in zip(index, strides))
        for dim in reversed(range(len(shape))):
            index[dim] += 1
            if index[dim] < shape[dim]:
                break
            index[dim] = 0
        else:
            return


def or_not_initialised(text):
    """What a printer shows of a variable that does not live yet, or any more: its bytes are anything."""
    def guarded(self):
        try:
            return text(self)
        except gdb.error:
            return "not initialised"
    return guarded


class DimsPrinter:
    """Shape and Strides: [2, 3]."""

    def __init__(self, value):
        self.value = value

    @or_not_initialised
    def to_string(self):
        return text_of_dims(dims_of(self.value))


class DevicePrinter:
    """cpu or cuda:1."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return device_text(self.value)


class StoragePrinter:
    """24 bytes on cpu for data, version 1."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        value = self.value
        pinned = ", pinned" if value["pinned_"] else ""
        return (f"{int(value['bytes_'])} bytes on {device_text(value['device_'])} for {enumerator(value['tag_'])}{pinned}, "
                f"version {int(value['version_'])}")


class TensorPrinter:
    """f32[2, 3] on cpu, and values as elements of an array."""

    def __init__(self, value):
        self.value = value

    @or_not_initialised
    def to_string(self):
        impl = pointee(self.value["impl_"])
        if int(impl) == 0:
            return "undefined tensor"
        impl = impl.dereference()
        storage = pointee(impl["storage"]).dereference()
        where = f" on {device_text(storage['device_'])}" if is_known(storage) else ""
        gradient = ", requires_grad" if requires_grad(pointee(impl["meta"])) else ""
        hint = "" if is_known(storage) else " (values take clang++ -g -fstandalone-debug)"
        return f"{enumerator(impl['dtype'])}{text_of_dims(dims_of(impl['shape']))}{where}{gradient}{hint}"

    def children(self):
        try:
            impl = pointee(self.value["impl_"])
            if int(impl) == 0:
                return
            impl = impl.dereference()
            storage = pointee(impl["storage"]).dereference()
            if not is_known(storage) or device_text(storage["device_"]) != "cpu":
                return
            shape, strides, dtype = dims_of(impl["shape"]), dims_of(impl["strides"]), enumerator(impl["dtype"])
            name, size = ELEMENTS[dtype]
            first = int(storage["data_"]) + int(impl["offset"]) * size
        except (gdb.error, KeyError):  # not initialised
            return
        for i, offset in enumerate(offsets(shape, strides)):
            address = first + offset * size
            if name is None:
                yield f"[{i}]", half_at(address, dtype)
            else:
                pointer = gdb.lookup_type(name).pointer()
                yield f"[{i}]", gdb.Value(address).cast(pointer).dereference()

    def display_hint(self):
        return "array"


def half_at(address, dtype):
    """The number of two bytes."""
    bits = bytes(gdb.selected_inferior().read_memory(address, 2))
    return struct.unpack("<e", bits)[0] if dtype == "f16" else struct.unpack("<f", b"\0\0" + bits)[0]


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("tandem")
    collection.add_printer("Tensor", r"^tandem::Tensor$", TensorPrinter)
    collection.add_printer("DimList", r"^tandem::DimList<.*>$", DimsPrinter)
    collection.add_printer("Device", r"^tandem::Device$", DevicePrinter)
    collection.add_printer("Storage", r"^tandem::Storage$", StoragePrinter)
    return collection


gdb.printing.register_pretty_printer(None, printers(), replace=True)
