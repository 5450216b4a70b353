"""Each instruction that writes a register has a line: its results against another computation.

An instruction without a line fails the last test, so a new one cannot go untested. The depth is
elsewhere (all types, modifiers, rounding, guards): here each is computed once, in Python's integers
and floats, for words at every edge. One result that is one too large is enough to fail.
"""

from __future__ import annotations

import math
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from emulate import evaluate, launch
from emulator_internals import INSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

M = 2**32 - 1
EDGES = [0, 1, 2, 3, 5, 7, 8, 15, 31, 32, 33, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF, 0x12345678,
         0x7FFFFFFF, 0x80000000, 0x80000001, 0xDEADBEEF, 0xFFFFFFFE, 0xFFFFFFFF]  # fmt: skip
A, B = (np.array(side, "u4").reshape(-1) for side in np.meshgrid(EDGES, EDGES))
C = np.random.default_rng(3).permutation(A)
FLOATS = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.0, 3.1415927, -2.75, 1e-3, 7.0, 100.25, -31.0, 4096.0], "f4"
)
X, Y = (np.array(side, "f4").reshape(-1) for side in np.meshgrid(FLOATS, FLOATS))
Z = np.random.default_rng(5).permutation(X)


def s(x: int, bits: int = 32) -> int:
    """Read the low bits as a signed number."""
    x &= (1 << bits) - 1
    return x - (x >> (bits - 1) << bits)


