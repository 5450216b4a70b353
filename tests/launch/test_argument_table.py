"""Every class of parameter crossed with every kind of argument, bit for bit.

docs/launching.md prints the table, csrc/arguments/types/rules.cpp obeys it; the words are theirs.
"""

import ctypes
import enum
import itertools
import re
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from fake_arrays import CudaInterfaceArray, DlpackArray, ExchangeArray
from scalar_types import in_bytes

from culaunch import _core
from culaunch._launch.signatures.parameter_type import TypeClass

PAGE = Path(__file__).parents[2] / "docs" / "launching.md"
RULES = _core.argument_rules()


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 77


class Flag(enum.IntFlag):
    A = 1


class OfOneByte(ctypes.Structure):
    _fields_ = (("x", ctypes.c_ubyte),)


class OfFloats(ctypes.Structure):
    _fields_ = (("x", ctypes.c_float), ("y", ctypes.c_float))


class AUnion(ctypes.Union):
    _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_float))


class Celsius(float):
    pass


def record(*formats):
    return np.array(tuple(range(len(formats))), [(f"f{i}", f) for i, f in enumerate(formats)])[()]


# ---- the parameters: (spelling, size), by class. A name of the program's own comes mangled.

INTEGERS = {"char": 1, "short": 2, "int": 4, "long": 8, "long long": 8}
VECTORS = {
    f"{prefix}{kind}{count}": size * count
    for kind, size in {"char": 1, "short": 2, "int": 4, "long": 8, "longlong": 8}.items()
    for prefix in ("", "u")
    for count in (1, 2, 3, 4)
} | {f"{k}{n}": s * n for k, s in {"float": 4, "double": 8}.items() for n in (1, 2, 3, 4)}
PARAMETERS = {
    "pointer": [
        (one, 8)
        for one in ("float*", "const float*", "void*", "const double*", "int**", "__half*",
                    "char*", "Pair<int>*", "float2*", "void (*)(int)", "float (&) [3]",
                    "CUdeviceptr", "__nv_fp8_e4m3*", "Color*")
    ],
    "signed": [("signed char", 1), *INTEGERS.items(), ("int64_t", 8), ("wchar_t", 4)],
    "unsigned": [(f"unsigned {name}", size) for name, size in INTEGERS.items()]
    + [("size_t", 8), ("cudaTextureObject_t", 8), ("uint16_t", 2)],
    "float": [("float", 4), ("double", 8), ("half", 2), ("__half", 2), ("__nv_bfloat16", 2)],
    "bool": [("bool", 1)],
    "structure": [
        *VECTORS.items(),
        ("__half2", 4), ("__nv_bfloat162", 4), ("dim3", 12), ("cuFloatComplex", 8),
        ("__nv_fp8x2_e5m2", 2), ("__nv_fp8x4_e4m3", 4), ("__nv_fp4_e2m1", 1), ("double4_32a", 32),
        *(("struct Pair", size) for size in (1, 2, 3, 4, 8, 12, 16, 24)),
        *(("Pair<int, 2>", size) for size in (1, 4, 8, 16)),
        ("int Pair::*", 8), ("__int128", 16), ("CUtensorMap", 128),
    ],
    "named": [(name, size) for name in ("5Color", "N2ns5ColorE") for size in (1, 2, 3, 4, 8, 12)],
    "enumeration": [("enum Color", size) for size in (1, 2, 4, 8)] + [("std::byte", 1)],
    "float8": [("__nv_fp8_e4m3", 1), ("__nv_fp8_e5m2", 1), ("__nv_fp8_e8m0", 1)],
    "unknown": [
        *((None, size) for size in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24)),
        ("real", 4), ("Policy::Index", 8),  # a user's name may be a typedef of anything
    ],
}  # fmt: skip
FLOAT_CODES = {"half": 2, "__half": 2, "__nv_bfloat16": 4, "float": 2, "double": 2,
               "__nv_fp8_e4m3": 10, "__nv_fp8_e5m2": 12, "__nv_fp8_e8m0": 14}  # fmt: skip
ELEMENTS = {"float*": "float32", "const float*": "float32", "const double*": "float64",
            "__half*": "float16", "float (&) [3]": "float32",
            "__nv_fp8_e4m3*": "float8_e4m3fn"}  # fmt: skip

# ---- the arguments: values by kind

