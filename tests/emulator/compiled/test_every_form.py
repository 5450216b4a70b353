"""Every instruction that the compiled engine takes gives the bits that the NumPy engine gives.

The C code comes from the decoders themselves. These tests check how NumPy's operations are said in
C, with numbers at every edge of every type, in every form that compilers emit.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from emulate import image_of, pack
from emulator_internals import INSTRUCTIONS, Device, compiled_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.needs("gcc")

THREADS = 2048
WIDTHS = {"h": 16, "r": 32, "d": 64, "p": 1}
INTEGERS = {"u16": "h", "s16": "h", "u32": "r", "s32": "r", "u64": "d", "s64": "d"}
FLOATS = {"f16": "h", "bf16": "h", "f16x2": "r", "bf16x2": "r", "f32": "r", "f64": "d"}
BITS = {"b16": "h", "b32": "r", "b64": "d"}


def forms() -> Iterator[str]:
    """Give lines with the registers' kinds in place of registers: ``add.u32 r, r, r``."""
    for kind, x in INTEGERS.items():
        for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem"):
            yield f"{name}.{kind} {x}, {x}, {x}"
        yield f"mad.lo.{kind} {x}, {x}, {x}, {x}"
        yield f"sad.{kind} {x}, {x}, {x}, {x}"
        yield f"shr.{kind} {x}, {x}, r"
        for operator in ("eq", "ne", "lt", "le", "gt", "ge"):
            yield f"setp.{operator}.{kind} p, {x}, {x}"
        if kind[1:] != "64":
            yield f"mul.wide.{kind} {'r' if x == 'h' else 'd'}, {x}, {x}"
        if kind[0] == "s":
            yield f"abs.{kind} {x}, {x}"
            yield f"neg.{kind} {x}, {x}"
        if x != "h":
            yield f"bfe.{kind} {x}, {x}, r, r"
            yield f"bfind.{kind} r, {x}"
            yield f"bfind.shiftamt.{kind} r, {x}"
        for other, y in INTEGERS.items():
            yield f"cvt.{kind}.{other} {x}, {y}"
            yield f"cvt.sat.{kind}.{other} {x}, {y}"
        for source, y in (("f16", "h"), ("f32", "r"), ("f64", "d")):
            for rounding in ("rni", "rzi", "rmi", "rpi"):
                yield f"cvt.{rounding}.{kind}.{source} {x}, {y}"
        for rounding in ("rn", "rz", "rm", "rp"):
            yield f"cvt.{rounding}.f32.{kind} r, {x}"
            yield f"cvt.{rounding}.f64.{kind} d, {x}"
        yield f"cvt.rn.f16.{kind} h, {x}"
    for kind, x in BITS.items():
        for name in ("and", "or", "xor"):
            yield f"{name}.{kind} {x}, {x}, {x}"
        yield f"not.{kind} {x}, {x}"
        yield f"cnot.{kind} {x}, {x}"
        yield f"shl.{kind} {x}, {x}, r"
        yield f"selp.{kind} {x}, {x}, {x}, p"
        yield f"mov.{kind} {x}, {x}"
        if x != "h":
            yield f"popc.{kind} r, {x}"
            yield f"clz.{kind} r, {x}"
            yield f"brev.{kind} {x}, {x}"
            yield f"bfi.{kind} {x}, {x}, {x}, r, r"
        yield f"slct.{kind}.s32 {x}, {x}, {x}, r"
        yield f"slct.{kind}.f32 {x}, {x}, {x}, r"
    for table in (0x96, 0xE8, 0x1B, 0xFE, 0x80, 0x0F):
        yield f"lop3.b32 r, r, r, r, {table:#x}"
    for selection in ("0x7531", "0x3715", "0x89ab", "r"):
        yield f"prmt.b32 r, r, r, {selection}"
    for side, mode in itertools.product("lr", ("wrap", "clamp")):
        yield f"shf.{side}.{mode}.b32 r, r, r, r"
    for mode in ("wrap", "clamp"):
        yield f"bmsk.{mode}.b32 r, r, r"
        yield f"szext.{mode}.s32 r, r, r"
        yield f"szext.{mode}.u32 r, r, r"
    for half, sign in itertools.product(("lo", "hi"), ("u32", "s32")):
        yield f"mul24.{half}.{sign} r, r, r"
        yield f"mad24.{half}.{sign} r, r, r, r"
        yield f"dp2a.{half}.{sign}.u32 r, r, r, r"
    for a, b in itertools.product(("u32", "s32"), repeat=2):
        yield f"dp4a.{a}.{b} r, r, r, r"
    yield "add.sat.s32 r, r, r"
    yield "sub.sat.s32 r, r, r"
    yield "mad.hi.sat.s32 r, r, r, r"
    yield from ("add.cc.u32 r, r, r", "addc.cc.u32 r, r, r", "madc.hi.u32 r, r, r, r")
    yield from ("sub.cc.u64 d, d, d", "subc.cc.u64 d, d, d", "mad.lo.cc.u32 r, r, r, r")
    yield from ("cvta.shared.u64 d, d", "cvta.to.local.u64 d, d", "isspacep.shared p, d")
    yield from ("mov.b64 d, {r, r}", "mov.b64 {r, r}, d", "mov.b32 {h, h}, r", "mov.b32 r, {h, h}")
    yield "mapa.shared::cluster.u32 r, r, r"
    yield "createpolicy.fractional.L2::evict_last.b64 d, 0.5"
    for kind, x in FLOATS.items():
        half = kind not in ("f32", "f64")
        for name in ("add", "sub", "mul"):
            yield f"{name}.{kind} {x}, {x}, {x}"
        yield f"fma.rn.{kind} {x}, {x}, {x}, {x}"
        for name in ("min", "max"):
            yield f"{name}.{kind} {x}, {x}, {x}"
        yield f"abs.{kind} {x}, {x}"
        yield f"neg.{kind} {x}, {x}"
        if half:
            yield f"fma.rn.relu.{kind} {x}, {x}, {x}, {x}"
            yield f"min.NaN.{kind} {x}, {x}, {x}"
            yield f"ex2.approx.{'ftz.' * kind.startswith('b')}{kind} {x}, {x}"
            yield f"tanh.approx.{kind} {x}, {x}"
            continue
        for rounding in ("rz", "rm", "rp"):
            yield f"add.{rounding}.{kind} {x}, {x}, {x}"
            if kind == "f32":  # of f64, extreme numbers are the NumPy engine's: see test_engine.py
                yield f"mul.{rounding}.{kind} {x}, {x}, {x}"
        for name in ("rcp", "sqrt"):
            yield f"{name}.rn.{kind} {x}, {x}"
        yield f"div.rn.{kind} {x}, {x}, {x}"
        yield f"copysign.{kind} {x}, {x}, {x}"
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield f"testp.{test}.{kind} p, {x}"
        yield f"rsqrt.approx.{kind} {x}, {x}"
    for kind, x in (("f16", "h"), ("f32", "r"), ("f64", "d")):
        for operator in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "num", "nan"):
            yield f"setp.{operator}.{kind} p, {x}, {x}"
        for rounding in ("rni", "rzi", "rmi", "rpi"):
            yield f"cvt.{rounding}.{kind}.{kind} {x}, {x}"
    for flag in ("ftz", "sat", "ftz.sat"):
        for name in ("add", "sub", "mul", "fma.rn"):
            yield f"{name}.{flag}.f32 r, r, r{', r' * (name == 'fma.rn')}"
    for name in ("add", "sub.rz", "mul.ftz", "fma.rn", "fma.rm.ftz"):
        yield f"{name}.f32x2 d, d, d{', d' * name.startswith('fma')}"
    for kind in ("f16", "bf16"):
        yield from (f"add.f32.{kind} r, h, r", f"sub.rm.sat.f32.{kind} r, h, r")
        yield f"fma.rn.f32.{kind} r, h, h, r"
    for name in ("min", "max.ftz.NaN", "max.xorsign.abs"):
        yield f"{name}.f32 r, r, r, r"
    for rounding in ("rz", "rm", "rp"):
        yield f"fma.{rounding}.f32 r, r, r, r"
        yield f"div.{rounding}.f32 r, r, r"
        yield f"sqrt.{rounding}.f32 r, r"
    for name in ("ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt"):
        yield f"{name}.approx.f32 r, r"
        yield f"{name}.approx.ftz.f32 r, r"
    yield from ("tanh.approx.f32 r, r", "div.approx.f32 r, r, r", "div.full.ftz.f32 r, r, r")
    yield from ("rcp.approx.ftz.f64 d, d", "rsqrt.approx.ftz.f64 d, d")
    yield from ("setp.lt.ftz.f32 p, r, r", "setp.ne.and.u32 p, r, r, p", "set.lt.u32.f32 r, r, r")
    yield from ("set.gt.f32.s32 r, r, r", "min.ftz.f32 r, r, r", "max.NaN.f32 r, r, r")
    yield from ("min.relu.s32 r, r, r", "max.xorsign.abs.f32 r, r, r")
    for wide, x in (("f32", "r"), ("f64", "d")):
        yield f"cvt.{wide}.f16 {x}, h"
        for rounding in ("rn", "rz", "rm", "rp"):
            yield f"cvt.{rounding}.f16.{wide} h, {x}"
    yield from ("cvt.f64.f32 d, r", "cvt.rn.f32.f64 r, d", "cvt.rm.f32.f64 r, d")
    yield from ("cvt.f32.bf16 r, h", "cvt.rn.bf16.f32 h, r", "cvt.rz.bf16.f32 h, r")
    yield from ("cvt.rna.tf32.f32 r, r", "cvt.rn.f16x2.f32 r, r, r", "cvt.rn.bf16x2.f32 r, r, r")
    yield from ("cvt.rn.relu.f16x2.f32 r, r, r", "cvt.ftz.sat.f32.f32 r, r")


