"""Fused functions in saved and exported functions: their kernels are launches of the program."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from bodies import shape_only
from library_parts import mutants, parts_of, saved_bytes

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = pytest.mark.usefixtures("emulated")

# The errors that a program with wrong numbers may raise.
ERRORS = (ArithmeticError, ValueError, TypeError, AssertionError, IndexError, RuntimeError,
          MemoryError, cl.CulaunchError)  # fmt: skip


@ew.fuse
def scaled(x, y, s):
    return x * s + y


@ew.fuse
def both_ways(x, y):
    return x + y, x > y


@ew.fuse
def half_of(x):
    return x * 0.5


def an_array(shape, dtype="float32", order="C"):
    size = int(np.prod(shape))
    return np.asarray((np.arange(size) % 7).reshape(shape), dtype=dtype, order=order)


def saved(function):
    return cl.ship.load_library(saved_bytes([function]))[function.__name__]


def same(found, expected):
    found, expected = (one if isinstance(one, tuple) else (one,) for one in (found, expected))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert (one.dtype, one.shape, one.strides) == (other.dtype, other.shape, other.strides)


LAYOUTS = [
    (an_array((4, 6)), an_array((4, 6))),
    (an_array((64, 33)), an_array((64, 33))),
    (an_array((4, 6)), an_array((6,))),
    (an_array((4, 1)), an_array((4, 6))),
    (an_array((1, 6)), an_array((5, 1))),
    (an_array((0, 6)), an_array((6,))),
    (an_array((1, 1)), an_array((1, 1))),
    (an_array(()), an_array(())),
    (an_array(()), an_array((5,))),
    (an_array((4, 6), order="F"), an_array((4, 6))),
    (an_array((3, 4, 5)).transpose(2, 0, 1), an_array((5, 3, 4))),
    (an_array((8, 6))[::2, ::-1], an_array((4, 6))),
    (an_array((33,))[1:], an_array((32,))),
]


@pytest.mark.slow
def test_arrays_of_every_layout():
    @cl.function
    def chained(x, y, s: float):
        z = scaled(x, y, s)
        total, is_more = both_ways(z, y)
        return scaled(total, x, 2), is_more

    expected = [chained(x, y, 1.5) for x, y in LAYOUTS]
    loaded = saved(chained)
    for (x, y), one in zip(LAYOUTS, expected, strict=True):
        same(loaded(x, y, 1.5), one)
    assert loaded.abstract(shape_only((4, 6), "float32"), shape_only((6,), "float32"), 1.0)[
        0
    ].shape == (4, 6)


def test_both_kernels_are_taken():
    """The plan chooses between dense arrays and any, as the launches that are seen say."""

    @cl.function
    def one(x, y):
        return scaled(x, y, 2.0)

    x, y = an_array((8, 8)), an_array((8, 8))
    one(x, y)
    one(x[:, ::2], y[:, 1::2])
    loaded = saved(one)
    text = loaded.explain()
    assert "contiguous_x4[" in text
    assert "strided2d_64[" in text
    same(loaded(x, y), x * 2 + y)
    same(loaded(x[:, ::2], y[:, 1::2]), x[:, ::2] * 2 + y[:, 1::2])
    # Dense, but not where packs begin.
    flat = an_array((33,))
    one(flat, flat)
    same(saved(one)(flat[1:], flat[1:]), flat[1:] * 3)


@pytest.mark.parametrize(
    ("a", "b", "s"),
    [("float32", "float64", 2), ("int32", "int8", -3), ("uint8", "int16", 2),
     ("float16", "float16", 0.5), ("int64", "int64", 2**40)],
)  # fmt: skip
def test_types_and_numbers(a, b, s):
    @cl.function
    def promoted(x, y, s):
        return scaled(x, y, s), scaled(x, y, 3), scaled(x, y, x.shape[0])

    x, y = an_array((4, 4), a), an_array((4, 4), b)
    expected = promoted(x, y, s)
    same(saved(promoted)(x, y, s), expected)


def test_bools_and_numpy_scalars():
    chosen = ew.kernel("T x, bool flag, float32 s", "T y", "y = flag ? x * (T)s : -x", "chosen")
    held = np.float32(3.5)

    @cl.function
    def choose(x, n: int):
        return chosen(x, n > 2, 2.0), chosen(x, True, n), chosen(x, n == 3, held)

    x = an_array((6,))
    expected = choose(x, 3), choose(x, 1)
    loaded = saved(choose)
    same(loaded(x, 3), expected[0])
    same(loaded(x, 1), expected[1])


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_complex_numbers(dtype):
    held = np.complex64(1 - 2j)

    @cl.function
    def turned(x, n: int, s: float):
        return tuple(scaled(x, x, one) for one in (1j, 2.5 - 0.5j, held, n, s))

    x = an_array((3, 5), dtype)
    if dtype != "float32":
        x += (1j * np.arange(15).reshape(3, 5)).astype(dtype)
    calls = ((x, 3, 0.5), (x[:, ::2], -7, 1e10))
    expected = [turned(*call) for call in calls]
    assert expected[0][0].dtype.kind == "c"
    loaded = saved(turned)
    for call, one in zip(calls, expected, strict=True):
        same(loaded(*call), one)
    np.testing.assert_allclose(expected[1][3], x[:, ::2] * -7 + x[:, ::2])


def test_numbers_that_do_not_fit():
    @cl.function
    def shifted(x, n: int):
        return scaled(x, x, n)

    x = an_array((4,), "int8")
    shifted(x, 1)
    loaded = saved(shifted)
    same(loaded(x, -128), shifted(x, -128))
    with pytest.raises(OverflowError, match=r"test_fused.py:\d+"):
        loaded(x, 128)


def test_views_and_outputs_that_are_given(kernels):
    @cl.function
    def into(x, out):
        both_ways(x[1:], x[:-1], out=(out[0], out[1][2:]))
        scaled(out[0], x[1:], x.shape[0], out=out[0])
        z = cl.zeros((x.shape[0], 4), x.dtype)
        half_of(x, out=z[:, 1])
        kernels["scale<float>"][1, 64](z, z, 4.0, z.size)
        return z

    x = an_array((9,))

    def run(function):
        out = [np.zeros(8, np.float32), np.zeros(10, bool)]
        z = function(x, out)
        return z, out[0], out[1]

    expected = run(into)
    same(run(saved(into)), expected)


def test_kernels_of_cpp_and_raw_arguments():
    taken = ew.kernel("raw T table, int32 at, bool flip", "T y", "y = table[at] * (flip ? -1 : 1)")

    @cl.function
    def look_up(table, at):
        return taken(table, at, True), taken(table, at, False)

    table, at = an_array((7,)), np.array([[3, 0], [6, 6]], np.int32)
    expected = look_up(table, at)
    same(saved(look_up)(table, at), expected)


def test_what_no_library_holds():
    held = an_array((4,))

    @cl.function
    def closed(x):
        return scaled(x, held, 1.0)

    closed(held)
    with pytest.raises(TypeError, match="which a library cannot hold"):
        saved_bytes([closed])


def test_changed_words_do_no_harm():
    """The same as for any launch: its kernels run with wrong numbers, and nothing else happens."""

    @cl.function
    def one(x, y, s: float):
        return scaled(x, y, s)

    x, y = an_array((2, 0)), an_array((2, 0))
    one(x, y, 1.0)
    manifest, contents = parts_of(saved_bytes([one]))
    (name,) = [member for member in contents if member.startswith("programs/")]
    taken = 0
    for changed in mutants(manifest, contents, name, seed=3):
        loaded = cl.ship.load_library(changed).one
        with contextlib.suppress(*ERRORS):
            loaded(x, y, 2)
            taken += 1
    assert taken > 5
    cl.testing.reset_emulator()


@pytest.mark.slow
@pytest.mark.needs("tvm_ffi", "g++", "nvrtc")
def test_an_export(tmp_path):
    tvm_ffi = pytest.importorskip("tvm_ffi")

    @cl.function
    def one(x, y, s: float):
        total, is_more = both_ways(scaled(x, y, s), y)
        return total, is_more, scaled(scaled(x, y, 2 - 1j), y, s)

    for x, y in LAYOUTS[:3]:
        one(x, y, 1.5)
    cl.ship.export(one, tmp_path / "libone.so", flags=["-O0"])
    module = tvm_ffi.load_module(str(tmp_path / "libone.so"))
    for x, y in LAYOUTS[:3]:
        expected = one(x, y, 1.5)
        found = tuple(np.zeros_like(part) for part in expected)
        module.one_into(*map(tvm_ffi.from_dlpack, (*found, x, y)), 1.5)
        same(found, expected)
