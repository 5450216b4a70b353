"""wmma: load from memory, multiply, store, in every shape, type and layout."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulator_internals import matrix as mx

DTYPES = {"f64": np.float64, "f32": np.float32, "tf32": np.float32, "f16": np.float16,
          "bf16": ml_dtypes.bfloat16, "s8": np.int8, "u8": np.uint8, "s32": np.int32}  # fmt: skip
BYTES = {"f64": 8, "f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "s8": 1, "u8": 1, "s32": 4}
WARPS = 2

# shape, a and b, c, d, and the registers that PTX gives a, b and c
FORMS = [
    *((s, "f16", c, d, 8, 8, 4 if c == "f16" else 8) for s in ("m16n16k16", "m32n8k16", "m8n32k16")
      for c in ("f16", "f32") for d in ("f16", "f32")),
    ("m16n16k16", "bf16", "f32", "f32", 4, 4, 8),
    ("m32n8k16", "bf16", "f32", "f32", 8, 2, 8),
    ("m8n32k16", "bf16", "f32", "f32", 2, 8, 8),
    ("m16n16k16", "s8", "s32", "s32", 2, 2, 8),
    ("m32n8k16", "u8", "s32", "s32", 4, 1, 8),
    ("m8n32k16", "s8", "s32", "s32", 1, 4, 8),
    ("m16n16k8", "tf32", "f32", "f32", 4, 4, 8),
    ("m8n8k4", "f64", "f64", "f64", 1, 1, 2),
]  # fmt: skip


def extents(shape):
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def draw(rng, kind, shape):
    if kind in ("s8", "u8", "s32"):
        low, high = (-1000, 1000) if kind == "s32" else (0, 256)
        return rng.integers(low, high, shape).astype(DTYPES[kind])
    # Few bits: every sum is exact, in whatever order.
    return (rng.integers(-8, 9, shape) / 4).astype(DTYPES[kind])


def place(matrices, layout, stride):
    """Lay matrices of shape (warps, rows, columns) out in memory, one after the other."""
    if layout == "col":
        matrices = matrices.transpose(0, 2, 1)
    padded = np.zeros((*matrices.shape[:2], stride), matrices.dtype)
    padded[..., : matrices.shape[2]] = matrices
    return padded


def load(memory, shape, operand, kind, layout, stride):
    offsets, size = mx.wmma_access(shape, operand, kind, layout, stride)
    raw = memory.reshape(WARPS, -1).view(np.uint8)
    places = np.broadcast_to(offsets, (WARPS, *offsets.shape[1:]))
    assert (offsets % size == 0).all()
    words = raw.view(f"u{size}")
    items = np.stack([words[w][places[w] // size] for w in range(WARPS)])
    return mx.wmma_pack(kind, items)


@pytest.mark.parametrize(
    "layouts", [("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")]
)
@pytest.mark.parametrize("form", FORMS, ids=lambda f: "-".join(map(str, f[:4])))
def test_load_multiply_store(form, layouts):
    shape, kind, c_kind, d_kind, *counts = form
    m, n, k = extents(shape)
    rng = np.random.default_rng(4)
    a, b, c = (
        draw(rng, t, (WARPS, *size))
        for t, size in ((kind, (m, k)), (kind, (k, n)), (c_kind, (m, n)))
    )
    stride = 40
    registers = []
    for name, matrix, layout, t in zip("abc", (a, b, c), (*layouts, layouts[1]),
                                       (kind, kind, c_kind), strict=True):  # fmt: skip
        memory = place(matrix, layout, stride)
        registers.append(load(memory, shape, name, t, layout, stride))
    assert [len(r) for r in registers] == counts
    got = mx.wmma_mma(shape, (d_kind, kind, kind, c_kind), *registers)
    width = np.uint64 if d_kind == "f64" else np.uint32
    assert all(r.shape == (WARPS, 32) and r.dtype == width for r in got)

    items = mx.wmma_unpack(d_kind, got)
    offsets, size = mx.wmma_access(shape, "d", d_kind, layouts[0], stride)
    out = np.zeros((WARPS, m if layouts[0] == "row" else n, stride), DTYPES[d_kind])
    flat = out.reshape(WARPS, -1).view(f"u{size}")
    for w in range(WARPS):
        flat[w][offsets[0] // size] = items[w]
    d = out[..., : n if layouts[0] == "row" else m]
    d = d if layouts[0] == "row" else d.transpose(0, 2, 1)
    wide = np.int64 if d_kind == "s32" else np.float64
    want = a.astype(wide) @ b.astype(wide) + c.astype(wide)
    np.testing.assert_array_equal(d.astype(wide), want)


def test_a_stride_for_each_warp():
    stride = np.array([16, 24])
    offsets, size = mx.wmma_access("m16n16k16", "c", "f32", "row", stride)
    assert size == 4
    assert offsets.shape == (2, 32, 8)
    assert offsets[0].max() == (15 * 16 + 15) * 4
    assert offsets[1].max() == (15 * 24 + 15) * 4
    by_lane = np.repeat(stride[:, None], 32, axis=1)
    assert (mx.wmma_access("m16n16k16", "c", "f32", "row", by_lane)[0] == offsets).all()


@pytest.mark.parametrize(("shape", "kind", "width"), [("m8n8k32", "s4", 4), ("m8n8k32", "u4", 4),
                                                      ("m8n8k128", "b1", 1)])  # fmt: skip
def test_elements_narrower_than_a_byte(shape, kind, width):
    m, n, k = extents(shape)
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 1 << width, (WARPS, 8, k)).astype(np.uint8) for _ in range(2))
    c = rng.integers(-100, 100, (WARPS, m, n)).astype(np.int32)

    def packed(matrix):
        if width == 1:
            return np.packbits(matrix, axis=-1, bitorder="little")
        return matrix[..., ::2] | matrix[..., 1::2] << 4

    registers = [
        load(packed(a), shape, "a", kind, "row", k),
        load(packed(b), shape, "b", kind, "col", k),
        load(c, shape, "c", "s32", "row", n),
    ]
    assert [len(r) for r in registers] == [1, 1, 2]
    got = mx.wmma_mma(shape, ("s32", kind, kind, "s32"), *registers, operation="xor")
    d = mx.wmma_unpack("s32", got).reshape(WARPS, m, n).view(np.int32)
    x, y = (v.astype(np.int64) - (16 * (v > 7) if kind == "s4" else 0) for v in (a, b))
    if kind == "b1":
        want = (x[:, :, None] ^ y[:, None]).sum(-1) + c
    else:
        want = x @ y.transpose(0, 2, 1) + c
    assert (d == want).all()
    again = mx.wmma_unpack(kind, registers[0])
    assert (again[..., 0].reshape(WARPS, -1).view(np.uint8) == packed(a).reshape(WARPS, -1)).all()


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"wmma of tf32 has m16n16k8 \(got m16n16k16\)"):
        mx.wmma_access("m16n16k16", "a", "tf32", "row", 16)
    with pytest.raises(ValueError, match=r"layout must be row or col \(got 'diagonal'\)"):
        mx.wmma_access("m16n16k16", "a", "f16", "diagonal", 16)
    one = [np.zeros((1, 32), np.uint32)]
    with pytest.raises(ValueError, match=r"a must have 8 registers for m16n16k16 of f16 \(got 1\)"):
        mx.wmma_mma("m16n16k16", ("f32", "f16", "f16", "f32"), one, one, one)
