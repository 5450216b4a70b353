"""tcgen05.mma: a kernel that multiplies once, and what its product must be."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from emulate import launch
from emulator_internals import Device
from matrix_layout import lay_out
from sparse_rows import draw

RNG = np.random.default_rng(7)
MODES = {"none": 0, "atoms": 1, "128B": 2, "64B": 4, "32B": 6}
HALVES = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
E2M1 = np.array([*HALVES, *(-x for x in HALVES)])
DEPTHS = {"f16": 16, "tf32": 8, "mxf4": 64, "mxf4nvf4": 64}
# The number of a type in an instruction descriptor.
TYPES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
TYPES |= {"u8": 0, "s8": 1}
HEAD = """
.version 8.7
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 box[];
"""


def elements(kind: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return small values, and their bits, one element in each item."""
    if kind == "e2m1":
        bits = RNG.integers(0, 16, shape).astype("u1")
        return E2M1[bits], bits
    low = 0 if kind == "u8" else -4
    values = RNG.integers(low, 5, shape).astype("f8")
    if kind in ("u8", "s8"):
        return values, values.astype("i1").view("u1")
    if kind == "tf32":
        return values, values.astype("f4").view("u4")
    import ml_dtypes

    names = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m3": "float6_e2m3fn",
             "e3m2": "float6_e3m2fn", "f16": "float16", "bf16": "bfloat16"}  # fmt: skip
    dtype = np.dtype(getattr(ml_dtypes, names[kind], "f2"))
    return values, values.astype(dtype).view(f"u{dtype.itemsize}")


def in_memory(bits: np.ndarray, kind: str, packed: bool) -> np.ndarray:
    """Pack elements of 4 and 6 bits as the manual has them in shared memory."""
    if packed:
        return bits[:, ::2] | bits[:, 1::2] << 4
    width = {"e2m1": 4, "e2m3": 6, "e3m2": 6}.get(kind)
    if width is None:
        return bits
    out = np.zeros_like(bits)
    for row, line in enumerate(bits.tolist()):
        for start in range(0, len(line), 16):
            number = sum(x << width * i for i, x in enumerate(line[start : start + 16]))
            out[row, start : start + 16] = list(number.to_bytes(16, "little"))
    return out


def describe(start: int, leading: int, stride: int, swizzle: str) -> int:
    fields = start >> 4 | leading >> 4 << 16 | stride >> 4 << 32
    return fields | 1 << 46 | MODES[swizzle] << 61


# The columns of tensor memory behind the product's that a kernel fills: 32 in all.
SCALES_A, SCALES_B, CODES, LEFT = 0, 8, 16, 24