NUMPY_INTEGERS = [np.dtype(code).type(5) for code in "bhilqBHILQ"]
CTYPES_INTEGERS = [
    kind(5)
    for kind in (ctypes.c_byte, ctypes.c_short, ctypes.c_int, ctypes.c_long, ctypes.c_ubyte,
                 ctypes.c_ushort, ctypes.c_uint, ctypes.c_ulonglong)
]  # fmt: skip
SMALL_FLOATS = [
    kind(2)
    for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
                 ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3b11fnuz)
]  # fmt: skip
CODE_OF = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12, "float8_e8m0fnu": 14,
           "float8_e4m3b11fnuz": -1}  # fmt: skip
ARRAYS = [
    *(np.zeros(3, dtype) for dtype in ("f4", "f8", "f2", "i4", "u1", "?", "c8", "M8[s]")),
    np.zeros(3, ml_dtypes.bfloat16),
    np.zeros(3, [("x", "f4")]),
    np.zeros((2, 3), "f4")[:, ::2],
    np.zeros(0, "f4"),
    np.array(1.0, "f4"),
    *(kind(kind=1) for kind in (DlpackArray, ExchangeArray)),
]
GIVEN = {
    "int": [0, 1, 7, 127],
    "IntEnum": [Colour.RED, Colour.BLUE, Flag.A],
    "float": [0.0, 1.5, float("inf"), Celsius(2.0)],
    "bool": [True, False],
    "None": [None],
    "array": ARRAYS,
    "integer": NUMPY_INTEGERS + CTYPES_INTEGERS,
    "floating": [np.float16(1.5), np.float32(1.5), np.float64(1.5), ctypes.c_float(1.5),
                 ctypes.c_double(1.5), *SMALL_FLOATS],
    "bool_": [np.True_, np.False_, ctypes.c_bool(True)],
    "complex": [np.complex64(1 + 2j), np.complex128(1 + 2j)],
    "address": [ctypes.c_void_p(4096), ctypes.pointer(ctypes.c_int(3)), ctypes.c_char_p(b"x")],
    "structure": [
        OfOneByte(7), OfFloats(1, 2), AUnion(5), (ctypes.c_int * 3)(1, 2, 3),
        (ctypes.c_short * 1)(), (ctypes.c_float * 4)(), (ctypes.c_double * 3)(),
        (ctypes.c_uint64 * 16)(),
        record("f4", "f4"), record("u1"), record("f4"), record("f8", "f8"), record("u1", "f4"),
    ],
    "nothing": [
        "text", b"bytes", bytearray(8), memoryview(b"12345678"), 1j, [1], (1,), {}, object(), int,
        np.str_("a"), np.bytes_(b"abcd"), np.datetime64("2020", "s"), np.timedelta64(1, "s"),
        lambda: 0, ..., Ellipsis, NotImplemented, range(3), np.dtype("f4"), Path("x"),
    ],
}  # fmt: skip


def bytes_of(value):
    if isinstance(value, np.generic):
        return value.tobytes()
    return ctypes.string_at(ctypes.addressof(value), ctypes.sizeof(value))


def address_of(array):
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return array.address


def float_bytes(spelling, size, value):
    if size == 8:
        return struct.pack("<d", value)
    if size == 4:
        return struct.pack("<f", value)
    kind = ml_dtypes.bfloat16 if "bfloat" in spelling else np.float16
    return kind(value).tobytes()


def expected(name, spelling, size, given, value):
    """Return the bytes that arrive, or the error and a part of its message."""
    sizes = RULES[name].get(given)
    if sizes is None or (sizes and size not in sizes):
        return TypeError, ", must be "
    if given in ("int", "IntEnum"):
        if size not in (1, 2, 4, 8):
            return TypeError, ", must be "
        return int(value).to_bytes(size, "little")
    if given == "bool":
        return bytes([value])
    if given == "None":
        return bytes(8)
    if given == "float":
        if size == 2 and name == "unknown":
            return TypeError, "ambiguous"
        return float_bytes(spelling, size, value)
    if given == "array":
        dtype = value.dtype.name if isinstance(value, np.ndarray) else "float32"
        element = ELEMENTS.get(spelling)
        # Element types that no protocol names go with every pointer.
        is_known = dtype.startswith(("float", "int", "uint", "bool", "complex"))
        if element not in (None, dtype) and is_known:
            return TypeError, f"must be an array of {'float8' if '8_' in element else element}"
        return address_of(value).to_bytes(8, "little")
    data = bytes_of(value)
    if given == "floating" and name in ("float", "float8"):
        kind = value.dtype.name if isinstance(value, np.generic) else "float"
        if CODE_OF.get(kind, 2) != FLOAT_CODES[spelling]:
            return TypeError, ", must be "
    if len(data) != size:
        return ValueError, f"must have exactly {in_bytes(size)}"
    return data