FORMS = list(forms())
# These take tables or search bit by bit: the NumPy engine runs kernels that have them.
REFUSED = {"fns", "getctarank"} | {name for name in INSTRUCTIONS if name[0] == "v"}


LOADS = """
    ld.global.u64 %da, [%from]; ld.global.u64 %db, [%from+8]; ld.global.u64 %dc, [%from+16];
    cvt.u32.u64 %ra, %da; cvt.u32.u64 %rb, %db; cvt.u32.u64 %rc, %dc;
    cvt.u16.u64 %ha, %da; cvt.u16.u64 %hb, %db; cvt.u16.u64 %hc, %dc;
    setp.gt.s64 %pa, %da, %db; setp.gt.s64 %pb, %db, %dc; setp.gt.s64 %pc, %dc, %da;
"""
# Compiled code computes once for a group what is uniform there, or grows from thread to thread.
SOURCES = {
    "own numbers": "mad.wide.u32 %from, %i, 24, %in;" + LOADS,
    "uniform numbers": "mad.wide.u32 %from, %first, 24, %in;" + LOADS,
    "indices": """
        mad.lo.s32 %ra, %i, 3, 5; mad.lo.s32 %rb, %block, 999, %i; add.u32 %rc, %block, 7;
        mul.wide.u32 %da, %ra, 77; cvt.s64.s32 %db, %rb; cvt.u64.u32 %dc, %rc;
        cvt.u16.u32 %ha, %ra; mov.b16 %hb, 12345; cvt.u16.u32 %hc, %rc;
        setp.gt.s32 %pa, %ra, 99; setp.gt.s32 %pb, %rc, 1; setp.eq.s32 %pc, %rc, 9;
    """,
}


