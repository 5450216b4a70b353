"""The numerics against a GPU: one kernel for each instruction, over awkward bit patterns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from emulator_internals import numerics as nm

import culaunch as cl

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDED = Path(__file__).with_name("h100.txt").read_text().splitlines()[1:]
LANES = 8192
WIDTHS = {"f16": 16, "bf16": 16, "s16": 16, "u16": 16, "f64": 64, "s64": 64, "u64": 64, "b16": 16}
FRACTIONS = {"f32": 23, "f64": 52, "f16": 10, "bf16": 7}


def width(kind: str) -> int:
    return WIDTHS.get(kind, 32)


@dataclass
class Case:
    """An instruction such as ``add.rn.f32 %d, %a, %b;`` and what should do the same."""

    code: str
    function: Callable[..., np.ndarray]
    result: str
    operands: tuple[str, ...]
    error: float | None = None  # allowed, in units of the last place; None: equal bits

    def __str__(self) -> str:
        return self.code.split()[0]


def named(code: str, function, result: str, *operands: str, error: float | None = None) -> Case:
    names = ", ".join(["%d", *("%" + name for name in "abc"[: len(operands)])])
    return Case(f"{code} {names};", function, result, operands, error)


@cache
def cases() -> list[Case]:
    found = []
    modes = ("rn", "rz", "rm", "rp")
    for t in ("f32", "f64"):
        for mode in modes:
            for name in ("add", "sub", "mul", "div"):
                function = partial(getattr(nm, name), t, rounding=mode)
                found.append(named(f"{name}.{mode}.{t}", function, t, t, t))
            found.append(named(f"fma.{mode}.{t}", partial(nm.fma, t, rounding=mode), t, t, t, t))
            for name in ("rcp", "sqrt"):
                function = partial(getattr(nm, name), t, rounding=mode)
                found.append(named(f"{name}.{mode}.{t}", function, t, t))
    for t, name in ((t, n) for t in ("f32", "f16", "f16x2") for n in ("add", "sub", "mul", "fma")):
        operands = (t,) * (3 if name == "fma" else 2)
        function = getattr(nm, name)
        for suffix, flags in (("", {}), (".ftz", {"ftz": True}), (".sat", {"sat": True})):
            made = partial(function, t, **flags)
            found.append(named(f"{name}.rn{suffix}.{t}", made, t, *operands))
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        found.append(named(f"fma.rn.{t}", partial(nm.fma, t), t, t, t, t))
        found.append(named(f"fma.rn.relu.{t}", partial(nm.fma, t, relu=True), t, t, t, t))
    for t in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
        for name, function in (("min", nm.minimum), ("max", nm.maximum)):
            found.append(named(f"{name}.{t}", partial(function, t), t, t, t))
            if t != "f64":
                found.append(named(f"{name}.NaN.{t}", partial(function, t, nan=True), t, t, t))
        found.append(named(f"neg.{t}", partial(nm.negate, t), t, t))
        found.append(named(f"abs.{t}", partial(nm.absolute, t), t, t))
    found.append(named("min.ftz.f32", partial(nm.minimum, "f32", ftz=True), "f32", "f32", "f32"))
    found.append(named("neg.ftz.f32", partial(nm.negate, "f32", ftz=True), "f32", "f32"))
    return found + conversions() + comparisons() + approximations()


def conversions() -> list[Case]:
    found = []

    def convert(to: str, source: str, **flags: object) -> None:
        words = [str(flags["rounding"])] if "rounding" in flags else []
        words += [word for word in ("relu", "satfinite", "ftz", "sat") if flags.get(word)]
        code = ".".join(["cvt", *words, to, source])
        found.append(named(code, partial(nm.cvt, to, source, **flags), to, source))

    for source in ("f16", "f32", "f64"):
        for to in ("s16", "u16", "s32", "u32", "s64", "u64"):
            for mode in ("rni", "rzi", "rmi", "rpi"):
                convert(to, source, rounding=mode)
                convert(source, to, rounding=mode[:2])
    for wide, narrow in (("f64", "f32"), ("f64", "f16"), ("f32", "f16")):
        convert(wide, narrow)
        for mode in ("rn", "rz", "rm", "rp"):
            convert(narrow, wide, rounding=mode)
    for t in ("f16", "f32", "f64"):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            convert(t, t, rounding=mode)
    for mode in ("rn", "rz"):
        convert("bf16", "f32", rounding=mode)
        convert("f16", "f32", rounding=mode, relu=True)
        for t in ("f16x2", "bf16x2"):
            function = partial(nm.cvt_pair, t, rounding=mode)
            found.append(named(f"cvt.{mode}.{t}.f32", function, t, "f32", "f32"))
    convert("f32", "f32", sat=True)
    convert("f32", "f32", ftz=True)
    convert("f32", "f64", rounding="rn", ftz=True)
    convert("s32", "f32", rounding="rpi", ftz=True)
    convert("tf32", "f32", rounding="rna")
    for to, source in (
        ("s16", "s32"),
        ("u16", "s32"),
        ("s32", "s64"),
        ("u32", "s64"),
        ("s32", "u32"),
    ):
        convert(to, source, sat=True)
    for t in ("u16", "s16"):
        found.append(named(f"cvt.pack.sat.{t}.s32", partial(nm.cvt_pack, t), "b32", "s32", "s32"))
    for t in ("u8", "s8"):
        function = partial(nm.cvt_pack, t)
        code = f"cvt.pack.sat.{t}.s32.b32"
        found.append(named(code, function, "b32", "s32", "s32", "b32"))
    return found


def comparisons() -> list[Case]:
    def ones(operator: str, t: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(nm.compare(operator, t, a, b), np.uint32(0xFFFFFFFF), np.uint32(0))

    plain = ("eq", "ne", "lt", "le", "gt", "ge")
    loose = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    return [
        named(f"set.{operator}.u32.{t}", partial(ones, operator, t), "u32", t, t)
        for t in ("f32", "f64", "s32", "u32", "s64", "u64")
        for operator in (plain + loose if t[0] == "f" else plain)
    ]


def approximations() -> list[Case]:
    found = []
    functions = {
        "ex2": nm.ex2, "rcp": nm.rcp_approx, "rsqrt": nm.rsqrt_approx, "sqrt": nm.sqrt_approx
    }  # fmt: skip
    for suffix in ("", ".ftz"):
        for name, function in functions.items():
            made = partial(function, "f32", ftz=bool(suffix))
            found.append(named(f"{name}.approx{suffix}.f32", made, "f32", "f32", error=3))
        for name, function in (("approx", nm.div_approx), ("full", nm.div_full)):
            made = partial(function, ftz=bool(suffix))
            found.append(named(f"div.{name}{suffix}.f32", made, "f32", "f32", "f32", error=4))
    found.append(named("rsqrt.approx.f64", partial(nm.rsqrt_approx, "f64"), "f64", "f64", error=1))
    for name, function in (("rcp", nm.rcp_approx), ("rsqrt", nm.rsqrt_approx)):
        made = partial(function, "f64", ftz=True)
        # One unit in the last of the 20 bits that are kept.
        found.append(named(f"{name}.approx.ftz.f64", made, "f64", "f64", error=2**32))
    found.append(named("tanh.approx.f32", partial(nm.tanh, "f32"), "f32", "f32", error=2**13))
    found.append(named("ex2.approx.f16", partial(nm.ex2, "f16"), "f16", "f16", error=2))
    found.append(named("tanh.approx.f16", partial(nm.tanh, "f16"), "f16", "f16", error=2))
    return found


def assemble(case: Case, index: int) -> str:
    kinds = {"d": case.result, **dict(zip("abc", case.operands, strict=False))}
    lines = [
        f".visible .entry k{index}({', '.join(f'.param .u64 p{name}' for name in kinds)}) {{",
        ".reg .b32 %i<4>; .reg .b64 %at<8>;",
        "mov.u32 %i0, %ctaid.x; mov.u32 %i1, %ntid.x; mov.u32 %i2, %tid.x;",
        "mad.lo.u32 %i3, %i0, %i1, %i2;",
    ]
    for slot, (name, kind) in enumerate(kinds.items()):
        lines.append(f".reg .b{width(kind)} %{name};")
        lines.append(f"ld.param.u64 %at{slot}, [p{name}]; cvta.to.global.u64 %at{slot}, %at{slot};")
        lines.append(f"mad.wide.u32 %at{slot}, %i3, {width(kind) // 8}, %at{slot};")
        if name != "d":
            lines.append(f"ld.global.b{width(kind)} %{name}, [%at{slot}];")
    lines.append(case.code)
    lines.append(f"st.global.b{width(case.result)} [%at0], %d; ret; }}")
    return "\n".join(lines)


def module_text(all_cases: list[Case]) -> str:
    head = ".version 7.8\n.target sm_80\n.address_size 64\n"
    return head + "\n".join(assemble(case, i) for i, case in enumerate(all_cases)) + "\n"


def draw(rng: np.random.Generator, kind: str) -> np.ndarray:
    """Draw bits: any bits, numbers near one, and pairs of each format's corner cases."""
    bits = width(kind)
    lanes = rng.integers(0, 1 << bits, LANES, dtype=f"u{bits // 8}")
    base = kind.removesuffix("x2")
    if base not in FRACTIONS:
        small = rng.integers(-70000, 70000, LANES // 2)
        lanes[: LANES // 2] = small.astype(f"i{bits // 8}").view(lanes.dtype)
        return lanes
    fraction, size = FRACTIONS[base], width(base)
    parts = lanes.view(f"u{size // 8}")
    unit, sign = 1 << fraction, 1 << size - 1
    infinity = sign - unit
    one = infinity // 2 // unit * unit
    signs = np.array([0, sign], parts.dtype)
    corners = [0, 1, unit - 1, unit, one, one + 1, infinity - 1, infinity, infinity + unit // 2]
    half, eighth = len(parts) // 2, len(parts) // 8
    near = rng.integers(one - 4 * unit, one + 4 * unit, half, dtype=parts.dtype)
    parts[:half] = near | rng.choice(signs, half)
    chosen = rng.choice(np.array(corners, parts.dtype), eighth) | rng.choice(signs, eighth)
    parts[rng.permutation(len(parts))[:eighth]] = chosen
    return lanes


def distance(kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Count the numbers of the format between two, of either sign; NaNs are all alike."""
    top = 1 << width(kind) - 1
    infinity = top - (1 << FRACTIONS[kind])
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    sign, size = np.uint64(top), np.uint64(top - 1)
    x_size, y_size = x & size, y & size
    x_nan, y_nan = x_size > infinity, y_size > infinity
    apart = np.maximum(x_size, y_size) - np.minimum(x_size, y_size)
    apart = np.where((x ^ y) & sign, x_size + y_size, apart)
    apart = np.where(x_nan ^ y_nan, size, apart)
    return np.where(x_nan & y_nan, 0, apart)


WITH_NANS = [
    i
    for i, case in enumerate(cases())
    if case.error is None and any(t in FRACTIONS for t in case.operands)
]


@pytest.fixture(scope="module")
def module():
    return cl.load(cl.Image(module_text(cases()).encode()))


@pytest.mark.parametrize("line", RECORDED)
def test_recorded_results(line):
    code, *operands = line.split(" = ")[0].split()
    case = next(case for case in cases() if str(case) == code)
    lanes = [
        np.array([int(value, 16)], f"u{width(kind) // 8}")
        for value, kind in zip(operands, case.operands, strict=True)
    ]
    assert hex(case.function(*lanes)[0]) == line.split()[-1]


@pytest.mark.gpu
@pytest.mark.parametrize("index", range(len(cases())), ids=[str(case) for case in cases()])
def test_the_gpu_agrees(module, index):
    rng = np.random.default_rng(index)
    compare(module, index, [draw(rng, kind) for kind in cases()[index].operands])


@pytest.mark.gpu
@pytest.mark.parametrize("index", WITH_NANS, ids=[str(cases()[i]) for i in WITH_NANS])
def test_the_gpu_agrees_on_nans(module, index):
    kinds = cases()[index].operands
    lanes = np.array(list(product(*map(specials, kinds))), np.uint64)
    lanes = np.resize(lanes, (LANES, len(kinds)))
    compare(
        module, index, [x.astype(f"u{width(k) // 8}") for x, k in zip(lanes.T, kinds, strict=True)]
    )


def specials(kind: str) -> list[int]:
    """List NaNs of every sort, and a few others."""
    fraction, sign = FRACTIONS[kind], 1 << width(kind) - 1
    unit = 1 << fraction
    infinity = sign - unit
    nans = [1, 3 << fraction // 2, unit // 2 - 1, unit // 2, unit // 2 + 5, unit - 1]
    values = [0, infinity // 2, infinity, *(infinity + nan for nan in nans)]
    return [value | s for value in values for s in (0, sign)]


def compare(module, index: int, operands: list[np.ndarray]) -> None:
    case = cases()[index]
    out = cl.empty(LANES, f"u{width(case.result) // 8}")
    module[f"k{index}"][LANES // 128, 128](out, *map(cl.to_device, operands))
    want, got = case.function(*operands), out.numpy()
    if case.error is None:
        wrong = np.nonzero(got != want)[0]
    else:
        wrong = np.nonzero(distance(case.result, got, want) > case.error)[0]
    shown = [
        f"({', '.join(hex(int(x[i])) for x in operands)}): {int(want[i]):#x}, GPU {int(got[i]):#x}"
        for i in wrong[:20]
    ]
    assert not len(wrong), f"{len(wrong)} of {LANES} lanes of {case.code}: {shown}"


@pytest.mark.gpu
def test_logarithm_and_trigonometry_keep_their_absolute_bounds(module):
    listed = [("lg2", nm.lg2, 2.0**-21), ("sin", nm.sin, 2.0**-20), ("cos", nm.cos, 2.0**-20)]
    special = [
        named(f"{name}.approx.f32", partial(function, "f32"), "f32", "f32")
        for name, function, _ in listed
    ]
    loaded = cl.load(cl.Image(module_text(special).encode()))
    rng = np.random.default_rng(1)
    for index, (_, function, bound) in enumerate(listed):
        low, high = (0.01, 8) if index == 0 else (-2 * np.pi, 2 * np.pi)
        given = rng.uniform(low, high, LANES).astype(np.float32).view(np.uint32)
        given[:6] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1], np.float32).view(np.uint32)
        out = cl.empty(LANES, np.uint32)
        loaded[f"k{index}"][LANES // 128, 128](out, cl.to_device(given))
        got, want = out.numpy().view(np.float32), function("f32", given).view(np.float32)
        np.testing.assert_allclose(got, want, rtol=0, atol=bound)
