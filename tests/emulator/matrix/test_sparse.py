"""mma.sp: products of a sparse A, against those of the whole matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault
from sparse_rows import draw, warp_registers

import culaunch as cl

WIDTHS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4}
# The shape, the types of D, A and B, and the number of selectors.
FORMS = [
    ("m16n8k16", "f32", "f16", "f16", 4), ("m16n8k32", "f16", "f16", "f16", 2),
    ("m16n8k32", "f32", "bf16", "bf16", 2), ("m16n8k16", "f32", "bf16", "bf16", 4),
    ("m16n8k8", "f32", "tf32", "tf32", 4), ("m16n8k16", "f32", "tf32", "tf32", 2),
    ("m16n8k32", "s32", "s8", "u8", 2), ("m16n8k64", "s32", "u8", "s8", 1),
    ("m16n8k64", "s32", "s4", "u4", 2), ("m16n8k128", "s32", "u4", "s4", 1),
]  # fmt: skip
CASES = [
    (*form, "sp" if i % 2 else "sp::ordered_metadata", selector)
    for i, (*form, selectors) in enumerate(FORMS)
    for selector in range(selectors)
]


def bits_of(kind: str, values: np.ndarray) -> np.ndarray:
    """Return the bits of small integers as elements."""
    if kind == "f16":
        return values.astype("f2").view("u2").astype("u8")
    if kind in ("f32", "tf32", "bf16"):
        return (values.astype("f4").view("u4") >> (16 if kind == "bf16" else 0)).astype("u8")
    return values.astype("i8").view("u8") & np.uint64((1 << WIDTHS.get(kind, 32)) - 1)


def to_registers(name: str, kind: str, matrix: np.ndarray) -> np.ndarray:
    """Spread element bits over 32 lanes, by the formulas of the manual: (registers, 32)."""
    width = WIDTHS.get(kind, 32)
    per = 32 // width
    out = np.zeros((matrix.size // 32 // per, 32), np.uint32)
    for lane, i in np.ndindex(32, matrix.size // 32):
        group, thread, register = lane >> 2, lane % 4, i // per
        if name == "a":
            place = group + 8 * (register % 2), thread * per + i % per + register // 2 * 4 * per
        elif name == "b":
            place = thread * per + i % per + register * 4 * per, group
        else:
            place = group + 8 * (i // 2), thread * 2 + i % 2
        out[register, lane] |= np.uint32(int(matrix[place]) << i % per * width)
    return out


def text(shape: str, types: tuple[str, ...], counts: list[int], variant: str, selector: int) -> str:
    vectors = [
        "{" + ", ".join(f"%{n}{i}" for i in range(c)) + "}"
        for n, c in zip("dabc", [counts[2], *counts], strict=True)
    ]
    lines, at = [], 0
    for name, count in zip("abce", [*counts, 1], strict=True):
        lines.append(f".reg .b32 %{name}<{count}>;")
        for i in range(count):
            lines.append(f"ld.global.b32 %{name}{i}, [%from+{128 * at}];")
            at += 1
    stores = [f"st.global.b32 [%to+{128 * i}], %d{i};" for i in range(counts[2])]
    return f"""
.version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 given, .param .u64 out) {{
    .reg .b64 %from, %to; .reg .b32 %t, %d<{counts[2]}>;
    mov.u32 %t, %laneid; ld.param.u64 %from, [given]; ld.param.u64 %to, [out];
    mad.wide.u32 %from, %t, 4, %from; mad.wide.u32 %to, %t, 4, %to;
    {" ".join(lines)}
    mma.{variant}.sync.aligned.{shape}.row.col.{".".join(types)}
        {", ".join(vectors)}, %e0, {selector};
    {" ".join(stores)}
    ret;
}}"""


def multiply(
    shape: str, d: str, a: str, b: str, variant: str, selector: int, run: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the registers of D that an instruction gives, and those that it must give."""
    rng = np.random.default_rng(9)
    (m, n), k = (16, 8), int(shape.partition("k")[2])
    mask, codes = draw(rng, m, k, size={32: 2, 4: 8}.get(WIDTHS[a], 4))
    x, y = (rng.integers(0 if t[0] == "u" else -7, 8, s) for t, s in ((a, (m, k)), (b, (k, n))))
    c = rng.integers(-50, 50, (m, n))
    stored = x[mask].reshape(m, k // 2)
    registers = [
        to_registers("a", a, bits_of(a, stored)), to_registers("b", b, bits_of(b, y)),
        to_registers("c", d, bits_of(d, c)),
    ]  # fmt: skip
    counts = [len(one) for one in registers]
    metadata = warp_registers(codes, wide=WIDTHS[a] >= 16, selector=selector)
    given = np.concatenate([*(one.reshape(-1) for one in registers), metadata])
    out = np.zeros(32 * counts[2], "u4")
    run(text(shape, (d, a, b, d), counts, variant, selector), given, out)
    total = np.where(mask, x, 0) @ y + c
    return out.reshape(counts[2], 32), to_registers("c", d, bits_of(d, total))


def emulated(source: str, given: np.ndarray, out: np.ndarray) -> None:
    launch(source, "k", given, out, device=Device("sm_80"))


def on_the_gpu(source: str, given: np.ndarray, out: np.ndarray) -> None:
    result = cl.to_device(out)
    cl.load(cl.Image(source.encode()))["k"][1, 32](cl.to_device(given), result)
    out[...] = result.numpy()


@pytest.mark.parametrize(("shape", "d", "a", "b", "variant", "selector"), CASES)
def test_products_of_a_sparse_matrix(
    shape: str, d: str, a: str, b: str, variant: str, selector: int
) -> None:
    got, expected = multiply(shape, d, a, b, variant, selector, emulated)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.gpu
@pytest.mark.parametrize(("shape", "d", "a", "b", "variant", "selector"), CASES)
def test_hardware_gives_the_same_products(
    shape: str, d: str, a: str, b: str, variant: str, selector: int
) -> None:
    got, expected = multiply(shape, d, a, b, variant, selector, on_the_gpu)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("a", "code"), [("f16", 0b1010), ("tf32", 0b1000), ("s8", 0)])
def test_metadata_without_a_meaning_is_a_fault(a: str, code: int) -> None:
    shape = {"f16": "m16n8k32", "tf32": "m16n8k16", "s8": "m16n8k64"}[a]

    def run(source: str, given: np.ndarray, out: np.ndarray) -> None:
        given[-32 + 4 * 3] = given[-32 + 4 * 3] & 0xFFFFFF0F | code << 4
        emulated(source, given, out)

    size = 2 if a == "tf32" else 4
    words = f"is {code:#06b} for elements {size} to {2 * size - 1} of row 3"
    with pytest.raises(Fault, match=words):
        multiply(shape, "s32" if a == "s8" else "f32", a, a, "sp", 0, run)


@pytest.mark.parametrize(
    ("form", "selector"),
    [(("m16n8k32", "f32", "f16", "f16"), 2), (("m16n8k64", "s32", "s8", "s8"), 1)],
)
def test_a_selector_that_is_too_large(form: tuple[str, ...], selector: int) -> None:
    def run(source: str, given: np.ndarray, out: np.ndarray) -> None:
        emulated(source.replace("%e0, 0;", f"%e0, {selector};"), given, out)

    with pytest.raises(Fault, match=f"not a constant below {selector}"):
        multiply(*form, "sp", 0, run)