def kernel(lines: list[str], source: str) -> tuple[str, int]:
    """Return PTX that runs each line on numbers of a source, and the bytes of its results."""
    code, at = [], 0
    for line in lines:
        name, _, operands = line.partition(" ")
        kinds = [word.strip("{} ") for word in operands.split(",")]
        results = _results(line)
        reads = iter(["a", "b", "c", "a"] * 2)
        named = []
        for i, kind in enumerate(kinds):
            if kind not in WIDTHS:
                named.append(kind)
            else:
                named.append(f"%{kind}{f'o{at // 8 + i}' if i < results else next(reads)}")
        if "{" in operands:
            cut = results if results == 2 else 1
            parts = [named[:cut], named[cut:]]
            shown = ["{" + ", ".join(p) + "}" if len(p) > 1 else p[0] for p in parts]
            code.append(f"{name} {', '.join(shown)};")
        else:
            code.append(f"{name} {', '.join(named)};")
        for i in range(results):
            kind, number = kinds[i], at // 8
            if kind == "p":
                code.append(f"selp.b32 %ro{number}, 1, 0, %po{number};")
                kind = "r"
            code.append(f"st.global.b{WIDTHS[kind]} [%at+{at}], %{kind}o{number};")
            at += 8
    return (
        f"""
        .version 8.7
        .target sm_90
        .address_size 64
        .visible .entry k(.param .u64 result, .param .u64 input) {{
        .reg .pred %pa, %pb, %pc, %po<99>; .reg .b32 %i, %block, %first, %t, %ra, %rb, %rc, %ro<99>;
        .reg .b16 %ha, %hb, %hc, %ho<99>; .reg .b64 %in, %out, %from, %at, %da, %db, %dc, %do<99>;
        mov.u32 %block, %ctaid.x; shl.b32 %first, %block, 6; mov.u32 %t, %tid.x;
        add.u32 %i, %first, %t; ld.param.u64 %in, [input]; ld.param.u64 %out, [result];
        mad.wide.u32 %at, %i, {at}, %out;
        {SOURCES[source]}
        """
        + "\n".join(code)
        + "\nret;\n}",
        at,
    )


