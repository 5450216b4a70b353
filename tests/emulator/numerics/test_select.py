"""min, max, abs, neg and copysign."""

from __future__ import annotations

import math

import numpy as np
import pytest
from emulator_internals import numerics as nm
from hypothesis import HealthCheck, given, settings

KINDS = ["f32", "f64", "f16", "bf16"]
few = settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)


def is_nan(value) -> bool:
    return isinstance(value, float) and math.isnan(value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_extremum_of_bit_patterns(exact, kind):
    sign = 1 << exact.layout[kind][0] - 1
    canonical = exact.layout[kind][4]

    def expected(a, b, largest, nan, xorsign):
        flip = (a ^ b) & sign if xorsign else 0
        if xorsign:
            a, b = a & ~sign, b & ~sign
        (na, x), (nb, y) = exact.decode(kind, a), exact.decode(kind, b)
        if is_nan(x) and is_nan(y):
            return b | 1 << 51 if kind == "f64" and not nan else canonical
        if is_nan(x) or is_nan(y):
            return canonical if nan else (b if is_nan(x) else a) | flip
        first = (x, not na) > (y, not nb) if largest else (x, not na) < (y, not nb)
        return (a if first else b) | flip

    @few
    @given(exact.tuples(kind, 2))
    def check(lanes):
        for largest, function in ((False, nm.minimum), (True, nm.maximum)):
            for nan in (False, True):
                for xorsign in (False, True):
                    want = [
                        expected(a, b, largest, nan, xorsign)
                        for a, b in zip(*(v.tolist() for v in lanes), strict=True)
                    ]
                    got = function(kind, *lanes, nan=nan, xorsign_abs=xorsign)
                    exact.check(got, want, *lanes)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_signs(exact, kind):
    sign = 1 << exact.layout[kind][0] - 1
    canonical = exact.layout[kind][4]

    @few
    @given(exact.tuples(kind, 2))
    def check(lanes):
        negated, absolute = [], []
        for v in lanes[0].tolist():
            if is_nan(exact.decode(kind, v)[1]):
                kept = v | 1 << 51 if kind == "f64" else canonical
                negated.append(kept)
                absolute.append(kept)
            else:
                negated.append(v ^ sign)
                absolute.append(v & ~sign)
        exact.check(nm.negate(kind, lanes[0]), negated, *lanes)
        exact.check(nm.absolute(kind, lanes[0]), absolute, *lanes)
        signed = [
            (a & sign) | (b & ~sign) for a, b in zip(*(v.tolist() for v in lanes), strict=True)
        ]
        exact.check(nm.copysign(kind, *lanes), signed, *lanes)

    check()


def test_packed_and_flushed():
    a = np.array([0x3C00_8001], np.uint32)
    b = np.array([0x4000_0000], np.uint32)
    assert nm.minimum("f16x2", a, b)[0] == 0x3C00_8001
    assert nm.maximum("f16x2", a, b)[0] == 0x4000_0000
    assert nm.minimum("f16x2", a, b, ftz=True)[0] == 0x3C00_8000
    assert nm.negate("bf16x2", a)[0] == 0xBC00_0001
    assert nm.absolute("f16x2", a, ftz=True)[0] == 0x3C00_0000
    with pytest.raises(ValueError, match=r"kind .*'tf32'"):
        nm.minimum("tf32", a, b)
