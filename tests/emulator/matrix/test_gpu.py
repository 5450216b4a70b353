"""mma against a GPU: integers bit for bit, floating point within the stated bound."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from emulator_internals import matrix as mx

import culaunch as cl

pytestmark = pytest.mark.gpu

WARPS = 64
WIDTHS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8,
          "s4": 4, "u4": 4, "b1": 1}  # fmt: skip
DTYPES = {"f64": np.float64, "f32": np.float32, "tf32": np.float32, "f16": np.float16,
          "bf16": ml_dtypes.bfloat16}  # fmt: skip

# shape, the types of d, a, b and c, and what the instruction adds to its name
FORMS = [
    *((s, (d, "f16", "f16", d), "") for s in ("m16n8k8", "m16n8k16") for d in ("f16", "f32")),
    *((s, ("f32", "bf16", "bf16", "f32"), "") for s in ("m16n8k8", "m16n8k16")),
    *((s, ("f32", "tf32", "tf32", "f32"), "") for s in ("m16n8k4", "m16n8k8")),
    ("m8n8k4", ("f64",) * 4, ""),
    *((s, ("s32", "s8", "u8", "s32"), "") for s in ("m8n8k16", "m16n8k16", "m16n8k32")),
    *((s, ("s32", "u4", "s4", "s32"), "") for s in ("m8n8k32", "m16n8k32", "m16n8k64")),
    *((s, ("s32", "b1", "b1", "s32"), ".and.popc") for s in ("m16n8k128", "m16n8k256")),
    ("m8n8k128", ("s32", "b1", "b1", "s32"), ".xor.popc"),
    ("m16n8k32", ("s32", "s8", "s8", "s32"), ".satfinite"),
]


def extents(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def counts(shape: str, types) -> list[int]:
    """Count the registers of d, a, b and c."""
    m, n, k = extents(shape)
    sizes = (m * n, m * k, k * n, m * n)
    return [
        size * WIDTHS[t] // 32 // (64 if t == "f64" else 32)
        for size, t in zip(sizes, types, strict=True)
    ]


def assemble(shape: str, types, extra: str) -> str:
    instruction = f"mma.sync.aligned.{shape}.row.col"
    if extra == ".satfinite":
        instruction += extra
        extra = ""
    lines = [
        ".version 7.8\n.target sm_80\n.address_size 64",
        ".visible .entry k(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc) {",
        ".reg .b32 %i<8>; .reg .b64 %at<8>;",
        "mov.u32 %i0, %ctaid.x; mov.u32 %i1, %ntid.x; mov.u32 %i2, %tid.x;",
        "mov.u32 %i4, %nctaid.x; mad.lo.u32 %i3, %i0, %i1, %i2; mul.lo.u32 %i4, %i4, %i1;",
    ]
    vectors, stores = [], []
    for slot, (name, t, count) in enumerate(zip("dabc", types, counts(shape, types), strict=True)):
        bits = 64 if t == "f64" else 32
        # Accumulators and doubles have typed registers, the packed ones are bits.
        kind = t if t in ("f64", "f32", "s32") else "b32"
        lines.append(f".reg .{kind} %{name}<{count}>;")
        lines.append(f"ld.param.u64 %at{slot}, [p{name}]; cvta.to.global.u64 %at{slot}, %at{slot};")
        lines.append(f"mul.lo.u32 %i5, %i4, {bits // 8};")
        lines.append(f"mad.wide.u32 %at{slot}, %i3, {bits // 8}, %at{slot};")
        lines.append("cvt.u64.u32 %at7, %i5;")
        for i in range(count):
            if name == "d":
                stores.append(f"st.global.{kind} [%at0], %d{i};")
                stores.append("cvt.u64.u32 %at7, %i6; add.u64 %at0, %at0, %at7;")
            else:
                lines.append(f"ld.global.{kind} %{name}{i}, [%at{slot}];")
                lines.append(f"add.u64 %at{slot}, %at{slot}, %at7;")
        if name == "d":
            lines.append("mov.u32 %i6, %i5;")
        vectors.append("{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}")
    lines.append(f"{instruction}.{'.'.join(types)}{extra} {', '.join(vectors)};")
    return "\n".join([*lines, *stores, "ret; }"]) + "\n"


def draw(rng, t: str, count: int) -> np.ndarray:
    """Draw registers, of shape (count, WARPS, 32)."""
    if t not in DTYPES:
        return rng.integers(0, 1 << 32, (count, WARPS, 32), dtype=np.uint32)
    per_register = max(32 // WIDTHS[t], 1)
    shape = (count, WARPS, 32 * per_register)
    values = rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))
    return values.astype(DTYPES[t]).view(np.uint64 if t == "f64" else np.uint32)


@pytest.mark.parametrize(
    ("shape", "types", "extra"), FORMS, ids=["-".join([f[0], *f[1]]) + f[2] for f in FORMS]
)
def test_the_gpu_agrees(shape, types, extra):
    rng = np.random.default_rng(6)
    numbers = counts(shape, types)
    a, b, c = (draw(rng, t, n) for t, n in zip(types[1:], numbers[1:], strict=True))
    out = cl.empty((numbers[0], WARPS, 32), a.dtype)
    kernel = cl.load(cl.Image(assemble(shape, types, extra).encode()))["k"]
    kernel[WARPS // 4, 128](out, cl.to_device(a), cl.to_device(b), cl.to_device(c))
    operation = "xor" if "xor" in extra else "and"
    flags = {"satfinite": extra == ".satfinite", "operation": operation}
    want, got = np.stack(mx.mma(shape, types, a, b, c, **flags)), out.numpy()
    if types[0] == "s32":
        np.testing.assert_array_equal(got, want)
        return
    x, y = (v.view(DTYPES[types[0]]).astype(np.float64) for v in (want, got))
    # The sum of magnitudes, by the same instruction on magnitudes.
    sizes = [v & ~np.array(1 << 63 if v.dtype == np.uint64 else sign(t), v.dtype)
             for v, t in zip((a, b, c), types[1:], strict=True)]  # fmt: skip
    total = np.stack(mx.mma(shape, types, *sizes)).view(DTYPES[types[0]]).astype(np.float64)
    _, _, k = extents(shape)
    bits = {"f64": 52, "f32": 23, "f16": 23}[types[0]]
    bound = (k + 4) * math.ldexp(1, -bits) * total
    if types[0] == "f16":
        bound += np.spacing(np.abs(y).astype(np.float16)).astype(np.float64)
    worst = np.max(np.abs(x - y) / np.where(total > 0, total, 1)) * 2.0**bits
    wrong = np.abs(x - y) > bound
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size}, the worst {worst:.1f} units of the sum"


def sign(t: str) -> int:
    return 0x80008000 if WIDTHS[t] == 16 else 0x80000000
