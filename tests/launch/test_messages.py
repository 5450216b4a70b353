"""The words of an argument's error (culaunch._launch.messages)."""

import ctypes
import enum

import numpy as np
import pytest
from fake_arrays import ExchangeArray
from scalar_types import in_bytes

import culaunch as cl
from culaunch import testing

ARRAY = "an array (DLPack or __cuda_array_interface__), an address as an int, or None"
SIZED = "a NumPy or ctypes scalar or structure of"


@pytest.mark.parametrize(
    ("size", "spelling", "accepted"),
    [
        (8, "float*", ARRAY),
        (4, "int", "an int, or a NumPy or ctypes integer of that size"),
        (8, "size_t", "an int, or a NumPy or ctypes integer of that size"),
        (4, "float", "a float (2.0, not 2), or a NumPy or ctypes float of that type"),
        (1, "bool", "a bool, or a NumPy or ctypes bool"),
        (1, None, f"an int, a bool, or {SIZED} 1 byte"),
        (2, None, f"an int, or {SIZED} 2 bytes"),
        (4, None, f"an int, a float, or {SIZED} 4 bytes"),
        (8, None, f"{ARRAY}, an int, a float, or {SIZED} 8 bytes"),
        (24, None, f"{SIZED} 24 bytes"),
        (24, "Pair", f"{SIZED} 24 bytes"),
    ],
)
def test_what_a_parameter_takes(driver, size, spelling, accepted):
    with pytest.raises(TypeError) as caught:
        driver.bytes_of("x", size, spelling)
    sized = in_bytes(size)
    title = f"{spelling} ({sized})" if spelling else f"a parameter of {sized}"
    assert str(caught.value) == f"argument 0 of k, {title}, must be {accepted} (got str 'x')"


class Loud:
    def __repr__(self):
        raise AssertionError("a message is no place to run this")


class LoudInt(int):
    def __repr__(self):
        raise AssertionError("nor this")

    __str__ = __repr__


class Colour(enum.IntEnum):
    RED = 300


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 200, "(got str)"),
        ("short", "(got str 'short')"),
        (b"ab", "(got bytes b'ab')"),
        ([1, 2], "(got list)"),
        (Loud(), r".Loud)"),
        (Loud, "(got type)"),
        (1j, "(got complex 1j)"),
        (np.zeros(3).flat, "(got numpy.flatiter)"),
        (ctypes.CDLL(None), "(got ctypes.CDLL)"),
    ],
    ids=["long", "short", "bytes", "list", "loud", "type", "complex", "flatiter", "library"],
)
def test_what_came(driver, value, shown):
    with pytest.raises(TypeError) as caught:
        driver.bytes_of(value, 4)
    assert str(caught.value).endswith(shown)


def test_no_code_of_an_argument_runs_for_a_message(driver):
    for value, error in ((LoudInt(2**40), OverflowError), (Colour.RED, OverflowError)):
        with pytest.raises(error, match=r"must be from"):
            driver.bytes_of(value, 1)
    with pytest.raises(OverflowError, match=r"\(got int of \d+ bits\)"):
        driver.bytes_of(10**5000, 8)  # more digits than Python turns into text
    with pytest.raises(TypeError, match=r"\(got float -?1e\+300\)"):
        driver.bytes_of(1e300, 1)


def test_the_template_s_arguments_stay_in_the_title(driver):
    kernel = driver.kernel(8, 8, 4, 4, name="_Z5scaleIfEvPT_PKS0_S0_i")
    with pytest.raises(TypeError, match=r"argument 1 of scale<float>, const float\* \(8 bytes\)"):
        kernel[1, 1](None, 1.0, 2.0, 3)
    with pytest.raises(TypeError) as caught:
        kernel[1, 1](None, None)
    assert str(caught.value) == (
        "scale<float> takes 4 arguments (float*, const float*, float, int) (got 2)"
    )


@pytest.mark.parametrize(
    ("sizes", "given", "hinted"),
    [
        ((8, 4, 8, 8), 2, "for each"),
        ((8, 4, 8), 2, "for it"),
        ((8, 4, 4, 8), 2, None),
        ((8, 4, 8, 8, 8), 2, None),
        ((8, 4), 3, None),
        ((8, 8), 0, "for each"),
    ],
)
def test_the_hint_at_triton_s_hidden_pointers(driver, sizes, given, hinted):
    kernel = driver.kernel(*sizes)
    with pytest.raises(TypeError) as caught:
        kernel[1, 1](*[0] * given)
    assert ("Triton" in str(caught.value)) == bool(hinted)
    if hinted:
        assert str(caught.value).endswith(f"pass None {hinted} at the end")


def test_no_hint_where_the_types_are_known(driver):
    kernel = driver.kernel(8, 4, 8, 8, signature="float*, int, float*, float*")
    with pytest.raises(TypeError) as caught:
        kernel[1, 1](None, 1)
    assert "Triton" not in str(caught.value)
    named = driver.kernel(8, 8, name="_Z4copyPfS_")
    with pytest.raises(TypeError) as caught:
        named[1, 1]()
    assert "Triton" not in str(caught.value)


def test_vector_elements_are_named(driver):
    with pytest.raises(TypeError, match=r"of bool8"):
        driver.bytes_of(ExchangeArray(dtype=(6, 8)), 8, "float*")
    with pytest.raises(TypeError, match=r"of DLPack type code 77"):
        driver.bytes_of(ExchangeArray(dtype=(77, 8)), 8, "float*")


PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.global .u32 v;
.visible .entry k(.param .u64 p) { ret; }
"""


@pytest.fixture
def emulated():
    with testing.use_driver("emulator"):
        yield cl.load(PTX)


def test_a_kernel_that_is_called_says_how_it_is_launched(emulated):
    for arguments in [((4,), (256,), ()), ()]:
        with pytest.raises(TypeError, match=r"launch it with k\[(4, 256|grid, block)\]"):
            emulated["k"](*arguments)