@pytest.fixture
def send(host_driver):
    kernels = {}

    def send(name, spelling, size, value):
        key = name, spelling, size
        if key not in kernels:
            is_named = name == "named"
            kernels[key] = host_driver.kernel(
                size,
                name=f"_Z1k{spelling}" if is_named else "k",
                signature=None if is_named else spelling,
            )
        kernels[key][1, 1](value)
        return host_driver.last.arguments[0]

    return send


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", PARAMETERS)
def test_every_cell_of_the_table(send, host_driver, name, given):
    for (spelling, size), value in itertools.product(PARAMETERS[name], GIVEN[given]):
        wanted = expected(name, spelling, size, given, value)
        cell = f"{spelling} of {size} bytes given {value!r}"
        if isinstance(wanted, bytes):
            assert send(name, spelling, size, value) == wanted, cell
            continue
        before = len(host_driver.launches)
        with pytest.raises(wanted[0], match=r"argument 0 of k, ") as caught:
            send(name, spelling, size, value)
        assert wanted[1] in str(caught.value), cell
        assert re.search(rf"(\(|of ){in_bytes(size)}\b", str(caught.value))
        assert len(host_driver.launches) == before, cell


def test_the_classes_are_numbered_alike():
    assert [name.lower() for name in TypeClass.__members__] == list(RULES)
    assert set(PARAMETERS) == set(RULES)
    assert {given for rules in RULES.values() for given in rules} == set(GIVEN) - {"nothing"}


# How the page calls the columns and the rows.
COLUMNS = {
    "pointer": ["pointer"], "integer": ["signed", "unsigned"], "floating point": ["float"],
    "8-bit float": ["float8"], "`bool`": ["bool"], "structure": ["structure"],
    "own name": ["named"], "`enum`": ["enumeration"], "unknown": ["unknown"],
}  # fmt: skip
ROWS = {
    "`int`": "int", "`enum.IntEnum`": "IntEnum", "`float`": "float", "`bool`": "bool",
    "`None`": "None", "array": "array", "integer scalar": "integer",
    "floating-point scalar": "floating", "boolean scalar": "bool_", "complex scalar": "complex",
    "`ctypes` pointer": "address", "structure": "structure",
}  # fmt: skip


def test_the_page_prints_this_table():
    lines = PAGE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| argument, by the class"))
    head, _, *body = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    columns = [cell.strip() for cell in head.split("|")[2:-1]]
    assert columns == list(COLUMNS)
    printed = {}
    for line in body:
        row, *cells = (cell.strip() for cell in line.split("|")[1:-1])
        for column, cell in zip(columns, cells, strict=True):
            for name in COLUMNS[column]:
                if cell:
                    sizes = tuple(map(int, re.findall(r"\d", cell)))
                    printed.setdefault(name, {})[ROWS[row]] = sizes
    assert printed == RULES


# ---- arrays that may not be written

READ_ONLY = {
    "frozen": lambda: frozen(np.zeros(4, "f4")),
    "broadcast": lambda: np.broadcast_to(np.zeros(1, "f4"), (4,)),
    "bytes": lambda: np.frombuffer(bytes(16), "f4"),
    "bfloat16": lambda: frozen(np.zeros(4, "f4").view("u4")).view("f4"),
}