def _results(line: str) -> int:
    return 2 if line.partition(" ")[2].startswith("{") else 1


def numbers() -> np.ndarray:
    """Return words with the edges of every type, and random ones."""
    random = np.random.default_rng(1)
    edges: list[int] = []
    for width, kinds in ((16, ("f2",)), (32, ("f4",)), (64, ("f8",))):
        values = [0, 1, 2, 5, 31, 32, 33, (1 << width) - 1, 1 << width - 1, (1 << width - 1) - 1]
        for kind in kinds:
            info = np.finfo(kind)
            floats = [1, -1, 0.5, 1.5, 2.5, -2.5, 3.0000001, 65504, 2147483648.0]
            floats += [np.inf, -np.inf, np.nan, info.max, info.tiny, -info.tiny]
            floats += [info.smallest_subnormal]
            with np.errstate(over="ignore"):
                values += np.array(floats).astype(kind).view(f"u{width // 8}").tolist()
        if width == 16:
            values += [0x7F80, 0xFF80, 0x7F81, 0x3F80, 0x0001, 0x0080]  # bf16
        repeat = sum(1 << at for at in range(0, 64, width))
        edges += [value * repeat for value in values]
    pool = np.array(edges, "u8")
    words = random.choice(pool, (THREADS, 3))
    # A third of the words is random, and a third has exponents in which results are normal.
    wild = random.integers(0, 1 << 63, (THREADS, 3), dtype="u8") * 2 + 1
    tame = random.standard_normal((THREADS, 6)).astype("f4").view("u8")
    which = random.integers(0, 3, (THREADS, 3))
    return np.ascontiguousarray(np.where(which == 0, words, np.where(which == 1, wild, tame)))


@pytest.mark.sweep(7)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("start", range(0, len(FORMS), 48))
def test_both_engines_give_the_same_bits(
    start: int, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source != "own numbers":  # whose code is compiled as users have it
        monkeypatch.setenv("CC", "cc -O1")
    lines = FORMS[start : start + 48]
    ptx, size = kernel(lines, source)
    words = numbers()
    found = {}
    for engine in ("numpy", "compiled"):
        monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
        result = np.zeros((THREADS, size // 8), "u8")
        device = Device("sm_90")
        module = device.load(image_of(ptx))
        device.launch(
            module,
            "k",
            pack(module.image, "k", (result, words)),
            (THREADS // 64,),
            (64,),
            ranges=[(x.ctypes.data, x.nbytes) for x in (result, words)],
        )
        found[engine] = result
    state = compiled_kernel(module.code("k"))
    assert state.ran == 1, state.why_not
    differs = np.argwhere(found["numpy"] != found["compiled"])
    if differs.size:
        thread, column = differs[0]
        stores = [i for i, line in enumerate(lines) for _ in range(_results(line))]
        raise AssertionError(
            f"{lines[stores[column]]} of {[hex(w) for w in words[thread].tolist()]}: "
            f"{found['numpy'][thread, column]:#x} by NumPy, "
            f"{found['compiled'][thread, column]:#x} compiled"
        )


def test_every_instruction_that_computes_has_a_form() -> None:
    computing = {
        name
        for name, known in INSTRUCTIONS.items()
        if known.decode is not None and known.end is None and not known.effects
    }
    silent = {"griddepcontrol", "setmaxnreg", "nanosleep", "pmevent", "membar", "fence"}
    silent |= {"applypriority", "discard", "prefetch", "prefetchu"}
    tested = {line.split(".")[0] for line in FORMS}
    assert computing - silent - REFUSED == tested
