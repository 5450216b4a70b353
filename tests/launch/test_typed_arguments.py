"""Scalars of NumPy and ctypes, structures and tensor maps as arguments of a launch."""

import ctypes
import struct

import ml_dtypes
import numpy as np
import pytest
from scalar_types import CTYPES, INTEGERS, REALS, SIGNED, UNSIGNED, in_bytes

import culaunch as cl

POINTER = "float*"


@pytest.mark.parametrize("kind", [*INTEGERS, *REALS, np.bool_, np.complex64, np.complex128])
def test_a_numpy_scalar_passes_its_bytes(driver, kind):
    value = kind(1)
    size = value.itemsize
    assert driver.bytes_of(value, size) == value.tobytes()
    for other in {1, 2, 4, 8, 16, 3} - {size}:
        with pytest.raises(
            ValueError,
            match=rf"must have exactly {in_bytes(other)} .*with {in_bytes(size)}",
        ):
            driver.bytes_of(value, other)


@pytest.mark.parametrize("kind", INTEGERS)
def test_a_numpy_integer_goes_with_either_sign_if_its_value_does(driver, kind):
    size = np.dtype(kind).itemsize
    for spelling in (SIGNED[size], UNSIGNED[size]):
        assert driver.bytes_of(kind(100), size, spelling) == kind(100).tobytes()
    if np.dtype(kind).kind == "i":
        assert driver.bytes_of(kind(-1), size, SIGNED[size]) == b"\xff" * size
        with pytest.raises(OverflowError):
            driver.bytes_of(kind(-1), size, UNSIGNED[size])
    else:
        top = kind(2 ** (8 * size) - 1)
        assert driver.bytes_of(top, size, UNSIGNED[size]) == b"\xff" * size
        with pytest.raises(OverflowError):
            driver.bytes_of(top, size, SIGNED[size])


@pytest.mark.parametrize(
    ("value", "size", "spelling"),
    [
        (np.float32(1), 4, "int"),
        (np.int32(1), 4, "float"),
        (np.float64(1), 8, "long long"),
        (np.float64(1), 8, POINTER),
        (np.bool_(True), 1, "signed char"),
        (np.int8(1), 1, "bool"),
        (np.float16(1), 2, "__nv_bfloat16"),
        (ml_dtypes.bfloat16(1), 2, "half"),
        (np.int16(1), 2, "half"),
        (np.complex64(1), 8, "double"),
        (ml_dtypes.float8_e4m3fn(1), 1, "signed char"),
        (ctypes.c_float(1), 4, "int"),
        (ctypes.c_int(1), 4, "float"),
        (ctypes.c_bool(True), 1, "unsigned char"),
    ],
)
def test_a_typed_scalar_of_another_kind_is_refused(driver, value, size, spelling):
    with pytest.raises(TypeError, match=r"argument 0 of k, .*, must be"):
        driver.bytes_of(value, size, spelling)


def test_numpy_s_float64_is_no_python_float(driver):
    # A subclass of float, but of a size of its own.
    assert driver.bytes_of(np.float64(1.5), 8, "double") == struct.pack("<d", 1.5)
    with pytest.raises(
        ValueError, match=r"must have exactly 4 bytes \(got numpy\.float64 with 8 bytes\)"
    ):
        driver.bytes_of(np.float64(1.5), 4, "float")


def test_numpy_s_bool_is_a_bool(driver):
    assert driver.bytes_of(np.bool_(True), 1, "bool") == b"\1"


def test_small_numbers_of_ml_dtypes_go_by_their_size(driver):
    for value in (ml_dtypes.int4(3), ml_dtypes.float8_e5m2(1.5), ml_dtypes.float8_e4m3fn(2)):
        assert driver.bytes_of(value, 1) == value.tobytes()
        with pytest.raises(ValueError, match="must have exactly 2 bytes"):
            driver.bytes_of(value, 2)


def test_bfloat16_scalars(driver):
    value = ml_dtypes.bfloat16(1.5)
    assert driver.bytes_of(value, 2, "__nv_bfloat16") == b"\xc0\x3f"
    assert driver.bytes_of(np.float16(1.5), 2, "__half") == b"\x00\x3e"