@functools.cache
def kernel(
    kind: str, tail: str, group: str = "mma.cta_group::1", left: str = "%left", codes: str = ""
) -> str:
    """Fill 32 columns, multiply once, and dump 128 columns of all lanes."""
    fill = " ".join(
        f"ld.global.v4.b32 {{%s{i}, %s{i + 1}, %s{i + 2}, %s{i + 3}}}, [%from+{4 * i}];"
        for i in range(0, 32, 4)
    )
    given = ", ".join(f"%s{i}" for i in range(32))
    d = ", ".join(f"%d{i}" for i in range(128))
    dump = " ".join(f"st.global.b32 [%at+{4 * i}], %d{i};" for i in range(128))
    return f"""{HEAD}
.visible .entry k(.param .u64 image, .param .u32 bytes, .param .u64 left, .param .u64 right,
                  .param .u32 word, .param .u64 scales, .param .u64 out, .param .u32 adds) {{
    .reg .b32 %d<128>, %s<32>, %i, %n, %t, %u, %w, %here, %own, %as, %bs, %cs, %ls;
    .reg .pred %p, %one, %adds; .reg .b64 %from, %at, %left, %right, %wide;
    mov.u32 %i, %tid.x; shl.b32 %i, %i, 2; ld.param.u32 %n, [bytes]; mov.u32 %here, box;
    LOOP: setp.ge.u32 %p, %i, %n; @%p bra DONE;
    ld.param.u64 %from, [image]; cvt.u64.u32 %wide, %i; add.u64 %from, %from, %wide;
    ld.global.b32 %w, [%from]; add.u32 %t, %here, %i; st.shared.b32 [%t], %w;
    add.u32 %i, %i, 512; bra LOOP;
    DONE: add.u32 %n, %here, %n; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32;
    setp.eq.u32 %one, %t, 0; @%one mbarrier.init.shared.b64 [%n+8], 1;
    @%p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%n], 512;
    @%p tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    fence.proxy.async.shared::cta; bar.sync 0; ld.shared.b32 %i, [%n];
    mul.wide.u32 %at, %t, 128; ld.param.u64 %from, [scales]; add.u64 %from, %from, %at; {fill}
    and.b32 %own, %t, 96; shl.b32 %own, %own, 16;
    add.u32 %as, %i, {256 + SCALES_A}; add.u32 %bs, %i, {256 + SCALES_B};
    add.u32 %cs, %i, {256 + CODES}; add.u32 %ls, %i, {256 + LEFT}; add.u32 %u, %as, %own;
    tcgen05.st.sync.aligned.32x32b.x32.b32 [%u], {{{given}}};
    tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;
    shr.u32 %w, %here, 4; cvt.u64.u32 %wide, %w;
    ld.param.u64 %left, [left]; add.u64 %left, %left, %wide;
    ld.param.u64 %right, [right]; add.u64 %right, %right, %wide;
    ld.param.u32 %w, [word]; ld.param.u32 %u, [adds]; setp.ne.u32 %adds, %u, 0;
    @%one tcgen05.{group}.kind::{kind} [%i], {left}, %right, {codes}%w{tail}, %adds;
    @%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%n+8];
    WAIT: mbarrier.try_wait.parity.shared.b64 %adds, [%n+8], 0; @!%adds bra WAIT;
    add.u32 %u, %i, %own;
    tcgen05.ld.sync.aligned.32x32b.x128.b32 {{{d}}}, [%u]; tcgen05.wait::ld.sync.aligned;
    ld.param.u64 %at, [out]; mad.wide.u32 %at, %t, 512, %at; {dump} bar.sync 0;
    @%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %i, 512; ret;
}}"""


