"""wgmma: every type, layout and swizzle, against a product in float64."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault
from matrix_layout import ROWS, lay_out
from sparse_rows import draw, warp_registers

import culaunch as cl

MODES = {"none": 0, "128B": 1, "64B": 2, "32B": 3}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
RNG = np.random.default_rng(6)


def numbers(kind: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return values, and their elements as bits; small ones, whose sums are exact."""
    if kind == "b1":
        values = RNG.integers(0, 2, shape)
        return values.astype("f8"), values.astype("u1")
    low = 0 if kind == "u8" else -8
    values = RNG.integers(low, 9, shape).astype("f8")
    if kind == "f16":
        return values, values.astype("f2").view("u2")
    if kind == "bf16":
        return values, (values.astype("f4").view("u4") >> 16).astype("u2")
    if kind == "tf32":
        return values, values.astype("f4").view("u4")
    if kind in ("s8", "u8"):
        return values, values.astype("i1").view("u1")
    import ml_dtypes

    dtype = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[kind]
    return values, values.astype(dtype).view("u1")


def descriptor(start: int, leading: int, stride: int, swizzle: str) -> int:
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | MODES[swizzle] << 62


def kernel(
    d: str, a: str, b: str, n: int, *, registers: bool, tail: str, op: str = "", sparse: str = ""
) -> str:
    count = n // 4 if d == "f16" else n // 2
    depth = (512 if sparse else 256) // BITS[a]
    names = ", ".join(f"%d{i}" for i in range(count))
    left = "{%a0, %a1, %a2, %a3}" if registers else "%left"
    lines = [f"ld.global.b32 %d{i}, [%at+{4 * i}];" for i in range(count)]
    after = [f"st.global.b32 [%at+{4 * i}], %d{i};" for i in range(count)]
    given = [f"ld.global.b32 %a{i}, [%from+{4 * i}];" for i in range(4)]
    return f"""
.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 box[];
.visible .entry k(.param .u64 image, .param .u32 bytes, .param .u64 left, .param .u64 right,
                  .param .u64 sums, .param .u64 fragments, .param .u32 adds, .param .u64 codes) {{
    .reg .b32 %d<{count}>, %a<4>, %e, %i, %n, %t, %word, %here; .reg .pred %p, %adds;
    .reg .b64 %from, %at, %left, %right, %wide;
    mov.u32 %i, %tid.x; shl.b32 %i, %i, 2; ld.param.u32 %n, [bytes]; mov.u32 %here, box;
    LOOP: setp.ge.u32 %p, %i, %n; @%p bra DONE;
    ld.param.u64 %from, [image]; cvt.u64.u32 %wide, %i; add.u64 %from, %from, %wide;
    ld.global.b32 %word, [%from]; add.u32 %t, %here, %i; st.shared.b32 [%t], %word;
    add.u32 %i, %i, 512; bra LOOP;
    DONE: fence.proxy.async.shared::cta; bar.sync 0;
    shr.u32 %t, %here, 4; cvt.u64.u32 %wide, %t;
    ld.param.u64 %left, [left]; add.u64 %left, %left, %wide;
    ld.param.u64 %right, [right]; add.u64 %right, %right, %wide;
    mov.u32 %t, %tid.x; ld.param.u64 %at, [sums]; mad.wide.u32 %at, %t, {4 * count}, %at;
    ld.param.u64 %from, [fragments]; mad.wide.u32 %from, %t, 16, %from;
    {" ".join(given)}
    {" ".join(lines)}
    mov.u32 %t, %tid.x; ld.param.u64 %from, [codes]; mad.wide.u32 %from, %t, 4, %from;
    ld.global.b32 %e, [%from];
    ld.param.u32 %t, [adds]; setp.ne.u32 %adds, %t, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async{".sp" if sparse else ""}.sync.aligned.m64n{n}k{depth}.{d}.{a}.{b}{op}
        {{{names}}}, {left}, %right, {sparse} %adds{tail};
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    {" ".join(after)}
    ret;
}}"""


