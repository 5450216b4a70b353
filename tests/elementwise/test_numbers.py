"""Numbers: conversions, comparisons, signs, scalars that are closed over."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from culaunch import elementwise as ew


def run(function, *arguments):
    return function(*arguments)


def closed_over(operation, number):
    return ew.fuse(lambda a: operation(a, number))


_HALVES = np.array([0xFE00, 0x7E00, 0x3C00, 0xBC00], np.uint16).view(np.float16)


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_a_float_that_does_not_fit_becomes_the_nearest_integer(target, source):
    numbers = [300, -200, 256, 255.9, -0.5, 6e4, -6e4, np.inf, -np.inf]
    if source is not np.float16:
        numbers += [1e9, -1e9, 1e20]
    x = np.array(numbers, source)
    got = run(ew.fuse(lambda a: ew.astype(a, target)), x)
    limits = np.iinfo(target)
    wanted = np.trunc(np.clip(x.astype(float), limits.min, limits.max)).astype(target)
    np.testing.assert_array_equal(got, wanted)


def test_a_scalar_that_does_not_fit_becomes_the_nearest_integer():
    add = ew.fuse(lambda a, s: a + ew.astype(s, ew.int8))
    zero = np.zeros(1, np.int8)
    for number, wanted in ((300.7, 127), (-1e300, -128), (float("nan"), 0), (5.9, 5)):
        assert run(add, zero, number).tolist() == [wanted]


@pytest.mark.slow
@pytest.mark.sweep(4)
@pytest.mark.parametrize("number", [0.1, 0.3, 1 / 3, 65519.0, 1e-7, 7e-8])
def test_half_precision_is_compared_with_a_number_of_its_own_type(number):
    x = np.array([number, 1], np.float16)
    for operation in (np.equal, np.less_equal, np.greater, np.not_equal, np.less):
        named = getattr(ew, operation.__name__)
        wanted = operation(x, np.float16(number)).tolist()
        assert run(closed_over(named, number), x).tolist() == wanted
        assert run(ew.fuse(named), x, number).tolist() == wanted


@pytest.mark.sweep(4)
@pytest.mark.needs("torch")
@pytest.mark.parametrize("number", [0.1, 0.3, 1e-40, 3.4e38, 1e39])
def test_bfloat16_is_compared_as_torch_compares_it(number):
    import torch

    x = torch.tensor([number, 1.0], dtype=torch.bfloat16)
    for operation in ("eq", "le", "gt"):
        wanted = getattr(torch, operation)(x, number).tolist()
        named = {"eq": ew.equal, "le": ew.less_equal, "gt": ew.greater}[operation]
        assert run(closed_over(named, number), x).tolist() == wanted
        assert run(ew.fuse(named), x, number).tolist() == wanted


def test_the_sign_of_minus_zero_is_zero():
    for dtype in (np.float16, np.float32, np.float64):
        x = np.array([-0.0, 0.0, -3, np.nan], dtype)
        got = run(ew.fuse(ew.sign), x)
        np.testing.assert_array_equal(got, [0, 0, -1, np.nan])
        assert not np.signbit(got[:2]).any()


def test_half_precision_keeps_the_sign_of_nan():
    assert run(ew.fuse(ew.signbit), _HALVES).tolist() == [True, False, False, True]
    ones = np.ones(4, np.float16)
    got = run(ew.fuse(ew.copysign), ones, _HALVES)
    assert got.tolist() == [-1, 1, 1, -1]
    back = run(ew.fuse(ew.copysign), _HALVES, -ones)
    assert np.isnan(back[:2]).all()
    assert np.signbit(back).all()


@pytest.mark.needs("torch")
def test_bfloat16_keeps_the_sign_of_nan():
    import torch

    x = torch.tensor([-1, 0x7FC0, 0x3F80], dtype=torch.int16).view(torch.bfloat16)
    assert run(ew.fuse(ew.signbit), x).tolist() == [True, False, False]
    back = run(ew.fuse(ew.copysign), x, -torch.ones_like(x))
    assert torch.signbit(back.float()).all()


@pytest.mark.slow
def test_complex_expm1_has_the_standard_s_special_cases():
    inf, nan = np.inf, np.nan
    cases = [
        (complex(inf, 0), complex(inf, 0)),
        (complex(-inf, inf), complex(-1, 0)),
        (complex(inf, inf), complex(inf, nan)),
        (complex(-inf, nan), complex(-1, 0)),
        (complex(inf, nan), complex(inf, nan)),
        (complex(nan, 0), complex(nan, 0)),
        (complex(-inf, 2), complex(-1, 0)),
        (complex(inf, 2), complex(-inf, inf)),
        (complex(1, inf), complex(nan, nan)),
        (complex(nan, 1), complex(nan, nan)),
        (0j, 0j),
    ]
    for dtype in (np.complex64, np.complex128):
        got = run(ew.fuse(ew.expm1), np.array([x for x, _ in cases], dtype))
        for (x, wanted), result in zip(cases, got, strict=True):
            np.testing.assert_array_equal(result.real, wanted.real, str(x))
            np.testing.assert_array_equal(result.imag, wanted.imag, str(x))


def test_closed_over_numbers_of_numpy_have_their_own_type():
    x = np.array([1.5, 2.5], np.float32)
    for number in (np.float32(3), np.float16(0.1), np.float64(0.1), np.sqrt(2)):
        got = run(closed_over(ew.multiply, number), x)
        assert got.dtype == np.result_type(x, number)
        np.testing.assert_allclose(got, x * number, rtol=1e-6)
    with pytest.raises(TypeError, match="float32 and int8 do not promote"):
        run(closed_over(ew.multiply, np.int8(3)), x)


def test_closed_over_numbers_of_other_classes_are_python_s():
    class Level(enum.IntEnum):
        HIGH = 3

    x = np.array([1.5], np.float32)
    got = run(ew.fuse(lambda a: a * Level.HIGH), x)
    assert (got.dtype, got.tolist()) == (np.float32, [4.5])


def test_an_argument_is_not_changed_in_place():
    def wrong(x, y):
        x += y
        return x

    def right(x, y):
        total = x * 2
        total += y
        total //= 2
        return total

    x, y = np.array([3.0], np.float32), np.array([2.0], np.float32)
    with pytest.raises(TypeError, match=r"x \+= y.*would not change the caller's array"):
        run(ew.fuse(wrong), x, y)
    assert run(ew.fuse(right), x, y).tolist() == [4]
    assert x.tolist() == [3]


def test_an_array_that_is_not_aligned_is_refused_before_the_launch():
    double = ew.fuse(lambda a: a * 2)
    unaligned = np.zeros(100, np.uint8)[1:81].view(np.float32)
    with pytest.raises(ValueError, match=r"argument a begins at .* not a multiple of the 4 bytes"):
        double(unaligned)
    with pytest.raises(ValueError, match=r"out begins at .* not a multiple of the 4 bytes"):
        double(np.zeros(20, np.float32), out=unaligned)
    # The device is as good as before.
    assert run(double, np.ones(2, np.float32)).tolist() == [2, 2]


def test_element_types_are_equal_to_their_names():
    assert ew.float32 == "float32"
    assert ew.float32 == np.float32
    assert np.dtype("f4") == ew.float32
    assert ew.float32 != "float64"
    assert ew.float32 != 3
    assert {ew.float32: 1}["float32"] == 1


def test_clip_takes_no_complex_numbers():
    with pytest.raises(TypeError, match=r"clip takes .* real types"):
        run(ew.fuse(lambda a: ew.clip(a)), np.ones(2, np.complex64))


@pytest.mark.needs("torch")
def test_a_tensor_that_requires_grad_is_refused_where_torch_records():
    import torch

    double = ew.fuse(lambda a: a * 2)
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match=r"argument a requires grad.*detach\(\)"):
        double(leaf)
    with pytest.raises(TypeError, match="out requires grad"):
        double(torch.ones(3), out=leaf)
    with torch.no_grad():
        assert double(leaf).tolist() == [2, 2, 2]
    assert double(leaf.detach()).tolist() == [2, 2, 2]