def parts(x: int, bits: int, sign: bool = False) -> list[int]:
    """Split a word into its bytes or halves, the lowest first."""
    cut = [x >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [s(one, bits) for one in cut] if sign else cut


def by_part(bits: int, what: Callable[[int, int], int], sign: bool = False) -> Callable[..., int]:
    """Make an oracle of a video instruction, without saturation."""

    def oracle(a: int, b: int, c: int) -> int:
        pairs = zip(parts(a, bits, sign), parts(b, bits, sign), strict=True)
        return sum((what(*p) & ((1 << bits) - 1)) << bits * i for i, p in enumerate(pairs))

    return oracle


def nth_set(mask: int, base: int, offset: int) -> int:
    """Find the n-th set bit from a base, as the manual's text has it."""
    if offset == 0:
        return base if mask >> base & 1 else M
    step = 1 if offset > 0 else -1
    left = abs(offset)
    at = base
    while 0 <= at < 32:
        left -= mask >> at & 1
        if left == 0:
            return at
        at += step
    return M


def permuted(a: int, b: int, select: int) -> int:
    """Pick four of the eight bytes, or of each the sign eight times."""
    pool = (b << 32 | a).to_bytes(8, "little")
    out = 0
    for i in range(4):
        nibble = select >> 4 * i & 15
        byte = pool[nibble & 7]
        out |= ((0xFF if byte >> 7 else 0) if nibble & 8 else byte) << 8 * i
    return out


def field(a: int, at: int, length: int) -> int:
    """Extract a signed bit field: past the top its sign goes on."""
    at, length = at & 255, length & 255
    if length == 0:
        return 0
    sign = s(a) >> min(at + length - 1, 31) & 1
    value = a >> at & ((1 << length) - 1)
    return value | (M << min(length, max(32 - at, 0)) if sign else 0)


def inserted(a: int, b: int, at: int, length: int) -> int:
    mask = ((1 << length) - 1 << at) & M
    return b & ~mask | a << at & mask


# One line for each instruction on 32-bit words: `%out` from `%a`, `%b` and `%c`.
WORDS: dict[str, Callable[[int, int, int], int]] = {
    "rem.u32 %out, %a, %b;": lambda a, b, c: a % b if b else a,
    "div.u32 %out, %a, %b;": lambda a, b, c: a // b if b else M,
    "sad.u32 %out, %a, %b, %c;": lambda a, b, c: abs(a - b) + c,
    "mul24.lo.u32 %out, %a, %b;": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "mad24.lo.u32 %out, %a, %b, %c;": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "dp4a.u32.u32 %out, %a, %b, %c;": lambda a, b, c: (
        sum(x * y for x, y in zip(parts(a, 8), parts(b, 8), strict=True)) + c
    ),
    "dp2a.lo.u32.u32 %out, %a, %b, %c;": lambda a, b, c: (
        sum(x * y for x, y in zip(parts(a, 16), parts(b, 8)[:2], strict=True)) + c
    ),
    "add.cc.u32 %r1, %a, %b; addc.u32 %out, %c, 0;": lambda a, b, c: c + (a + b > M),
    "sub.cc.u32 %r1, %a, %b; subc.u32 %out, %c, 0;": lambda a, b, c: c - (a < b),
    "add.cc.u32 %r1, %a, %b; madc.lo.u32 %out, %a, %b, %c;": lambda a, b, c: (
        a * b + c + (a + b > M)
    ),
    "and.b32 %out, %a, %b;": lambda a, b, c: a & b,
    "or.b32 %out, %a, %b;": lambda a, b, c: a | b,
    "xor.b32 %out, %a, %b;": lambda a, b, c: a ^ b,
    "not.b32 %out, %a;": lambda a, b, c: ~a,
    "cnot.b32 %out, %a;": lambda a, b, c: int(a == 0),
    "lop3.b32 %out, %a, %b, %c, 0xE8;": lambda a, b, c: a & b | a & c | b & c,
    "shl.b32 %out, %a, %b;": lambda a, b, c: a << min(b, 32),
    "shr.s32 %out, %a, %b;": lambda a, b, c: s(a) >> min(b, 32),
    "shf.l.wrap.b32 %out, %a, %b, %c;": lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32,
    "popc.b32 %out, %a;": lambda a, b, c: a.bit_count(),
    "clz.b32 %out, %a;": lambda a, b, c: 32 - a.bit_length(),
    "brev.b32 %out, %a;": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "bfind.u32 %out, %a;": lambda a, b, c: a.bit_length() - 1,
    "and.b32 %r1, %b, 31; bfe.u32 %r2, %c, 0, 3; fns.b32 %out, %a, %r1, %r2;": lambda a, b, c: (
        nth_set(a, b & 31, c & 7)
    ),
    "bfe.s32 %out, %a, %b, %c;": lambda a, b, c: field(a, b, c),
    "bfi.b32 %out, %a, %b, 4, 9;": lambda a, b, c: inserted(a, b, 4, 9),
    "bmsk.clamp.b32 %out, %a, %b;": lambda a, b, c: ((1 << min(b, 32)) - 1) << min(a, 32),
    "szext.wrap.u32 %out, %a, %b;": lambda a, b, c: a & ((1 << (b & 31)) - 1),
    "prmt.b32 %out, %a, %b, %c;": permuted,
    "set.lt.u32.u32 %out, %a, %b;": lambda a, b, c: M if a < b else 0,
    "setp.lt.s32 %p1, %a, %b; selp.b32 %out, %c, 7, %p1;": lambda a, b, c: c if s(a) < s(b) else 7,
    "slct.b32.s32 %out, %a, %b, %c;": lambda a, b, c: a if s(c) >= 0 else b,
    "cvt.s8.u32 %h1, %a; cvt.s32.s16 %out, %h1;": lambda a, b, c: s(a, 8),
    "cvt.sat.u8.s32 %out, %a;": lambda a, b, c: min(max(s(a), 0), 255),
    "cvta.shared.u64 %d1, box; cvta.to.shared.u64 %d2, %d1; mov.u64 %d3, box;"
    "sub.u64 %d2, %d2, %d3; cvt.u32.u64 %out, %d2;": lambda a, b, c: 0,
    "cvta.shared.u64 %d1, box; isspacep.shared %p1, %d1; selp.u32 %out, %a, %b, %p1;": (
        lambda a, b, c: a
    ),
    "mov.b32 %out, %a;": lambda a, b, c: a,
    "ld.param.u64 %d1, [in_b]; mad.wide.u32 %d1, %i, 4, %d1; ldu.global.u32 %out, [%d1];": (
        lambda a, b, c: b
    ),
    "mov.u32 %r1, box; mapa.shared::cluster.u32 %r2, %r1, 2;"
    "getctarank.shared::cluster.u32 %r2, %r2; add.u32 %out, %a, %r2;": lambda a, b, c: a + 2,
    "mov.u32 %r1, box; getctarank.shared::cluster.u32 %r2, %r1; add.u32 %out, %a, %r2;": (
        lambda a, b, c: a
    ),
    "add.u32 %out, %a, %b;": lambda a, b, c: a + b,
    "sub.u32 %out, %a, %b;": lambda a, b, c: a - b,
    "mul.hi.s32 %out, %a, %b;": lambda a, b, c: s(a) * s(b) >> 32,
    "mad.lo.u32 %out, %a, %b, %c;": lambda a, b, c: a * b + c,
    "min.s32 %out, %a, %b;": lambda a, b, c: min(s(a), s(b)),
    "max.u32 %out, %a, %b;": lambda a, b, c: max(a, b),
    "abs.s32 %out, %a;": lambda a, b, c: abs(s(a)),
    "neg.s32 %out, %a;": lambda a, b, c: -s(a),
    **{
        f"v{name}{count}.{sign}32.{sign}32.{sign}32 %out, %a, %b, %c;": by_part(
            32 // count, what, sign == "s"
        )
        for count in (2, 4)
        for name, sign, what in (
            ("add", "u", lambda x, y: x + y),
            ("sub", "u", lambda x, y: x - y),
            ("min", "s", min),
            ("max", "u", max),
            ("absdiff", "u", lambda x, y: abs(x - y)),
            ("avrg", "u", lambda x, y: (x + y + 1) >> 1),
        )
    },
    "vset2.u32.u32.lt %out, %a, %b, %c;": by_part(16, lambda x, y: int(x < y)),
    "vset4.u32.u32.lt %out, %a, %b, %c;": by_part(8, lambda x, y: int(x < y)),
}


def name_of(line: str) -> set[str]:
    return {one.split(".")[0].split()[0] for one in line.replace("@%p1", "").split(";") if one}


@pytest.mark.parametrize("line", WORDS)
def test_words(line: str) -> None:
    got = evaluate(line, A, B, C)
    rows = zip(A.tolist(), B.tolist(), C.tolist(), strict=True)
    expected = np.array([WORDS[line](*row) & M for row in rows], "u4")
    np.testing.assert_array_equal(got, expected)


def single(x: float) -> float:
    """Round to float32, as hardware does."""
    return struct.unpack("f", struct.pack("f", x))[0]


def half(x: float) -> float:
    """Round to float16."""
    return float(np.float16(x))


def bfloat16(x: float) -> float:
    """Round to bfloat16: to the nearest, ties to even."""
    bits = int(np.float32(x).view("u4"))
    bits += 0x7FFF + (bits >> 16 & 1)
    return float(np.uint32(bits & 0xFFFF0000).view("f4"))


def toward_zero(x: float) -> float:
    """Round to float32, toward zero."""
    near = np.float32(x)
    return float(np.nextafter(near, np.float32(0)) if abs(float(near)) > abs(x) else near)


# The same for float32. The number behind is how far the result may be, relative to the exact one:
# 0 where PTX rounds correctly, the manual's bound for what it approximates.
SINGLES: dict[str, tuple[Callable[[float, float, float], float], float]] = {
    "add.rn.f32 %out, %a, %b;": (lambda x, y, z: single(x + y), 0),
    "fma.rn.f32 %out, %a, %b, %c;": (
        lambda x, y, z: float(np.float32(np.longdouble(x) * y + np.longdouble(z))), 0
    ),
    "rcp.rn.f32 %out, %a;": (lambda x, y, z: single(1 / x) if x else math.copysign(math.inf, x), 0),
    "abs.f32 %r1, %a; sqrt.rn.f32 %out, %r1;": (lambda x, y, z: single(math.sqrt(abs(x))), 0),
    "copysign.f32 %out, %a, %b;": (lambda x, y, z: math.copysign(y, x), 0),
    "testp.finite.f32 %p1, %a; selp.f32 %out, %a, %b, %p1;": (lambda x, y, z: x, 0),
    "neg.f32 %out, %a;": (lambda x, y, z: -x, 0),
    "abs.f32 %r1, %a; add.f32 %r1, %r1, 0f3F000000; rsqrt.approx.f32 %out, %r1;": (
        lambda x, y, z: 1 / math.sqrt(abs(x) + 0.5), 2**-22
    ),
    "min.f32 %r1, %a, 0f41F00000; ex2.approx.f32 %out, %r1;": (
        lambda x, y, z: 2.0 ** min(x, 30.0), 2**-21
    ),
    "abs.f32 %r1, %a; add.f32 %r1, %r1, 0f40400000; lg2.approx.f32 %out, %r1;": (
        lambda x, y, z: math.log2(single(abs(x) + 3.0)), 2**-20
    ),
    "min.f32 %r1, %a, 0f3F800000; max.f32 %r1, %r1, 0fBF800000; sin.approx.f32 %out, %r1;": (
        lambda x, y, z: math.sin(max(min(x, 1.0), -1.0)), 2**-19
    ),
    "min.f32 %r1, %a, 0f3F800000; max.f32 %r1, %r1, 0fBF800000; cos.approx.f32 %out, %r1;": (
        lambda x, y, z: math.cos(max(min(x, 1.0), -1.0)), 2**-19
    ),
    "tanh.approx.f32 %out, %a;": (lambda x, y, z: math.tanh(x), 2**-10),
    "mov.b64 %d1, {%a, %b}; mov.b64 %d2, {%c, %a}; sub.rn.f32x2 %d1, %d1, %d2;"
    "mov.b64 {%r1, %out}, %d1;": (lambda x, y, z: single(y - x), 0),
    "mov.b64 %d1, {%a, %b}; mov.b64 %d2, {%c, %a}; mul.rn.f32x2 %d1, %d1, %d2;"
    "mov.b64 {%out, %r1}, %d1;": (lambda x, y, z: single(x * z), 0),
    "cvt.rn.bf16.f32 %h1, %a; sub.rz.f32.bf16 %out, %h1, %b;": (
        lambda x, y, z: toward_zero(bfloat16(x) - y), 0
    ),
    "cvt.rn.f16.f32 %h1, %a; cvt.rn.f16.f32 %h2, %b; fma.rn.f32.f16 %out, %h1, %h2, %c;": (
        lambda x, y, z: single(half(x) * half(y) + z), 0
    ),
    "min.f32 %out, %a, %b, %c;": (  # -0 is less than +0
        lambda x, y, z: min(x, y, z, key=lambda v: (v, math.copysign(1, v))), 0
    ),
    "max.xorsign.abs.f32 %out, %a, %b, %c;": (
        lambda x, y, z: math.copysign(max(map(abs, (x, y, z))), math.copysign(1, x)
        * math.copysign(1, y) * math.copysign(1, z)), 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", SINGLES)
def test_singles(line: str) -> None:
    oracle, bound = SINGLES[line]
    got = evaluate(line, X, Y, Z, out="f4").astype("f8")
    rows = zip(X.tolist(), Y.tolist(), Z.tolist(), strict=True)
    expected = np.array([oracle(*row) for row in rows])
    if bound == 0:
        np.testing.assert_array_equal(got.astype("f4").view("u4"), expected.astype("f4").view("u4"))
    else:
        np.testing.assert_allclose(got, expected, rtol=bound, atol=bound * 2**-3)


W = np.array([(i * 0x9E3779B1 + 17) & M for i in range(32)], "u4")
ODD = sum(1 << i for i in range(32) if W[i] & 1)
# Results that a whole warp computes together, from the word of each lane.
WARPS: dict[str, Callable[[list[int]], list[int]]] = {
    "shfl.sync.bfly.b32 %out, %a, 5, 31, -1;": lambda w: [w[i ^ 5] for i in range(32)],
    "and.b32 %r1, %a, 1; setp.ne.u32 %p1, %r1, 0; vote.sync.ballot.b32 %out, %p1, -1;": (
        lambda w: [ODD] * 32
    ),
    "and.b32 %r1, %a, 3; match.any.sync.b32 %out, %r1, -1;": lambda w: [
        sum(1 << j for j in range(32) if w[j] & 3 == x & 3) for x in w
    ],
    "redux.sync.add.u32 %out, %a, -1;": lambda w: [sum(w)] * 32,
    "and.b32 %r1, %a, 1; setp.ne.u32 %p1, %r1, 0; bar.red.popc.u32 %out, 0, %p1;": (
        lambda w: [ODD.bit_count()] * 32
    ),
    "and.b32 %r1, %a, 1; setp.ne.u32 %p1, %r1, 0; barrier.red.or.pred %p1, 0, %p1;"
    "selp.u32 %out, 3, 4, %p1;": lambda w: [3] * 32,
    "activemask.b32 %out;": lambda w: [M] * 32,
    "elect.sync %out|%p1, -1; selp.u32 %r1, 256, 0, %p1; add.u32 %out, %out, %r1;": lambda w: [
        256 if i == 0 else 0 for i in range(32)
    ],
    # The word of lane 4i + j is elements 2j and 2j + 1 of row i of eight by eight halves.
    "movmatrix.sync.aligned.m8n8.trans.b16 %out, %a;": lambda w: [
        sum(
            (w[4 * (2 * (lane % 4) + half) + lane // 8] >> 16 * (lane // 4 % 2) & 0xFFFF)
            << 16 * half
            for half in (0, 1)
        )
        for lane in range(32)
    ],
}


def of_warp(line: str, words: np.ndarray) -> np.ndarray:
    result = np.zeros(32, "u4")
    launch(
        ".version 8.6 .target sm_90 .address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 result) {\n"
        ".reg .b64 %at, %d<4>; .reg .b32 %i, %a, %out, %r<4>; .reg .pred %p<2>;\n"
        "mov.u32 %i, %tid.x; ld.param.u64 %at, [in]; mad.wide.u32 %at, %i, 4, %at;\n"
        f"ld.global.b32 %a, [%at]; {line}\n"
        "ld.param.u64 %at, [result]; mad.wide.u32 %at, %i, 4, %at; st.global.b32 [%at], %out; }",
        "k",
        words,
        result,
    )
    return result


@pytest.mark.parametrize("line", WARPS)
def test_warps(line: str) -> None:
    assert of_warp(line, W).tolist() == [x & M for x in WARPS[line](W.tolist())]


@pytest.mark.parametrize(
    ("form", "mask", "expected"),
    [
        ("min", -1, -9.5), ("max", -1, 7.25), ("max.abs", -1, 9.5), ("min.abs", -1, 0.5),
        ("min", 14, -1.0), ("max.NaN", 14, 2.0), ("min.NaN", 14, -1.0), ("max.abs.NaN", 14, 2.0),
        ("min.NaN", -1, None), ("max.abs.NaN", 1, None), ("min", 1, None), ("min.abs.NaN", 8, 0.5),
    ],
)  # fmt: skip
def test_extremes_of_floats_in_a_warp(form: str, mask: int, expected: float | None) -> None:
    """Lane 0 has a NaN, lanes 1 to 3 have -1, 2 and 0.5."""
    lanes = np.array([np.nan, -1, 2, 0.5, -9.5, *[1.0] * 26, 7.25], "f4")
    skip = f"and.b32 %r1, %i, 31; shl.b32 %r1, 1, %r1; and.b32 %r1, %r1, {mask};"
    got = of_warp(
        f"{skip} setp.ne.u32 %p1, %r1, 0; mov.b32 %out, 0;"
        f"@%p1 redux.sync.{form}.f32 %out, %a, {mask};",
        lanes.view("u4"),
    )
    word = 0x7FFFFFFF if expected is None else int(np.float32(expected).view("u4"))
    assert got.tolist() == [word if mask >> lane & 1 else 0 for lane in range(32)]


# A policy's word is the hardware's own: it says nothing that a program could compare.
OPAQUE = {"createpolicy"}
# Where the results of these stand against another computation: they move memory, wait for others,
# or multiply matrices, and a line says too little of them.
ELSEWHERE = {
    "atom": "test_data_instructions.py",
    "clusterlaunchcontrol": "test_cluster_launch_control.py",
    "istypep": "test_textures.py",
    "ldmatrix": "matrix/test_ldmatrix.py",
    "mbarrier": "test_data_instructions.py",
    "mma": "matrix/test_mma.py",
    "suld": "test_surfaces.py",
    "suq": "test_surfaces.py",
    "tex": "test_textures.py",
    "tld4": "test_textures.py",
    "txq": "test_textures.py",
    "wgmma": "matrix/test_wgmma.py",
    "tcgen05": "matrix/test_tcgen05.py",
    "wmma": "matrix/test_wmma.py",
}


def test_every_instruction_that_writes_a_register_has_a_line() -> None:
    tables: list[dict[str, Any]] = [WORDS, SINGLES, WARPS]
    named = set().union(*(name_of(line) for table in tables for line in table))
    missing = [
        name
        for name in INSTRUCTIONS
        if writes(name) and name not in named | set(ELSEWHERE) | OPAQUE
    ]
    assert missing == []


def writes(name: str) -> bool:
    """Say whether an instruction may write a register: one that looks at its form first may."""
    known = INSTRUCTIONS[name]
    if known.decode is None:
        return False
    try:
        return known.results(None) > 0  # type: ignore[arg-type]
    except AttributeError:
        return True


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_stands_elsewhere_is_there(name: str) -> None:
    text = Path(__file__).parent.joinpath(ELSEWHERE[name]).read_text()
    assert re.search(rf"\b{name}[._]", text)
