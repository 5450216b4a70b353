"""Words that an H100 computed in random programs, where emulator and GPU once differed.

Either the emulator was wrong, or ptxas 13.0 compiled the program differently from the PTX ISA.
There the emulator follows PTX, and `random_ptx` avoids these instructions.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import random_ptx
from emulate import evaluate


def word(*values: int, bits: int = 32) -> np.ndarray:
    return np.array(values, f"u{bits // 8}")


# ---- the emulator was wrong


def test_zeros_are_normal_numbers() -> None:
    # Program 11, thread 8, whose %f was zero: the guarded subtraction takes place.
    code = "add.rz.f64 %out, %b, %b; testp.normal.f32 %p0, %a; @%p0 sub.rp.f64 %out, %out, %b;"
    double = word(0x41B72467C0000000, bits=64)
    for zero in (0, 0x80000000):
        assert evaluate(code, word(zero), double, out="u8") == double
    subnormal = evaluate(code, word(0x80000001), double, out="u8")
    assert subnormal == word(0x41C72467C0000000, bits=64)


def test_zeros_are_normal_numbers_in_a_guard() -> None:
    # Program 83, threads 16 and 59: zero minus itself, rounded down with .ftz, then saturated.
    code = (
        "mov.b32 %out, %b; testp.normal.f32 %p0, %a; @%p0 sub.rm.ftz.f32 %out, %a, %a; "
        "add.rp.sat.f32 %out, %a, %out;"
    )
    assert evaluate(code, word(0, 0), word(0x010A6BDB, 1)).tolist() == [0, 0]


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_which_nan_a_fused_multiply_add_of_doubles_gives(rounding: str) -> None:
    recorded = [
        (0x7FF0000000000000, 0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000000),
        (0xDA8922A6FF96E88C, 0x7FF8000000000000, 0x7FF66AD36BC560DC, 0x7FF8000000000000),
        (0x0000000000000000, 0x7FF0000000000001, 0xFFF0000000000001, 0x7FF8000000000001),
        (0x0000000000000000, 0xFFF0000000000001, 0x7FF000000C000000, 0xFFF8000000000001),
    ]
    a, b, c, result = (word(*column, bits=64) for column in zip(*recorded, strict=True))
    out = evaluate(f"fma.{rounding}.f64 %out, %a, %b, %c;", a, b, c, out="u8")
    np.testing.assert_array_equal(out, result)


# ---- ptxas was: what PTX says, and what the GPU had


@pytest.mark.parametrize(
    ("code", "a", "b", "says", "gpu"),
    [
        # Programs 78, 158 and 170: a constant position past the word gave -1 for every value.
        ("bfe.s32 %out, %a, 34, 37;", 0x0580E951, 0, 0, 0xFFFFFFFF),
        ("bfe.s32 %out, %a, 32, 17;", 0x4046BD2B, 0, 0, 0xFFFFFFFF),
        ("bfe.s32 %out, %a, 38, 36;", 0x41DD10A8, 0, 0, 0xFFFFFFFF),
        # Programs 398 and 406: a constant length lost all but five bits.
        ("bfi.b32 %out, %a, %b, 15, 39;", 2, 0xBA955DD3, 0x00015DD3, 0xBA815DD3),
        ("bfi.b32 %out, %a, %b, 11, 35;", 0xFFFFFFFB, 0x4090BDB2, 0xFFFFDDB2, 0x40909DB2),
        # Programs 13 and 227: the larger of a NaN and itself was a copy.
        ("max.f32 %out, %a, %a;", 0xFFFFFFFA, 0, 0x7FFFFFFF, 0xFFFFFFFA),
        ("min.f32 %out, %a, %a;", 0xFFFFFFFB, 0, 0x7FFFFFFF, 0xFFFFFFFB),
        # Programs 205 and 210: testp took place whatever its guard was.
        (
            (
                "setp.ne.u32 %p0, %b, %b; setp.ne.u32 %p1, %b, %b; mov.b32 %out, 0; "
                "@%p1 testp.normal.f32 %p0, %a; @%p0 sub.rp.f32 %out, 0f80000000, %b;"
            ),
            *(0xB9BF1C0F, 0xBFA4F49A, 0, 0x3FA4F49A),
        ),
    ],
)
def test_ptx_decides_where_its_compiler_erred(
    code: str, a: int, b: int, says: int, gpu: int
) -> None:
    assert says != gpu
    assert evaluate(code, word(a), word(b)) == says


def test_random_programs_leave_that_out() -> None:
    avoided = (
        r"^@!?%p\d testp",
        r"\bbfe\.[us]32 \S+ \S+ (\d{3,}|3[2-9]|[4-9]\d),",
        r"\bbf[ei]\S* .*, (\d{3,}|3[2-9]|[4-9]\d)(, \S+)?;",
        r"\b(min|max)\.\S*f\d\S* \S+ (\S+), \2;",
    )
    lines = [line for seed in range(200) for line in random_ptx.program(seed).splitlines()]
    assert len(lines) > 10000
    for pattern in avoided:
        assert not [line for line in lines if re.search(pattern, line)]