def to_registers(d: str, matrix: np.ndarray) -> np.ndarray:
    """Spread a 64 x n matrix over 128 threads, as the figure of the manual shows it."""
    out = np.zeros((128, matrix.shape[1] // 2), matrix.dtype)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(out.shape[1]):
            row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
            out[thread, i] = matrix[row, 8 * (i // 4) + lane % 4 * 2 + i % 2]
    return np.ascontiguousarray(out)


def fragments(bits: np.ndarray) -> np.ndarray:
    """Spread A over 128 threads: four registers each, rows g and g + 8, two halves of the depth."""
    raw = np.ascontiguousarray(bits).view("u1").reshape(64, 32)
    out = np.zeros((128, 4, 4), "u1")
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for register in range(4):
            row = 16 * warp + lane // 4 + 8 * (register % 2)
            at = lane % 4 * 4 + 16 * (register // 2)
            out[thread, register] = raw[row, at : at + 4]
    return out.reshape(-1).view("u4").copy()


CASES = [
    *((d, k, k, n) for d in ("f32", "f16") for k, n in (("f16", 8), ("f16", 64))),
    ("f32", "bf16", "bf16", 256), ("f32", "tf32", "tf32", 16),
    ("f32", "e4m3", "e5m2", 24), ("f16", "e5m2", "e4m3", 32),
    ("s32", "s8", "u8", 16), ("s32", "u8", "s8", 64), ("s32", "b1", "b1", 8),
]  # fmt: skip


def multiply(
    d: str, a: str, b: str, n: int, run: Any, *, swizzle: str = "none", registers: bool = False,
    turned: tuple[bool, bool] = (False, False), signs: tuple[int, int] = (1, 1), adds: bool = True,
    selector: int | None = None, zero_codes: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return what an instruction gives, and what it must give.

    With `zero_codes`, chunks of zeros have metadata of 0, as CUTLASS's compressors write them.
    """
    depth = 256 // BITS[a]
    x, x_bits = numbers(a, (64, depth))
    y, y_bits = numbers(b, (n, depth if selector is None else 2 * depth))
    metadata, sparse = np.zeros(128, "u4"), ""
    if selector is not None:
        mask, codes = draw(RNG, 64, 2 * depth, size=2 if a == "tf32" else 4)
        empty = ~x.reshape(*codes.shape, -1).any(axis=-1)
        if zero_codes:
            assert empty.any()
            codes[empty] = 0
        whole = np.zeros((64, 2 * depth))
        whole[mask] = x.reshape(-1)
        x, sparse = whole, f"%e, {selector},"
        for warp in range(4):
            rows = codes[16 * warp : 16 * warp + 16]
            one = warp_registers(rows, wide=BITS[a] >= 16, selector=selector)
            metadata[32 * warp : 32 * warp + 32] = one
    if a == "b1":
        x_bits, y_bits = (np.packbits(bits, axis=1, bitorder="little") for bits in (x_bits, y_bits))
    dtype = {"f32": "f4", "f16": "f2", "s32": "i4"}[d]
    start = RNG.integers(-50, 50, (64, n)).astype(dtype)
    left, *left_steps = lay_out(x_bits, swizzle, turned[0])
    right, *right_steps = lay_out(y_bits, swizzle, turned[1])
    offset = -(-len(left) // 1024) * 1024
    image = np.frombuffer(left.ljust(offset, b"\0") + right, "u4").copy()
    floats = a in ("f16", "bf16")
    tail = "" if d == "s32" else f", {signs[0]}, {signs[1]}"
    if floats:
        tail += f", {int(turned[1])}" if registers else f", {int(turned[0])}, {int(turned[1])}"
    op = ".and.popc" if a == "b1" else ""
    text = kernel(d, a, b, n, registers=registers, tail=tail, op=op, sparse=sparse)
    sums = to_registers(d, start)
    run(
        text, image, np.uint32(image.nbytes), np.uint64(descriptor(0, *left_steps, swizzle)),
        np.uint64(descriptor(offset, *right_steps, swizzle)), sums.reshape(-1).view("u4"),
        fragments(x_bits) if registers else np.zeros(512, "u4"), np.uint32(adds), metadata,
        image.nbytes,
    )  # fmt: skip
    expected = signs[0] * signs[1] * (x @ y.T) + (start if adds else 0)
    return sums, to_registers(d, expected.astype(dtype))


def emulated(text: str, *arguments: Any) -> None:
    *rest, shared = arguments
    launch(text, "k", *rest, device=Device("sm_90"), block=(128,), shared=shared)


def on_the_gpu(text: str, *arguments: Any) -> None:
    *rest, shared = arguments
    sums = rest[4]
    given = [cl.to_device(x) if isinstance(x, np.ndarray) else int(x) for x in rest]
    cl.load(cl.Image(text.encode()))["k"].launch(*given, grid=1, block=128, shared_memory=shared)
    sums[...] = given[4].numpy()


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("d", "a", "b", "n"), CASES)
@pytest.mark.parametrize("swizzle", ROWS)
def test_products_of_matrices_in_shared_memory(
    d: str, a: str, b: str, n: int, swizzle: str
) -> None:
    got, expected = multiply(d, a, b, n, emulated, swizzle=swizzle)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("d", "a", "b", "n"), CASES)
def test_a_in_registers(d: str, a: str, b: str, n: int) -> None:
    got, expected = multiply(d, a, b, n, emulated, registers=True, swizzle="32B")
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("turned", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("swizzle", ROWS)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_transposed_matrices(kind: str, swizzle: str, turned: tuple[bool, bool]) -> None:
    got, expected = multiply("f32", kind, kind, 128, emulated, swizzle=swizzle, turned=turned)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("signs", [(-1, 1), (1, -1), (-1, -1)])
@pytest.mark.parametrize("adds", [False, True])
def test_signs_and_a_sum_that_is_left_out(signs: tuple[int, int], adds: bool) -> None:
    got, expected = multiply("f32", "f16", "f16", 16, emulated, signs=signs, adds=adds)
    np.testing.assert_array_equal(got, expected)


def with_a_base_offset(run: Any, swizzle: str) -> Any:
    """Move both matrices, and the patterns of their swizzle, 384 bytes on."""
    base = (384 >> 7) % {"32B": 2, "64B": 4, "128B": 8}[swizzle]

    def moved(text: str, *arguments: Any) -> None:
        text = text.replace("mov.u32 %here, box;", "mov.u32 %here, box; add.u32 %here, %here, 384;")
        *rest, shared = arguments
        for i in (2, 3):
            rest[i] = rest[i] | np.uint64(base << 49)
        run(text, *rest, shared + 384)

    return moved


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
def test_a_pattern_that_begins_within_1024_bytes(swizzle: str) -> None:
    got, expected = multiply(
        "f32", "f16", "f16", 64, with_a_base_offset(emulated, swizzle), swizzle=swizzle
    )
    np.testing.assert_array_equal(got, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
def test_hardware_has_the_same_base_offset(swizzle: str) -> None:
    if not cl.driver.Device().arch.startswith("sm_90"):
        pytest.skip("needs sm_90")
    got, expected = multiply(
        "f32", "f16", "f16", 64, with_a_base_offset(on_the_gpu, swizzle), swizzle=swizzle
    )
    np.testing.assert_array_equal(got, expected)


# In rows of 32 bytes, B of a sparse product does not fit.
SPARSE = [
    (d, a, b, n, selector)
    for d, a, b, n in CASES
    if a != "b1"
    for selector in range(2 if BITS[a] >= 16 else 1)
]


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize("swizzle", ["none", "64B", "128B"])
@pytest.mark.parametrize(("d", "a", "b", "n", "selector"), SPARSE)
def test_sparse_products(d: str, a: str, b: str, n: int, selector: int, swizzle: str) -> None:
    for registers in (False, True):
        got, expected = multiply(
            d, a, b, n, emulated, swizzle=swizzle, registers=registers, selector=selector
        )
        np.testing.assert_array_equal(got, expected, err_msg=f"registers {registers}")


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(("d", "a"), [("f32", "f16"), ("f32", "tf32"), ("s32", "s8")])
def test_chunks_of_zeros_may_have_any_metadata(d: str, a: str, registers: bool) -> None:
    got, expected = multiply(
        d, a, a, 64, emulated, swizzle="128B", registers=registers, selector=0, zero_codes=True
    )
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("turned", [(True, False), (False, True), (True, True)])
def test_sparse_products_of_transposed_matrices(turned: tuple[bool, bool]) -> None:
    got, expected = multiply(
        "f32", "f16", "f16", 64, emulated, swizzle="128B", turned=turned, selector=1
    )
    np.testing.assert_array_equal(got, expected)


@pytest.mark.needs("ml_dtypes")
def test_rows_that_are_too_short_are_refused() -> None:
    with pytest.raises(Fault, match="64 bytes along the depth, in rows of 32 bytes"):
        multiply("f32", "f16", "f16", 16, emulated, swizzle="32B", selector=0)


@pytest.mark.gpu
@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("d", "a", "b", "n", "selector"), SPARSE)
def test_hardware_gives_the_same_sparse_products(
    d: str, a: str, b: str, n: int, selector: int
) -> None:
    if not cl.driver.Device().arch.startswith("sm_90"):
        pytest.skip("needs sm_90")
    for swizzle, registers in itertools.product(["none", "64B", "128B"], (False, True)):
        got, expected = multiply(
            d, a, b, n, on_the_gpu, swizzle=swizzle, registers=registers, selector=selector
        )
        np.testing.assert_array_equal(got, expected, err_msg=f"{swizzle} {registers}")


def test_a_matrix_outside_of_shared_memory_is_a_fault() -> None:
    def run(text: str, *arguments: Any) -> None:
        emulated(text, *arguments[:3], np.uint64(0x3000), *arguments[4:])

    with pytest.raises(Fault, match="wgmma reads shared address"):
        multiply("f32", "f16", "f16", 16, run)


@pytest.mark.gpu
@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("d", "a", "b", "n"), CASES)
def test_hardware_gives_the_same_products(d: str, a: str, b: str, n: int) -> None:
    if not cl.driver.Device().arch.startswith("sm_90"):
        pytest.skip("needs sm_90")
    turns = [(False, False)]
    if BITS[a] == 16:
        turns = list(itertools.product((False, True), repeat=2))
    for swizzle, turned in itertools.product(ROWS, turns):
        got, expected = multiply(d, a, b, n, on_the_gpu, swizzle=swizzle, turned=turned)
        np.testing.assert_array_equal(got, expected, err_msg=f"{swizzle} {turned}")
    for signs in ((1, 1), (-1, 1), (1, -1)) if d != "s32" else ((1, 1),):
        got, expected = multiply(d, a, b, n, on_the_gpu, registers=True, signs=signs, adds=False)
        np.testing.assert_array_equal(got, expected, err_msg=f"registers {signs}")