def multiply(
    kind: str, a: str, b: str, *, m: int = 128, n: int = 64, d: int = 1, swizzle: str = "128B",
    turned: tuple[bool, bool] = (False, False), signs: tuple[int, int] = (0, 0), vector: int = 0,
    ws: bool = False, scale: str = "ue8m0", selector: int | None = None, depth: int = 0,
    tensor: bool = False, beyond: int = 0, **options: Any,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return the dump of tensor memory, and the exact product.

    With a `selector`, A is sparse; with `tensor`, it is in tensor memory. B has `beyond` columns
    behind those of the product. With `zero_codes`, chunks of zeros have metadata of 0, as CUTLASS's
    compressors write them.
    """
    depth, packed = depth or DEPTHS.get(kind, 32), kind.startswith("mxf4")
    whole = depth if selector is None else 2 * depth
    (x, x_bits), (y, y_bits) = elements(a, (m, depth)), elements(b, (n + beyond, whole))
    left, *left_steps = lay_out(in_memory(x_bits, a, packed), swizzle, turned[0])
    right, *right_steps = lay_out(in_memory(y_bits, b, packed), swizzle, turned[1])
    offset = -(-len(left) // 1024) * 1024
    image = np.frombuffer(left.ljust(offset, b"\0") + right, "u4").copy()
    types = [1 if packed else TYPES[k] for k in (a, b)]
    word = types[0] << 7 | types[1] << 10 | signs[0] << 13 | signs[1] << 14
    edit = options.pop("edit", None) or (lambda text: text)
    word |= int(turned[0]) << 15 | int(turned[1]) << 16 | n >> 3 << 17 | m >> 4 << 24
    words, tail, name, codes = np.zeros((128, 32), "u4"), "", kind, ""
    if tensor:
        raw = np.ascontiguousarray(in_memory(x_bits, a, packed)).view("u4")
        words[lanes_of(m, ws), LEFT : LEFT + raw.shape[1]] = raw
    if selector is not None:
        mask, found = draw(RNG, m, whole, size={8: 2, 64: 8}.get(depth, 4))
        empty = ~x.reshape(*found.shape, -1).any(axis=-1)
        if options.pop("zero_codes", False):
            assert empty.any()
            found[empty] = 0
        x = place(x, mask)
        put_codes(words[:, CODES:], found, lanes_of(m, ws), selector, wide=depth <= 16)
        word, codes = word | 4 | (selector if depth <= 16 else 0), "[%cs], "
    if vector:
        first = options.pop("first", 1 if vector == 1 else 0)
        word |= first << 29 | first << 4 | (scale == "ue8m0") << 23 | (depth == 96) << 31
        count = vector * 3 // 2 if depth == 96 else vector
        name += (
            f".block_scale.block{whole // count}"
            if depth == 96
            else (f".block_scale.scale_vec::{vector}X")
        )
        tail = ", [%as], [%bs]"
        octets = words.view("u1").reshape(4, 32, 32, 4)
        factors = []
        for rows, at in ((m, SCALES_A), (n, SCALES_B)):
            power = RNG.integers(-3, 4, (rows, count))
            code = power + 127 if scale == "ue8m0" else power + 7 << 3
            factors.append(np.repeat(2.0**power, whole // count, axis=1))
            for row, i in np.ndindex(rows, count):
                byte = first + i
                octets[:, row % 32, at + row // 32 + byte // 4 * 4, byte % 4] = code[row, i]
        x, y = x * factors[0], y * factors[1]
    else:
        word |= d << 4
    out = np.zeros((128, 128), "u4")
    group = "mma.ws" if ws else "mma"
    group += (".sp" if codes else "") + ".cta_group::1"
    size = np.uint32(image.nbytes)
    device = options.pop("device", None) or Device("sm_103")
    text = edit(kernel(name, tail, group, "[%ls]" if tensor else "%left", codes))
    adds, spare = np.uint32(options.pop("adds", 0)), options.pop("spare", 0)
    places = (describe(0, *left_steps, swizzle), describe(offset, *right_steps, swizzle))
    assert not options
    launch(
        text, "k", image, size, *map(np.uint64, places), np.uint32(word), words, out, adds,
        device=device, block=(128,), shared=image.nbytes + spare + 16,
    )  # fmt: skip
    return out, (-1) ** sum(signs) * (x @ y.T)


def lanes_of(m: int, ws: bool) -> np.ndarray:
    """Return the lanes of the rows of A."""
    row = np.arange(m)
    return row if ws or m > 64 else row // 16 * 32 + row % 16


def place(stored: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return whole rows of a sparse matrix."""
    whole = np.zeros(mask.shape)
    whole[mask] = stored.reshape(-1)
    return whole


def put_codes(
    words: np.ndarray, codes: np.ndarray, lanes: np.ndarray, selector: int, *, wide: bool
) -> None:
    """Put metadata into columns, as CUTLASS lays it out."""
    for row, chunk in np.ndindex(codes.shape):
        lane, column, at = lanes[row], chunk // 8, 4 * (chunk % 8)
        if wide:  # a word has two rows, eight further
            lane = lanes[row // 16 * 16] + row % 8 + 8 * (chunk // 4)
            column, at = selector, 16 * (row // 8 % 2) + 4 * (chunk % 4)
        words[lane, column] |= codes[row, chunk] << np.uint32(at)
