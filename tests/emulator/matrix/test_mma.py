"""mma against NumPy's matmul, with fragments laid out by the ISA's formulas, one by one.

The formulas below are those of the sections "Matrix Fragments for mma...", element by element;
the product has them as one rule.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from emulator_internals import matrix as mx

WIDTHS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8,
          "e4m3": 8, "e5m2": 8, "s4": 4, "u4": 4, "b1": 1}  # fmt: skip
DTYPES = {"f64": np.float64, "f32": np.float32, "tf32": np.float32, "f16": np.float16,
          "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn,
          "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "s32": np.int32,
          "s4": np.int8, "u4": np.uint8, "b1": np.uint8}  # fmt: skip


def a_formula(shape: str, kind: str, lane: int, i: int) -> tuple[int, int]:
    g, t = lane >> 2, lane % 4
    width = WIDTHS[kind]
    if shape.startswith("m8"):
        return g, {64: t, 8: t * 4 + i, 4: t * 8 + i, 1: t * 32 + i}[width]
    if shape == "m16n8k4":
        return (g if i == 0 else g + 8), t
    if shape == "m16n8k8":
        if width == 16:
            return (g if i in (0, 1) else g + 8), t * 2 + (i & 1)
        return (g if i in (0, 2) else g + 8), (t if i in (0, 1) else t + 4)
    if shape == "m16n8k16":
        if width == 16:
            row = g if 0 <= i < 2 or 4 <= i < 6 else g + 8
            return row, t * 2 + (i & 1) + (0 if i < 4 else 8)
        if width == 8:
            return (g if i < 4 else g + 8), t * 4 + (i & 3)
        return (g if i % 2 == 0 else g + 8), (i * 2 + t if i % 2 == 0 else i * 2 - 2 + t)
    if shape == "m16n8k32":
        if width == 8:
            row = g if 0 <= i < 4 or 8 <= i < 12 else g + 8
            return row, t * 4 + (i & 3) + (0 if i < 8 else 16)
        return (g if i < 8 else g + 8), t * 8 + (i & 7)
    if shape == "m16n8k64":
        row = g if 0 <= i < 8 or 16 <= i < 24 else g + 8
        return row, t * 8 + (i & 7) + (0 if i < 16 else 32)
    if shape == "m16n8k128":
        return (g if i < 32 else g + 8), t * 32 + (i & 31)
    row = g if 0 <= i < 32 or 64 <= i < 96 else g + 8
    return row, t * 32 + (i & 31) + (0 if i < 64 else 128)


def b_formula(shape: str, kind: str, lane: int, i: int) -> tuple[int, int]:
    g, t = lane >> 2, lane % 4
    width = WIDTHS[kind]
    if shape.startswith("m8"):
        return {64: t, 8: t * 4 + i, 4: t * 8 + i, 1: t * 32 + i}[width], g
    if shape == "m16n8k4":
        return t, g
    if shape == "m16n8k8":
        return (t * 2 + i if width == 16 else (t if i == 0 else t + 4)), g
    if shape == "m16n8k16":
        if width == 16:
            return t * 2 + (i & 1) + (0 if i < 2 else 8), g
        return (t * 4 + i if width == 8 else t + i * 4), g
    if shape == "m16n8k32":
        return (t * 4 + (i & 3) + (0 if i < 4 else 16) if width == 8 else t * 8 + (i & 7)), g
    if shape == "m16n8k64":
        return t * 8 + (i & 7) + (0 if i < 8 else 32), g
    if shape == "m16n8k128":
        return t * 32 + i, g
    return t * 32 + (i & 31) + (0 if i < 32 else 128), g


def c_formula(shape: str, lane: int, i: int) -> tuple[int, int]:
    g, t = lane >> 2, lane % 4
    if shape.startswith("m8"):
        return g, t * 2 + (i & 1)
    return (g if i < 2 else g + 8), t * 2 + (i & 1)


def extents(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def to_registers(kind: str, matrices: np.ndarray, formula) -> list[np.ndarray]:
    """Pack matrices of shape (warps, rows, columns) of integers that hold element bits."""
    warps, rows, columns = matrices.shape
    width = WIDTHS[kind]
    size = max(width, 32)
    count = rows * columns // 32 * width // size
    registers = [np.zeros((warps, 32), f"u{size // 8}") for _ in range(count)]
    for lane in range(32):
        for i in range(rows * columns // 32):
            row, column = formula(lane, i)
            register, place = divmod(i * width, size)
            values = matrices[:, row, column].astype(registers[0].dtype)
            registers[register][:, lane] |= values << registers[0].dtype.type(place)
    return registers


def from_registers(kind: str, registers, shape, formula) -> np.ndarray:
    width = WIDTHS[kind]
    size = max(width, 32)
    rows, columns = shape
    result = np.zeros((len(registers[0]), rows, columns), np.uint64)
    for lane in range(32):
        for i in range(rows * columns // 32):
            row, column = formula(lane, i)
            register, place = divmod(i * width, size)
            bits = registers[register][:, lane].astype(np.uint64) >> np.uint64(place)
            result[:, row, column] = bits & np.uint64((1 << width) - 1)
    return result


def random_bits(rng, kind: str, shape) -> np.ndarray:
    """Draw element bits; numbers have exponents that let sums cancel and round."""
    width = WIDTHS[kind]
    if kind[0] in "sub" and kind != "bf16":
        return rng.integers(0, 1 << width, shape).astype(np.uint64)
    values = rng.standard_normal(shape) * np.exp2(rng.integers(-4, 3, shape))
    bits = values.astype(DTYPES[kind]).view(f"u{width // 8}").astype(np.uint64)
    return bits & np.uint64(0xFFFFE000) if kind == "tf32" else bits


def values_of(kind: str, bits: np.ndarray) -> np.ndarray:
    if kind == "s4":
        return bits.astype(np.int64) - 16 * (bits >= 8)
    if kind in ("u4", "b1"):
        return bits.astype(np.int64)
    narrow = bits.astype(f"u{WIDTHS[kind] // 8}").view(DTYPES[kind])
    return narrow.astype(np.int64 if kind[0] in "su" else np.float64)


FLOATING = [
    ("m16n8k8", "f16"), ("m16n8k16", "f16"), ("m16n8k8", "bf16"), ("m16n8k16", "bf16"),
    ("m16n8k4", "tf32"), ("m16n8k8", "tf32"), ("m16n8k16", "e4m3"), ("m16n8k32", "e4m3"),
    ("m16n8k32", "e5m2"),
]  # fmt: skip
INTEGERS = [
    ("m8n8k16", "s8", "u8"), ("m16n8k16", "s8", "s8"), ("m16n8k32", "u8", "s8"),
    ("m16n8k32", "u8", "u8"), ("m8n8k32", "s4", "u4"), ("m16n8k32", "u4", "s4"),
    ("m16n8k64", "s4", "s4"),
]  # fmt: skip
WARPS = 3


def operands(rng, shape, a_kind, b_kind, c_kind):
    m, n, k = extents(shape)
    a, b, c = (
        random_bits(rng, kind, (WARPS, *size))
        for kind, size in ((a_kind, (m, k)), (b_kind, (k, n)), (c_kind, (m, n)))
    )
    registers = [
        to_registers(a_kind, a, lambda lane, i: a_formula(shape, a_kind, lane, i)),
        to_registers(b_kind, b, lambda lane, i: b_formula(shape, b_kind, lane, i)),
        to_registers(c_kind, c, lambda lane, i: c_formula(shape, lane, i)),
    ]
    return (a, b, c), registers


@pytest.mark.parametrize("accumulator", ["f32", "f16"])
@pytest.mark.parametrize(("shape", "kind"), FLOATING)
def test_floating_products_are_rounded_once(shape, kind, accumulator):
    if accumulator == "f16" and kind in ("bf16", "tf32"):
        accumulator = "f32"
    rng = np.random.default_rng(11)
    (a, b, c), registers = operands(rng, shape, kind, kind, accumulator)
    got = mx.mma(shape, (accumulator, kind, kind, accumulator), *registers)
    m, n, _ = extents(shape)
    d = from_registers(accumulator, got, (m, n), lambda lane, i: c_formula(shape, lane, i))
    x, y, z, got = (
        values_of(kind, a), values_of(kind, b), values_of(accumulator, c), values_of(accumulator, d)
    )  # fmt: skip
    spacing = np.spacing(np.abs(got).astype(DTYPES[accumulator])).astype(float)
    for w in range(WARPS):
        for i in range(m):
            for j in range(n):
                exact = math.fsum([*(x[w, i] * y[w, :, j]), z[w, i, j]])
                assert abs(got[w, i, j] - exact) <= 0.5001 * spacing[w, i, j]


@pytest.mark.parametrize(("shape", "a_kind", "b_kind"), INTEGERS)
def test_integer_products_wrap_or_clamp(shape, a_kind, b_kind):
    rng = np.random.default_rng(12)
    (a, b, c), registers = operands(rng, shape, a_kind, b_kind, "s32")
    c[0] = 0x7FFFFFFF  # sure to overflow one way ...
    c[1] = 0x80000000  # ... and the other
    registers[2] = to_registers("s32", c, lambda lane, i: c_formula(shape, lane, i))
    m, n, _ = extents(shape)
    exact = values_of(a_kind, a) @ values_of(b_kind, b) + values_of("s32", c)
    for satfinite in (False, True):
        types = ("s32", a_kind, b_kind, "s32")
        got = mx.mma(shape, types, *registers, satfinite=satfinite)
        assert all(r.dtype == np.uint32 and r.shape == (WARPS, 32) for r in got)
        d = from_registers("s32", got, (m, n), lambda lane, i: c_formula(shape, lane, i))
        want = np.clip(exact, -(2**31), 2**31 - 1) if satfinite else exact.astype(np.int32)
        assert (values_of("s32", d) == want).all()


@pytest.mark.parametrize("operation", ["and", "xor"])
@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
def test_single_bits_are_counted(shape, operation):
    rng = np.random.default_rng(13)
    (a, b, c), registers = operands(rng, shape, "b1", "b1", "s32")
    got = mx.mma(shape, ("s32", "b1", "b1", "s32"), *registers, operation=operation)
    m, n, _ = extents(shape)
    d = from_registers("s32", got, (m, n), lambda lane, i: c_formula(shape, lane, i))
    combine = np.bitwise_and if operation == "and" else np.bitwise_xor
    counts = combine(a[:, :, :, None], b[:, None]).sum(2).astype(np.int64)
    assert (values_of("s32", d) == (counts + values_of("s32", c)).astype(np.int32)).all()


@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"])
def test_doubles_are_a_chain_of_fused_operations(shape):
    rng = np.random.default_rng(14)
    (a, b, c), registers = operands(rng, shape, "f64", "f64", "f64")
    got = mx.mma(shape, ("f64",) * 4, *registers)
    m, n, _ = extents(shape)
    d = from_registers("f64", got, (m, n), lambda lane, i: c_formula(shape, lane, i)).view(float)
    want = a.view(float) @ b.view(float) + c.view(float)
    np.testing.assert_allclose(d, want, rtol=1e-13, atol=1e-13)
    ones = [np.full_like(r, 0x3FF0 << 48) for r in registers[0]]
    halves = [np.full_like(r, 0x3FE0 << 48) for r in registers[1]]
    up = mx.mma(shape, ("f64",) * 4, ones, halves, registers[2], rounding="rp")
    down = mx.mma(shape, ("f64",) * 4, ones, halves, registers[2], rounding="rm")
    assert all((u.view(float) >= v.view(float)).all() for u, v in zip(up, down, strict=True))


def quad_a(layout, lane, i):
    if layout == "row":
        return (lane % 4 if lane < 16 else lane % 4 + 4), i
    return (i % 4 if lane < 16 else i % 4 + 4), lane % 4


def quad_b(layout, lane, i):
    if layout == "row":
        return lane % 4, (i if lane < 16 else i + 4)
    return i, (lane % 4 if lane < 16 else lane % 4 + 4)


def quad_c(kind, lane, i):
    if kind == "f16":
        return (lane % 4 if lane < 16 else lane % 4 + 4), i
    x = (lane & 0b1) + (i & 0b10)
    return (x if lane < 16 else x + 4), (i & 0b100) + (lane & 0b10) + (i & 0b1)


@pytest.mark.parametrize("b_layout", ["row", "col"])
@pytest.mark.parametrize("a_layout", ["row", "col"])
@pytest.mark.parametrize(("d_kind", "c_kind"), [("f16", "f16"), ("f32", "f32"), ("f32", "f16")])
def test_four_quads_of_halves(a_layout, b_layout, c_kind, d_kind):
    rng = np.random.default_rng(15)
    sizes = {"a": (8, 4), "b": (4, 8), "c": (8, 8)}
    kinds = {"a": "f16", "b": "f16", "c": c_kind}
    formulas = {
        "a": lambda lane, i: quad_a(a_layout, lane, i),
        "b": lambda lane, i: quad_b(b_layout, lane, i),
        "c": lambda lane, i: quad_c(c_kind, lane, i),
    }
    bits, registers = {}, []
    for name, kind in kinds.items():
        # Four matrices a warp: lanes 0-3 and 16-19 have the first, 4-7 and 20-23 the next ...
        bits[name] = random_bits(rng, kind, (WARPS, 4, *sizes[name]))
        elements = bits[name][0, 0].size // 8
        count = elements * WIDTHS[kind] // 32
        packed = [np.zeros((WARPS, 32), np.uint32) for _ in range(count)]
        for lane in range(32):
            for i in range(elements):
                row, column = formulas[name](lane, i)
                register, place = divmod(i * WIDTHS[kind], 32)
                value = bits[name][:, lane % 16 // 4, row, column].astype(np.uint32)
                packed[register][:, lane] |= value << np.uint32(place)
        registers.append(packed)
    got = mx.mma("m8n8k4", (d_kind, "f16", "f16", c_kind), *registers, layouts=(a_layout, b_layout))
    x, y, z = (values_of(kinds[n], bits[n]) for n in "abc")
    want = (x @ y + z).astype(DTYPES[d_kind])
    assert len(got) == (4 if d_kind == "f16" else 8)
    for lane in range(32):
        for i in range(8):
            row, column = quad_c(d_kind, lane, i)
            register, place = divmod(i * WIDTHS[d_kind], 32)
            value = got[register][:, lane] >> np.uint32(place)
            value = value.astype(f"u{WIDTHS[d_kind] // 8}").view(DTYPES[d_kind])
            np.testing.assert_array_equal(value, want[:, lane % 16 // 4, row, column])


def test_infinities_nans_and_overflow():
    half = np.array([[0x7C00, 0x7C00, 0x0000, 0x7BFF]], np.uint64)  # inf, inf, 0, 65504
    a, b = np.zeros((1, 16, 8), np.uint64), np.zeros((1, 8, 8), np.uint64)
    a[0, :4, 0] = half[0]
    b[0, 0, 0], b[0, 0, 1], b[0, 0, 2] = 0x3C00, 0x0000, 0x7BFF
    formulas = [lambda lane, i: a_formula("m16n8k8", "f16", lane, i),
                lambda lane, i: b_formula("m16n8k8", "f16", lane, i)]  # fmt: skip
    registers = [to_registers("f16", m, f) for m, f in zip((a, b), formulas, strict=True)]
    for kind, infinity, nan in (("f32", 0x7F800000, 0x7FFFFFFF), ("f16", 0x7C00, 0x7FFF)):
        count = 4 if kind == "f32" else 2
        zeros = [np.zeros((1, 32), np.uint32)] * count
        got = mx.mma("m16n8k8", (kind, "f16", "f16", kind), *registers, zeros)
        d = from_registers(kind, got, (16, 8), lambda lane, i: c_formula("m16n8k8", lane, i))
        assert d[0, 0, :3].tolist() == [infinity, nan, infinity]
        assert d[0, 2, :3].tolist() == [0, 0, 0]
        if kind == "f16":
            assert d[0, 3, 2] == infinity


def test_low_bits_of_tf32_are_ignored():
    rng = np.random.default_rng(16)
    _, registers = operands(rng, "m16n8k8", "tf32", "tf32", "f32")
    types = ("f32", "tf32", "tf32", "f32")
    clean = mx.mma("m16n8k8", types, *registers)
    dirty = [[r | np.uint32(0x1ABC) for r in operand] for operand in registers[:2]]
    got = mx.mma("m16n8k8", types, *dirty, registers[2])
    assert all((x == y).all() for x, y in zip(clean, got, strict=True))


def test_what_does_not_exist_is_refused():
    one = [np.zeros((1, 32), np.uint32)]
    types = ("f32", "f16", "f16", "f32")
    with pytest.raises(ValueError, match=r"m16n8k4 multiplies f64, tf32 \(got f16 and f16\)"):
        mx.mma("m16n8k4", types, one, one, one)
    with pytest.raises(ValueError, match=r"a must have 4 registers for m16n8k16 of f16 \(got 1\)"):
        mx.mma("m16n8k16", types, one, one, one)
    with pytest.raises(ValueError, match="layouts must be row and col"):
        mx.mma("m16n8k16", types, one * 4, one * 2, one * 4, layouts=("col", "col"))
    with pytest.raises(ValueError, match="shape must be spelled"):
        mx.mma("16x8x16", types, one, one, one)
    with pytest.raises(ValueError, match="m7n7k7 multiplies nothing"):
        mx.mma("m7n7k7", types, one, one, one)
