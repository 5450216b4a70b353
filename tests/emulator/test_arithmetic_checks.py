"""Integer divisions by zero, and signed overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulate import evaluate
from emulator_internals import Fault

_MIN32, _MAX32 = -(2**31), 2**31 - 1
_MIN64, _MAX64 = -(2**63), 2**63 - 1


def fail(code: str, *values: Any, **how: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        evaluate(code, *values, **how)
    evaluate(code, *values, **{name: how[name] for name in how if name == "out"})
    return caught.value


@pytest.mark.parametrize(
    ("kind", "what"), [("u32", "div"), ("s32", "div"), ("u32", "rem"), ("s32", "rem")]
)
def test_a_division_by_zero_names_its_values(kind: str, what: str) -> None:
    a, b = np.arange(10, 18, dtype="u4"), np.array([1, 2, 3, 4, 5, 0, 7, 0], "u4")
    fault = fail(f"{what}.{kind} %out, %a, %b;", a, b, check_division=True)
    name = "remainder" if what == "rem" else "division"
    assert fault.reason == f"integer {name} by zero: {what}.{kind} of 15, 0"
    assert fault.thread == (5, 0, 0)
    assert fault.line is not None


def test_wide_and_narrow_divisions() -> None:
    for size, kind in ((2, "s16"), (8, "u64"), (8, "s64")):
        a, b = np.ones(4, f"u{size}"), np.array([1, 1, 1, 0], f"u{size}")
        code = f"div.{kind} %out, %a, %b;"
        fault = fail(code, a, b, out=f"u{size}", check_division=True)
        assert fault.reason == f"integer division by zero: div.{kind} of 1, 0"


def test_a_division_whose_guard_is_false_does_not_happen() -> None:
    a, b = np.arange(8, dtype="u4"), np.arange(8, dtype="u4")
    code = "mov.u32 %out, 9; setp.ne.u32 %p0, %b, 0; @%p0 div.u32 %out, %a, %b;"
    assert evaluate(code, a, b, check_division=True).tolist() == [9, *[1] * 7]


def test_a_division_of_floats_by_zero_is_not_reported() -> None:
    a = np.ones(4, "f4").view("u4")
    out = evaluate("div.rn.f32 %out, %a, %b;", a, np.zeros(4, "u4"), check_division=True)
    assert np.isinf(out.view("f4")).all()


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("add.s32 %out, %a, %b;", (_MAX32, 1)),
        ("add.s32 %out, %a, %b;", (_MIN32, -1)),
        ("sub.s32 %out, %a, %b;", (_MIN32, 1)),
        ("mul.lo.s32 %out, %a, %b;", (65536, 32768)),
        ("mad.lo.s32 %out, %a, %b, 5;", (46341, 46341)),
        ("neg.s32 %out, %a;", (_MIN32,)),
        ("abs.s32 %out, %a;", (_MIN32,)),
        ("div.s32 %out, %a, %b;", (_MIN32, -1)),
        ("add.s64 %out, %a, %b;", (_MAX64, 1)),
        ("sub.s64 %out, %a, %b;", (_MIN64, 1)),
        ("mul.lo.s64 %out, %a, %b;", (1 << 32, 1 << 31)),
        ("neg.s64 %out, %a;", (_MIN64,)),
    ],
)
def test_signed_overflow_names_its_values(code: str, values: tuple[int, ...]) -> None:
    size = 8 if "s64" in code else 4
    arrays = [np.array([1, value, value], f"i{size}").view(f"u{size}") for value in values]
    fault = fail(code, *arrays, out=f"u{size}", check_overflow=True)
    assert fault.reason.startswith("signed integer overflow: " + code.split(maxsplit=1)[0])
    assert " of " + ", ".join(map(str, values)) in fault.reason
    assert fault.thread == (1, 0, 0)


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("add.s32 %out, %a, %b;", (_MAX32, 0)),
        ("add.u32 %out, %a, %b;", (-1, 1)),
        ("sub.s32 %out, %a, %b;", (-1, _MAX32)),
        ("mul.lo.s32 %out, %a, %b;", (-65536, 32768)),
        ("mul.lo.u32 %out, %a, %b;", (65536, 65536)),
        ("mul.hi.s32 %out, %a, %b;", (_MAX32, _MAX32)),
        ("add.sat.s32 %out, %a, %b;", (_MAX32, _MAX32)),
        ("div.s32 %out, %a, %b;", (_MIN32, 1)),
        ("mul.lo.s64 %out, %a, %b;", (-(1 << 32), 1 << 31)),
        ("add.s64 %out, %a, %b;", (_MAX64, _MIN64)),
    ],
)
def test_what_fits_is_not_reported(code: str, values: tuple[int, ...]) -> None:
    size = 8 if "s64" in code else 4
    arrays = [np.array([value], f"i{size}").view(f"u{size}") for value in values]
    checked = evaluate(code, *arrays, out=f"u{size}", check_overflow=True, check_division=True)
    assert checked == evaluate(code, *arrays, out=f"u{size}")