@pytest.mark.parametrize(
    "kind",
    [np.str_, np.bytes_, np.datetime64, np.timedelta64],
)
def test_numpy_s_texts_and_times_are_no_arguments(driver, kind):
    value = kind("ab") if kind in (np.str_, np.bytes_) else kind(2, "s")
    with pytest.raises(TypeError, match=r"got numpy\."):
        driver.bytes_of(value, value.itemsize)


@pytest.mark.parametrize("kind", CTYPES)
def test_a_ctypes_scalar_passes_its_bytes(driver, kind):
    value = kind(1)
    size = ctypes.sizeof(kind)
    assert driver.bytes_of(value, size) == bytes(value)
    with pytest.raises(ValueError, match=f"with {in_bytes(size)}"):
        driver.bytes_of(value, 16)


def test_a_ctypes_pointer_is_an_address(driver):
    for spelling in (None, POINTER, "void*"):
        assert driver.bytes_of(ctypes.c_void_p(0x1234), 8, spelling) == bytes(
            [0x34, 0x12] + [0] * 6
        )
        assert driver.bytes_of(ctypes.c_void_p(), 8, spelling) == bytes(8)
    number = ctypes.c_int(5)
    address = ctypes.addressof(number).to_bytes(8, "little")
    assert driver.bytes_of(ctypes.pointer(number), 8, "int*") == address
    assert driver.bytes_of(np.uint64(0x1234), 8, POINTER) == bytes([0x34, 0x12] + [0] * 6)
    with pytest.raises(OverflowError):
        driver.bytes_of(np.int64(-1), 8, POINTER)
    with pytest.raises(TypeError):
        driver.bytes_of(ctypes.c_void_p(0), 8, "size_t")


# ---- structures


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 12, 16, 24, 48, 100, 128, 1024, 4095, 4096])
def test_a_structure_is_copied_whole(driver, size):
    content = bytes(i * 7 % 256 for i in range(size))
    structure = type("S", (ctypes.Structure,), {"_fields_": [("b", ctypes.c_ubyte * size)]})
    union = type("U", (ctypes.Union,), {"_fields_": [("b", ctypes.c_ubyte * size)]})
    record = np.frombuffer(content, np.dtype([("b", "u1", (size,))]))[0]
    for value in (
        structure.from_buffer_copy(content),
        union.from_buffer_copy(content),
        (ctypes.c_ubyte * size).from_buffer_copy(content),
        record,
        np.void(content),
    ):
        assert driver.bytes_of(value, size) == content
        assert driver.bytes_of(value, size, "Params") == content
        with pytest.raises(
            ValueError, match=rf"must have exactly {size + 1} bytes .*with {in_bytes(size)}"
        ):
            driver.bytes_of(value, size + 1)


def test_the_largest_parameter(driver):
    size = 32764
    content = bytes(i * 31 % 251 for i in range(size - 8))
    structure = type("S", (ctypes.Structure,), {"_fields_": [("b", ctypes.c_ubyte * (size - 8))]})
    kernel = driver.kernel(layout=((0, size - 8), (size - 8, 4), (size - 4, 4)))
    kernel[1, 1](structure.from_buffer_copy(content), 7, 2.5)
    assert driver.last.arguments == (content, struct.pack("<i", 7), struct.pack("<f", 2.5))


def test_a_structure_with_fields(driver):
    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_double))

    content = bytes(Pair(3, 0.5))
    assert driver.bytes_of(Pair(3, 0.5), 16) == content
    record = np.zeros(1, np.dtype([("x", "i4"), ("y", "f8")], align=True))
    record["x"], record["y"] = 3, 0.5
    assert driver.bytes_of(record[0], 16) == content
    with pytest.raises(TypeError):
        driver.bytes_of(Pair(3, 0.5), 8, "double")


def test_a_structure_is_no_number(driver):
    four = type("S", (ctypes.Structure,), {"_fields_": [("b", ctypes.c_ubyte * 4)]})
    with pytest.raises(TypeError, match=r"int \(4 bytes\), must be an int"):
        driver.bytes_of(four(), 4, "int")


def test_a_tensor_map_is_a_structure(driver):
    assert driver.bytes_of(cl.arguments.TensorMap(), 128) == bytes(128)
    assert driver.bytes_of(cl.arguments.TensorMap(), 128, "CUtensorMap") == bytes(128)
