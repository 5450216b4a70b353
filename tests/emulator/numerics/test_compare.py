"""Comparisons and tests of a property."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from emulator_internals import numerics as nm
from hypothesis import HealthCheck, given, settings

ORDER = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
few = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_floats_are_ordered_or_not(exact, kind):
    @few
    @given(exact.tuples(kind, 2))
    def check(lanes):
        pairs = [
            tuple(exact.decode(kind, int(v))[1] for v in pair) for pair in zip(*lanes, strict=False)
        ]
        nan = [any(isinstance(v, float) and math.isnan(v) for v in pair) for pair in pairs]
        for name, function in ORDER.items():
            plain = [not n and function(*p) for p, n in zip(pairs, nan, strict=True)]
            loose = [n or function(*p) for p, n in zip(pairs, nan, strict=True)]
            assert nm.compare(name, kind, *lanes).tolist() == plain
            assert nm.compare(name + "u", kind, *lanes).tolist() == loose
        assert nm.compare("nan", kind, *lanes).tolist() == nan
        assert nm.compare("num", kind, *lanes).tolist() == [not n for n in nan]

    check()


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integers_compare_with_and_without_sign(width):
    values = np.array([0, 1, (1 << width) - 1, 1 << width - 1, 5], f"u{width // 8}")
    a, b = (v.ravel() for v in np.meshgrid(values, values))
    for name, function in ORDER.items():
        assert (nm.compare(name, f"u{width}", a, b) == function(a, b)).all()
        signed = [v.view(f"i{width // 8}") for v in (a, b)]
        assert (nm.compare(name, f"s{width}", a, b) == function(*signed)).all()
    for name, same in {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.items():
        got = nm.compare(name, f"u{width}", a, b)
        assert (got == nm.compare(same, f"u{width}", a, b)).all()
    assert (nm.compare("eq", f"b{width}", a, b) == (a == b)).all()


def test_flushing_makes_subnormals_equal():
    a, b = np.array([1], np.uint32), np.array([0x80000002], np.uint32)
    assert nm.compare("gt", "f32", a, b).all()
    assert nm.compare("eq", "f32", a, b, ftz=True).all()


def test_packed_halves_give_two_predicates():
    a = np.array([0x3C00_4000], np.uint32)  # high 1, low 2
    b = np.array([0x4000_3C00], np.uint32)
    assert nm.compare("lt", "f16x2", a, b).tolist() == [[False, True]]
    assert nm.compare("lt", "bf16x2", a, b[:1]).shape == (1, 2)


def test_properties():
    tests = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
    cases = {
        0x00000000: ["finite", "number", "normal"],
        0x80000001: ["finite", "number", "subnormal"],
        0x3F800000: ["finite", "number", "normal"],
        0xFF800000: ["infinite", "number"],
        0x7F800001: ["notanumber"],
    }
    for bits, true in cases.items():
        lane = np.array([bits], np.uint32)
        assert [t for t in tests if nm.testp("f32", t, lane)[0]] == true
    assert nm.testp("f64", "subnormal", np.array([1], np.uint64))[0]


def test_unknown_types_are_named():
    with pytest.raises(ValueError, match=r"kind .*'x32'"):
        nm.compare("eq", "x32", np.zeros(1, np.uint32), np.zeros(1, np.uint32))
