"""tcgen05.mma: sparse A, K of 96, masks of zero columns, shifted rows; ld.red, and descriptors."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault
from matrix_layout import lay_out
from tcgen05_products import describe, elements, in_memory, kernel, multiply

CASES = [
    ("f16", "f16", "f16", 0, 0), ("f16", "bf16", "bf16", 0, 1), ("tf32", "tf32", "tf32", 0, 1),
    ("f8f6f4", "e4m3", "e2m3", 0, 0), ("f8f6f4", "e2m1", "e4m3", 0, 0), ("i8", "s8", "u8", 0, 0),
    ("mxf8f6f4", "e5m2", "e3m2", 1, 0), ("mxf4", "e2m1", "e2m1", 2, 0),
    ("mxf4nvf4", "e2m1", "e2m1", 4, 0),
]  # fmt: skip


def check(kind: str, out: np.ndarray, expected: np.ndarray, n: int = 64) -> None:
    dtype = "i4" if kind == "i8" else "f4"
    np.testing.assert_array_equal(out.view(dtype)[:, :n], expected.astype(dtype))


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("kind", "a", "b", "vector", "selector"), CASES)
@pytest.mark.parametrize("swizzle", ["none", "64B", "128B"])
def test_sparse_products(
    kind: str, a: str, b: str, vector: int, selector: int, swizzle: str
) -> None:
    d = 2 if kind == "i8" else 1
    out, expected = multiply(kind, a, b, d=d, vector=vector, selector=selector, swizzle=swizzle)
    check(kind, out, expected)


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("kind", "a"), [("f16", "f16"), ("f8f6f4", "e4m3"), ("tf32", "tf32")])
def test_a_sparse_matrix_in_tensor_memory(kind: str, a: str) -> None:
    out, expected = multiply(kind, a, a, selector=0, tensor=True)
    check(kind, out, expected)


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("m", "ws"), [(64, False), (64, True), (32, True)])
@pytest.mark.parametrize("kind", ["f16", "f8f6f4"])
def test_sparse_matrices_of_fewer_rows(kind: str, m: int, ws: bool) -> None:
    a = "f16" if kind == "f16" else "e5m2"
    out, expected = multiply(kind, a, a, m=m, n=128, ws=ws, selector=0)
    got = out.view("f4")
    for row, column in np.ndindex(m, 128):
        lane, at = row // 16 * 32 + row % 16, column
        if ws:
            lane, at = row + column // m * m, column % m
        assert got[lane, at] == expected[row, column], (row, column)


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("vector", "scale"), [(2, "ue8m0"), (4, "ue8m0"), (4, "ue4m3")])
@pytest.mark.parametrize("first", [0, 1, 2, 3])
@pytest.mark.parametrize("swizzle", ["none", "64B", "128B"])
def test_k_of_96(vector: int, scale: str, first: int, swizzle: str) -> None:
    out, expected = multiply(
        "mxf4nvf4", "e2m1", "e2m1", vector=vector, scale=scale, depth=96, first=first,
        swizzle=swizzle,
    )  # fmt: skip
    check("mxf4nvf4", out, expected)


def test_a_row_continues_at_a_leading_address() -> None:
    # 48 bytes from byte 96 of a row on: the last 16 are at the beginning of another buffer's row.
    (x, x_bits), (y, y_bits) = elements("e2m1", (128, 96)), elements("e2m1", (64, 96))
    parts, places = [], []
    for bits in (x_bits, y_bits):
        raw = in_memory(bits, "e2m1", packed=True)
        for at, piece in ((96, raw[:, :32]), (0, raw[:, 32:])):
            row = np.zeros((len(raw), 128), "u1")
            row[:, at : at + piece.shape[1]] = piece
            places.append(sum(map(len, parts)) + at)
            parts.append(lay_out(row, "128B", transposed=False)[0])
    image = np.frombuffer(b"".join(parts), "u4").copy()
    left, right = (describe(places[i], places[i + 1], 1024, "128B") | 1 << 52 for i in (0, 2))
    words, out = np.full((128, 32), 0x7F7F7F7F, "u4"), np.zeros((128, 128), "u4")
    word = np.uint32(1 << 7 | 1 << 10 | 1 << 23 | 8 << 17 | 8 << 24 | 1 << 31)
    text = kernel("mxf4.block_scale.block32", ", [%as], [%bs]")
    # Both places of a descriptor are in the dynamic shared memory.
    text = text.replace(
        "ld.param.u32 %w, [word]",
        "shl.b64 %wide, %wide, 16; add.u64 %left, %left, %wide; add.u64 %right, %right, %wide;"
        "ld.param.u32 %w, [word]",
    )
    launch(
        text, "k", image, np.uint32(image.nbytes), np.uint64(left), np.uint64(right), word, words,
        out, np.uint32(0), device=Device("sm_103"), block=(128,), shared=image.nbytes + 16,
    )  # fmt: skip
    check("mxf4", out, x @ y.T)


@pytest.mark.parametrize("selector", [None, 0])
def test_a_swizzle_of_chunks_of_32_bytes(selector: int | None) -> None:
    both = {"swizzle": "atoms", "selector": selector}
    out, expected = multiply("tf32", "tf32", "tf32", turned=(True, True), **both)
    check("tf32", out, expected)
    with pytest.raises(Fault, match="32-byte atoms, but the matrix is not transposed"):
        multiply("tf32", "tf32", "tf32", turned=(True, False), **both)


# Runs of zeros and of columns, by the examples of the manual: the lowest column first.
MASKS = {
    "none": (128, (0,), (0,), 0, 4, 3, 0, ["0000000"]),
    "one": (128, (0,), (0,), 1, 2, 3, 0, ["00001110000111"]),
    "two": (64, (0, 0), (1, 0), 1, 2, 3, 0, ["11100001110000111", "00001110000111"]),
    "four": (
        32, (0, 1, 2, 1), (1, 1, 0, 0), 1, 2, 3, 2,
        ["11100001110000", "1100001110000", "001110000111", "0001110000111"],
    ),
}  # fmt: skip


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize("name", MASKS)
def test_a_mask_of_zero_columns(name: str) -> None:
    m, starts, firsts, used, skip, use, shift, runs = MASKS[name]
    word = used << 39 | skip << 40 | use << 48 | shift << 56
    word |= sum(start << 8 * i for i, start in enumerate(starts))
    word |= sum(first << 32 + i for i, first in enumerate(firsts))

    def edit(text: str) -> str:
        text = text.replace("%w, %adds;", "%w, %adds, %wide;")
        return text.replace("ld.param.u32 %w,", f"mov.b64 %wide, {word}; ld.param.u32 %w,")

    n = 128
    out, expected = multiply("f16", "f16", "f16", m=m, n=n, ws=True, edit=edit, beyond=8)
    got = np.concatenate(np.split(out.view("f4")[:, : n * m // 128], 128 // m), axis=1)
    expected = expected[:, shift : shift + n]
    known = []  # the manual's pictures end early
    for i, run in enumerate(runs):
        for column, bit in enumerate(run, n // len(runs) * i):
            known.append(column)
            if bit == "1":
                expected[:, column] = 0
    np.testing.assert_array_equal(got[:, known], expected[:, known].astype("f4"))


@pytest.mark.needs("ml_dtypes")
def test_shifted_rows_come_from_the_row_before() -> None:
    def edit(text: str) -> str:
        return text.replace("kind::f16 ", "kind::f16.ashift ")

    out, expected = multiply("f16", "f16", "f16", tensor=True, edit=edit)
    check("f16", out, expected[[0, *range(127)]])
    with pytest.raises(Fault, match="ashift with M of 64"):
        multiply("f16", "f16", "f16", m=64, tensor=True, edit=edit)


@pytest.mark.needs("ml_dtypes")
def test_a_pattern_that_begins_within_1024_bytes() -> None:
    # Both matrices and their patterns are 384 bytes behind a multiple of 1024.
    def edit(text: str) -> str:
        text = text.replace("mov.u32 %here, box;", "mov.u32 %here, box; add.u32 %here, %here, 384;")
        base = " ".join(f"or.b64 %{side}, %{side}, {3 << 49};" for side in ("left", "right"))
        return text.replace("ld.param.u32 %w, [word]", base + "ld.param.u32 %w, [word]")

    out, expected = multiply("f16", "f16", "f16", edit=edit, spare=384)
    check("f16", out, expected)


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mma.sp", "mma", "do not agree"),
        ("ld.param.u32 %w, [word]", "mov.b32 %w, 0x8100016", "selector of 2"),
    ],
)
def test_what_is_wrong_with_a_sparse_product_is_said(old: str, new: str, words: str) -> None:
    def edit(text: str) -> str:
        changed = text.replace(old, new)
        return changed if new != "mma" else changed.replace("[%cs], ", "")

    with pytest.raises(Fault, match=words):
        multiply("f16", "f16", "f16", selector=0, edit=edit)


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(
    ("kind", "a", "vector"),
    [("f16", "f16", 0), ("tf32", "tf32", 0), ("i8", "s8", 0), ("mxf8f6f4", "e2m3", 1)],
)
def test_chunks_of_zeros_may_have_any_metadata(kind: str, a: str, vector: int) -> None:
    d = 2 if kind == "i8" else 1
    out, expected = multiply(
        kind, a, a, d=d, vector=vector, selector=0, signs=(int(kind != "i8"), 0), zero_codes=True
    )
    check(kind, out, expected)


@pytest.mark.needs("ml_dtypes")
def test_metadata_without_a_meaning_is_a_fault() -> None:
    def edit(text: str) -> str:
        return text.replace("add.u32 %cs, %i, 272", "add.u32 %cs, %i, 276")

    with pytest.raises(Fault, match="is 0b0000 for elements 0 to 3 of row 0"):
        multiply("f16", "f16", "f16", selector=0, edit=edit)