def frozen(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("kind", READ_ONLY)
@pytest.mark.parametrize("spelling", ["float*", "void*", "float* const", "char*", "float (&) [4]"])
def test_a_read_only_array_is_no_memory_to_write(host_driver, kind, spelling):
    array = READ_ONLY[kind]()
    with pytest.raises(TypeError, match=r"argument 0 of k, .* the array is read-only .*const"):
        host_driver.bytes_of(array, 8, spelling)
    assert host_driver.bytes_of(array.copy(), 8, spelling)


@pytest.mark.parametrize("kind", READ_ONLY)
@pytest.mark.parametrize(
    "spelling",
    ["const float*", "float const*", "const float* const", "const float (&) [4]", "const void*",
     "const volatile float*", "const float* __restrict__", None],
)  # fmt: skip
def test_a_read_only_array_may_be_read(host_driver, kind, spelling):
    array = READ_ONLY[kind]()
    data = host_driver.bytes_of(array, 8, spelling)
    assert int.from_bytes(data, "little") == array.ctypes.data


@pytest.mark.parametrize(
    ("spelling", "is_taken"),
    [("_Z1kPf", False), ("_Z1kPKf", True), ("_Z1kIKfEvPT_", True), ("_Z1kIfEvPKT_", True),
     ("_Z1kIfEvPT_", False), ("_Z1kP4PairIKfE", False), ("_Z1kPK4PairIfE", True),
     ("_Z1kPPKf", False), ("_Z1kPKPf", True), ("k", True)],
)  # fmt: skip
def test_the_name_tells_what_is_written(host_driver, spelling, is_taken):
    kernel = host_driver.kernel(8, name=spelling)
    array = frozen(np.zeros(4, "V4" if "Pair" in spelling or "PP" in spelling else "f4"))
    if "KP" in spelling:
        array = frozen(np.zeros(4, "V8"))
    if is_taken:
        kernel[1, 1](array)
    else:
        with pytest.raises(TypeError, match="read-only"):
            kernel[1, 1](array)


@pytest.mark.parametrize("make", [DlpackArray, CudaInterfaceArray])
def test_the_flags_of_the_protocols_count(driver, make):
    class ReadOnly(make):
        @property
        def __cuda_array_interface__(self):
            return {**super().__cuda_array_interface__, "data": (self.address, True)}

        def __dlpack__(self, **options):
            capsule = super().__dlpack__(**options)
            self.managed.flags = 1
            return capsule

    if make is DlpackArray:
        del ReadOnly.__cuda_array_interface__
    else:
        del ReadOnly.__dlpack__
    array = ReadOnly()
    if make is CudaInterfaceArray:
        driver.memory[array.address] = (0, None)
    with pytest.raises(TypeError, match="the array is read-only"):
        driver.bytes_of(array, 8, "float*")
    assert driver.bytes_of(array, 8, "const float*")
    assert driver.bytes_of(array, 8)


# ---- what a message says of a way out


@pytest.mark.parametrize(
    ("value", "size", "spelling", "remedy"),
    [
        (np.array(3), 4, "int", r"pass array\[\(\)\]"),
        (np.array(3.0), 4, "float", r"pass array\[\(\)\]"),
        (np.zeros((), [("x", "f4"), ("y", "f4")]), 8, "float2", r"pass array\[\(\)\]"),
        (np.zeros(2, [("x", "f4"), ("y", "f4")]), 8, "float2", r"pass array\[i\]"),
        (record("u1", "f4"), 8, "struct Pair", "align=True"),
        (3, 4, "struct Pair", "a ctypes structure"),
        (1.5, 8, "float2", "a ctypes structure, or a NumPy structured scalar, of 8 bytes"),
        (1.0, 1, "__nv_fp8_e4m3", r"ml_dtypes\.float8_e4m3fn\(2\.0\)"),
    ],
)
def test_a_message_says_the_way_out(host_driver, value, size, spelling, remedy):
    with pytest.raises((TypeError, ValueError), match=remedy):
        host_driver.bytes_of(value, size, spelling)


def test_a_numpy_scalar_is_not_told_to_be_an_array(host_driver):
    with pytest.raises(TypeError, match=r"got numpy\.bool_?\)$"):
        host_driver.bytes_of(np.True_, 4, "int")


def test_an_object_s_own_interface_counts(driver):
    """A holder of a raw pointer: torch and CuPy take it, too."""

    class Holder:
        def __init__(self, address):
            self.__cuda_array_interface__ = CudaInterfaceArray(address).__cuda_array_interface__

    driver.memory[0x7000] = (0, None)
    assert driver.bytes_of(Holder(0x7000), 8, "float*") == (0x7000).to_bytes(8, "little")
    assert driver.bytes_of(Holder(0x7000), 8) == (0x7000).to_bytes(8, "little")
    empty = Holder(0)
    del empty.__cuda_array_interface__
    with pytest.raises(TypeError, match="must be an array"):
        driver.bytes_of(empty, 8, "float*")
