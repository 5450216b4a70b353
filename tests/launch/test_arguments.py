"""Every row of the table of arguments, and every error of it, bit for bit.

The code is csrc/arguments/convert.cpp.
"""

import ctypes
import enum
import math
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scalar_types import CTYPES, FLOATS, INTEGERS, REALS, SIGNED, UNSIGNED, in_bytes

# The drivers' fixture lives as long as a test: its examples share it.
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)

POINTER = "float*"
NOT_A_NUMBER_S_SIZE = (3, 5, 6, 7, 12, 16, 24)


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 300


class Celsius(float):
    pass


# ---- int


@SHARED
@given(size=st.sampled_from((1, 2, 4, 8)), value=st.integers(-(2**64), 2**65))
def test_an_int_arrives_as_it_is_or_overflows(driver, size, value):
    bits = 8 * size
    ranges = {
        None: (-(2 ** (bits - 1)), 2**bits),  # signed or unsigned
        SIGNED[size]: (-(2 ** (bits - 1)), 2 ** (bits - 1)),
        UNSIGNED[size]: (0, 2**bits),
    }
    for spelling, (low, high) in ranges.items():
        if low <= value < high:
            expected = value.to_bytes(size, "little", signed=value < 0)
            assert driver.bytes_of(value, size, spelling) == expected
        else:
            with pytest.raises(OverflowError, match=r"argument 0 of k, .* must be from"):
                driver.bytes_of(value, size, spelling)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_the_ends_of_an_int_s_range(driver, size):
    bits = 8 * size
    for spelling, low, high in (
        (None, -(2 ** (bits - 1)), 2**bits - 1),
        (SIGNED[size], -(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
        (UNSIGNED[size], 0, 2**bits - 1),
    ):
        for value in (low, high):
            signed = value < 0
            expected = value.to_bytes(size, "little", signed=signed)
            assert driver.bytes_of(value, size, spelling) == expected
        for value in (low - 1, high + 1):
            with pytest.raises(OverflowError, match=rf"\(got int {value}\)"):
                driver.bytes_of(value, size, spelling)


def test_an_overflow_says_what_range_there_is(driver):
    with pytest.raises(OverflowError) as caught:
        driver.bytes_of(2**31, 4, "int")
    assert str(caught.value) == (
        "argument 0 of k, int (4 bytes), must be from -2^31 to 2^31 - 1 (got int 2147483648)"
    )
    with pytest.raises(OverflowError, match=r"from 0 to 2\^8 - 1 \(got int -1\)"):
        driver.bytes_of(-1, 1, "unsigned char")
    with pytest.raises(OverflowError, match=r"from -2\^63 to 2\^64 - 1"):
        driver.bytes_of(2**64, 8)


@pytest.mark.parametrize("size", NOT_A_NUMBER_S_SIZE)
@pytest.mark.parametrize("value", [1, 1.0, True, None])
def test_plain_values_need_a_parameter_of_their_size(driver, size, value):
    with pytest.raises(TypeError, match=f"a parameter of {in_bytes(size)}, must be"):
        driver.bytes_of(value, size)


@pytest.mark.parametrize("size", FLOATS)
def test_an_int_is_no_float(driver, size):
    with pytest.raises(TypeError, match=r"must be a float \(2\.0, not 2\).*\(got int 2\)"):
        driver.bytes_of(2, size, FLOATS[size])


def test_an_int_is_no_bool(driver):
    with pytest.raises(TypeError, match=r"must be a bool, or .* \(got int 1\)"):
        driver.bytes_of(1, 1, "bool")


def test_an_int_may_be_an_address(driver):
    assert driver.bytes_of(2**64 - 16, 8, POINTER) == (2**64 - 16).to_bytes(8, "little")
    with pytest.raises(OverflowError, match=r"from 0 to 2\^64 - 1"):
        driver.bytes_of(-1, 8, POINTER)


def test_an_int_enum_is_an_int(driver):
    assert driver.bytes_of(Colour.BLUE, 4, "int") == (300).to_bytes(4, "little")
    with pytest.raises(OverflowError):
        driver.bytes_of(Colour.BLUE, 1)


# ---- float


@pytest.mark.slow
@SHARED
@given(st.floats())
def test_a_float_is_rounded_once(driver, value):
    assert driver.bytes_of(value, 8, "double") == struct.pack("<d", value)
    assert driver.bytes_of(value, 8) == struct.pack("<d", value)
    for size, spelling, kind in (
        (4, "float", np.float32),
        (4, None, np.float32),
        (2, "half", np.float16),
        (2, "__nv_bfloat16", ml_dtypes.bfloat16),
    ):
        with np.errstate(all="ignore"):
            if kind is ml_dtypes.bfloat16:
                value = float(np.float32(value))  # ml_dtypes rounds a double twice
            expected = kind(value)
        if math.isfinite(value) and not np.isfinite(expected):
            with pytest.raises(OverflowError, match="cannot hold a number this large"):
                driver.bytes_of(value, size, spelling)
            continue
        arrived = np.frombuffer(driver.bytes_of(value, size, spelling), kind)[0]
        if math.isnan(value):
            assert np.isnan(arrived)
        else:
            assert arrived.tobytes() == expected.tobytes()


def exact(bits, fraction, bias):
    """Return the value of a 16-bit float's bits, exactly."""
    exponent, mantissa = bits >> fraction, bits & ((1 << fraction) - 1)
    if exponent == 0:
        return math.ldexp(mantissa, 1 - bias - fraction)
    return math.ldexp(mantissa + (1 << fraction), exponent - bias - fraction)


@SHARED
@given(data=st.data(), spelling=st.sampled_from(("half", "nv_bfloat16")))
def test_sixteen_bit_floats_round_to_nearest_even(driver, data, spelling):
    fraction, bias = (10, 15) if spelling == "half" else (7, 127)
    infinity = 0x7C00 if spelling == "half" else 0x7F80
    bits = data.draw(st.integers(0, infinity - 2))
    low, high = exact(bits, fraction, bias), exact(bits + 1, fraction, bias)
    middle = (low + high) / 2
    even = bits + (bits & 1)
    for value, expected in (
        (low, bits),
        (middle, even),
        (math.nextafter(middle, -math.inf), bits),
        (math.nextafter(middle, math.inf), bits + 1),
    ):
        assert driver.bytes_of(value, 2, spelling) == expected.to_bytes(2, "little")
        negative = (expected | 0x8000).to_bytes(2, "little")
        assert driver.bytes_of(-value, 2, spelling) == negative


@pytest.mark.parametrize("spelling", ["half", "__nv_bfloat16"])
def test_the_end_of_sixteen_bit_floats(driver, spelling):
    largest = 65504.0 if spelling == "half" else exact(0x7F7F, 7, 127)
    tie = 65520.0 if spelling == "half" else (largest + exact(0x7F80, 7, 127)) / 2
    infinity = 0x7C00 if spelling == "half" else 0x7F80
    below = math.nextafter(tie, 0)
    assert driver.bytes_of(below, 2, spelling) == (infinity - 1).to_bytes(2, "little")
    for value in (tie, 1e39, 1.7e308):
        with pytest.raises(OverflowError):
            driver.bytes_of(value, 2, spelling)
    assert driver.bytes_of(math.inf, 2, spelling) == infinity.to_bytes(2, "little")
    assert driver.bytes_of(-math.inf, 2, spelling) == (infinity | 0x8000).to_bytes(2, "little")
    assert driver.bytes_of(-1e-320, 2, spelling) == b"\x00\x80"


def test_a_float_of_two_unknown_bytes_is_ambiguous(driver):
    with pytest.raises(TypeError) as caught:
        driver.bytes_of(1.5, 2)
    assert str(caught.value).startswith(
        "argument 0 of k, a parameter of 2 bytes, could be float16 or bfloat16, so a float is "
        "ambiguous (got float 1.5): pass numpy.float16(x) or ml_dtypes.bfloat16(x)"
    )


@pytest.mark.parametrize(
    ("size", "spelling"),
    [(4, "int"), (8, "size_t"), (8, POINTER), (1, "bool"), (1, None), (2, "short")],
)
def test_a_float_is_no_integer(driver, size, spelling):
    with pytest.raises(TypeError, match=r"\(got float 2\.0\)"):
        driver.bytes_of(2.0, size, spelling)


def test_a_subclass_of_float_is_a_float(driver):
    assert driver.bytes_of(Celsius(1.5), 4, "float") == struct.pack("<f", 1.5)


# ---- bool, None


def test_a_bool_is_one_byte(driver):
    for spelling in (None, "bool"):
        assert driver.bytes_of(True, 1, spelling) == b"\1"
        assert driver.bytes_of(False, 1, spelling) == b"\0"


@pytest.mark.parametrize(
    ("size", "spelling"),
    [(1, "signed char"), (1, "unsigned char"), (4, None), (4, "int"), (8, None), (4, "float")],
)
def test_a_bool_is_nothing_else(driver, size, spelling):
    with pytest.raises(TypeError, match=r"\(got bool True\)"):
        driver.bytes_of(True, size, spelling)


def test_none_is_a_null_pointer(driver):
    for spelling in (None, POINTER, "void*", "MyType const*"):
        assert driver.bytes_of(None, 8, spelling) == bytes(8)


@pytest.mark.parametrize(("size", "spelling"), [(8, "size_t"), (8, "double"), (4, None)])
def test_none_is_nothing_else(driver, size, spelling):
    with pytest.raises(TypeError, match=r"\(got NoneType\)"):
        driver.bytes_of(None, size, spelling)


# ---- all the others


class WithIndex:
    def __index__(self):
        return 3


@pytest.mark.parametrize(
    "value",
    [
        "text", b"bytes", bytearray(8), memoryview(bytes(8)), 1j, [1], (1,), {1: 2}, {1}, object(),
        print, int, WithIndex(), Ellipsis, NotImplemented, lambda: 1, range(3), slice(1),
        ctypes.CFUNCTYPE(None), ctypes.py_object(1), ctypes.c_int, np.float32, np.dtype("f4"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 4, 8])
def test_anything_else_is_refused(driver, value, size):
    with pytest.raises(TypeError, match=f"argument 0 of k, a parameter of {size} bytes?, must be"):
        driver.bytes_of(value, size)


def test_the_error_names_the_argument_and_what_is_accepted(driver):
    kernel = driver.kernel(8, 4, name="_Z5scalePfi")
    with pytest.raises(TypeError) as caught:
        kernel[1, 1](0x1000, "7")
    assert str(caught.value) == (
        "argument 1 of scale, int (4 bytes), must be an int, or a NumPy or ctypes integer of that "
        "size (got str '7')"
    )
    with pytest.raises(TypeError) as caught:
        kernel[1, 1](1.0, 7)
    assert str(caught.value) == (
        "argument 0 of scale, float* (8 bytes), must be an array (DLPack or "
        "__cuda_array_interface__), an address as an int, or None (got float 1.0)"
    )
    assert not driver.launches


# ---- whole lists


@pytest.mark.parametrize("count", [0, 1, 2, 58, 64, 65, 70, 300])
def test_any_number_of_parameters(driver, count):
    kernel = driver.kernel(*[4] * count)
    kernel[2, 3](*range(count))
    assert driver.last.arguments == tuple(struct.pack("<i", i) for i in range(count))


def test_the_count_must_match(driver):
    kernel = driver.kernel(4, 4, signature="int, unsigned")
    for passed in {0, 1, 2, 3, 4, 70} - {2}:
        with pytest.raises(
            TypeError, match=rf"k takes 2 arguments \(int, unsigned\) \(got {passed}\)"
        ):
            kernel[1, 1](*range(passed))


def test_there_are_no_keywords(driver):
    kernel = driver.kernel(4)
    with pytest.raises(TypeError, match=r"only positional arguments \(got keyword n\)"):
        kernel[1, 1](n=1)
    kernel[1, 1](1)
    assert driver.last.arguments == (struct.pack("<i", 1),)


def test_gaps_between_parameters_stay_gaps(driver):
    kernel = driver.kernel(1, 8, 2, 4)
    assert [one.offset for one in kernel.signature.parameters] == [0, 8, 16, 20]
    kernel[1, 1](1, 2, 3, 4)
    assert driver.last.arguments == (
        b"\1", (2).to_bytes(8, "little"), b"\3\0", (4).to_bytes(4, "little"),
    )  # fmt: skip


def test_what_is_wrong_launches_nothing_and_leaves_the_launcher_good(driver):
    launcher = driver.kernel(4, 4)[1, 1]
    with pytest.raises(TypeError):
        launcher(1, object())
    assert not driver.launches
    launcher(1, 2)
    launcher(1.0, np.int32(2))
    launcher(True and 1, 2)
    assert len(driver.launches) == 3


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(),
    st.complex_numbers(), st.lists(st.integers()), st.builds(object),
    st.just(type), st.fractions(), st.decimals(),
    st.sampled_from([*INTEGERS, *REALS, np.bool_]).flatmap(
        lambda kind: st.integers(0, 1).map(kind)
    ),
    st.sampled_from(CTYPES).map(lambda kind: kind(1)),
    st.binary(min_size=1, max_size=40).map(np.void),
    st.binary(max_size=8).map(lambda data: (ctypes.c_ubyte * len(data)).from_buffer_copy(data)),
    st.builds(Colour, st.sampled_from([1, 300])), st.datetimes(),
    st.integers(0, 3).map(lambda n: np.zeros(n, "f4")),
)  # fmt: skip
SPELLINGS = [
    None, "int", "unsigned", "float", "double", "half", "bool", "float*", "size_t", "char", "S",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.memory
@SHARED
@given(data=st.data())
def test_no_list_of_arguments_does_worse_than_raise(host_driver, data):
    sizes = data.draw(st.lists(st.integers(1, 20) | st.sampled_from([1, 2, 4, 8]), max_size=6))
    signature = None
    if data.draw(st.booleans()):
        sizes = [size for size in sizes if size in (1, 2, 4, 8)]
        by_size = {
            1: ["bool", "signed char", "char", "S"], 2: ["half", "short", "nv_bfloat16", "S"],
            4: ["int", "unsigned", "float", "S"], 8: ["double", "size_t", "float*", "void*", "S"],
        }  # fmt: skip
        signature = ", ".join(data.draw(st.sampled_from(by_size[size])) for size in sizes)
    kernel = host_driver.kernel(*sizes, signature=signature)
    arguments = data.draw(st.lists(JUNK, max_size=6))
    if data.draw(st.booleans()):
        arguments = [data.draw(JUNK) for _ in sizes]
    before = len(host_driver.launches)
    try:
        kernel[1, 1](*arguments)
    except (TypeError, ValueError, OverflowError, BufferError):
        assert len(host_driver.launches) == before
    else:
        assert [len(argument) for argument in host_driver.last.arguments] == sizes
