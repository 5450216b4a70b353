"""Tensor maps that a kernel makes with tensormap.replace, and the boxes that they name."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Options

import culaunch as cl
from culaunch import testing

# One block makes a map of 24 rows and 32 columns, 48 elements apart, and reads a box of 8 x 16.
SOURCE = r"""
typedef unsigned long long u64;
struct alignas(128) Map { u64 words[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
#define REPLACE(FIELD, TYPE, ...) \
  asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024." TYPE " [%0], " __VA_ARGS__)
extern "C" __global__ void box(unsigned char* raw, const void* from, Map* map, int x, int y) {
  __shared__ Map made;
  __shared__ __align__(1024) unsigned char part[BYTES];
  __shared__ u64 bar;
  if (threadIdx.x < 16) made.words[threadIdx.x] = 0;
  __syncwarp();
  if (threadIdx.x == 0) {
    REPLACE("global_address", "b64", "%1;" ::"r"(at(&made)), "l"(from) : "memory");
    REPLACE("rank", "b32", "%1;" ::"r"(at(&made)), "r"(1) : "memory");
    REPLACE("box_dim", "b32", "0, %1;" ::"r"(at(&made)), "r"(16) : "memory");
    REPLACE("box_dim", "b32", "1, %1;" ::"r"(at(&made)), "r"(8) : "memory");
    REPLACE("global_dim", "b32", "0, %1;" ::"r"(at(&made)), "r"(32) : "memory");
    REPLACE("global_dim", "b32", "1, %1;" ::"r"(at(&made)), "r"(24) : "memory");
    REPLACE("global_stride", "b64", "0, %1;" ::"r"(at(&made)), "l"((u64)(48 * ITEM)) : "memory");
    REPLACE("element_stride", "b32", "0, %1;" ::"r"(at(&made)), "r"(1) : "memory");
    REPLACE("element_stride", "b32", "1, %1;" ::"r"(at(&made)), "r"(LAST) : "memory");
    REPLACE("elemtype", "b32", ELEMENT ";" ::"r"(at(&made)) : "memory");
    REPLACE("interleave_layout", "b32", "0;" ::"r"(at(&made)) : "memory");
    REPLACE("swizzle_mode", "b32", SWIZZLE ";" ::"r"(at(&made)) : "memory");
    REPLACE("fill_mode", "b32", FILL ";" ::"r"(at(&made)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
  }
  __syncwarp();
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
      " [%0], [%1], 128; fence.proxy.tensormap::generic.acquire.gpu [%0], 128;"
      ::"l"(map), "r"(at(&made)) : "memory");
  __syncwarp();
  if (threadIdx.x == 0)
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%4], %5;"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];"
        ::"r"(at(part)), "l"(map), "r"(x), "r"(y), "r"(at(&bar)), "r"(SENT) : "memory");
  __syncwarp();
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
               "@!p bra AGAIN; }" ::"r"(at(&bar)) : "memory");
  for (int i = threadIdx.x; i < SENT; i += 32) raw[i] = part[i];
}
"""
# NumPy's type, and the number of PTX.
TYPES = {
    "u8": ("u1", 0), "u16": ("u2", 1), "u32": ("u4", 2), "s32": ("i4", 3), "u64": ("u8", 4),
    "s64": ("i8", 5), "f16": ("u2", 6), "f32": ("u4", 7), "f32.ftz": ("u4", 8),
    "f64": ("u8", 9), "bf16": ("u2", 10), "tf32": ("u4", 11), "tf32.ftz": ("u4", 12),
}  # fmt: skip
ROWS, WIDTH, BOX = 24, 48, (8, 16)
CORNERS = ((0, 0), (3, 16), (20, 16), (-2, -16))  # columns at multiples of 16 bytes


@functools.cache
def ptx(kind: str, swizzle: int = 0, fill: int = 0, last: int = 1) -> str:
    dtype, number = TYPES[kind]
    item = np.dtype(dtype).itemsize
    size = BOX[0] * BOX[1] * item
    words = {
        "ITEM": item, "BYTES": size, "LAST": last, "SENT": size // max(last, 1),
        "ELEMENT": f'"{number}"', "SWIZZLE": f'"{swizzle}"', "FILL": f'"{fill}"',
    }  # fmt: skip
    text = "".join(f"#define {name} {value}\n" for name, value in words.items()) + SOURCE
    return cl.compile(text, arch="compute_90a").data.decode()


def elements(kind: str) -> np.ndarray:
    """Return a tensor at a multiple of 16 bytes; floats of every type are normal numbers."""
    dtype = np.dtype(TYPES[kind][0])
    raw = np.zeros(ROWS * WIDTH * dtype.itemsize + 16, "u1")
    start = -raw.ctypes.data % 16
    x = raw[start : start + ROWS * WIDTH * dtype.itemsize].view(dtype).reshape(ROWS, WIDTH)
    top = 0x3C00 << 8 * (dtype.itemsize - 2) if kind[0] in "fbt" else 1
    x[...] = np.arange(x.size).reshape(x.shape) % 200 + top
    if kind.startswith("tf32"):
        x[...] = x & ~np.uint32(0x1FFF)  # the bits that it has
    return x


def emulated(text: str, x: np.ndarray, corner: tuple[int, int]) -> np.ndarray:
    raw, scratch = np.zeros(BOX[0] * BOX[1] * x.itemsize, "u1"), np.zeros(256, "u1")
    scratch = scratch[-scratch.ctypes.data % 128 :][:128]
    device = Device("sm_90", Options(check_races=True, time_limit=20))
    places = np.int32(corner[1]), np.int32(corner[0])
    launch(text, "box", raw, x.reshape(-1), scratch, *places, device=device)
    return raw


def expected(x: np.ndarray, corner: tuple[int, int]) -> np.ndarray:
    """Return the box, with zeros outside of the first 32 columns."""
    framed = np.zeros((ROWS + 64, 32 + 64), x.dtype)
    framed[32:-32, 32:-32] = x[:, :32]
    rows, columns = (slice(32 + c, 32 + c + b) for c, b in zip(corner, BOX, strict=True))
    return framed[rows, columns]


@pytest.mark.parametrize("kind", TYPES)
def test_a_box_of_each_type(kind: str) -> None:
    x = elements(kind)
    for corner in CORNERS:
        raw = emulated(ptx(kind), x, corner)
        np.testing.assert_array_equal(raw.view(x.dtype).reshape(BOX), expected(x, corner))


@pytest.mark.gpu
@pytest.mark.parametrize(("swizzle", "fill"), [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize("kind", TYPES)
def test_a_box_is_the_gpus(kind: str, swizzle: int, fill: int) -> None:
    is_float = kind[0] in "fbt"
    if (fill and not is_float) or (swizzle and TYPES[kind][0] != "u2"):
        swizzle = fill = 0
    text, x = ptx(kind, swizzle, fill), elements(kind)
    with testing.use_driver("cuda"), cl.load(cl.Image(text.encode())) as module:
        given, map_ = cl.to_device(x.reshape(-1)), cl.zeros(128, "uint8")
        for corner in CORNERS:
            raw = cl.zeros(BOX[0] * BOX[1] * x.itemsize, "uint8")
            module["box"].launch(
                raw.address, given.address, map_.address, corner[1], corner[0], grid=1, block=32
            )
            np.testing.assert_array_equal(emulated(text, x, corner), raw.numpy())


def test_a_stride_of_elements_takes_every_second_row() -> None:
    x = elements("f32")
    raw = emulated(ptx("f32", last=2), x, (0, 0))
    got = raw.view(x.dtype)[: 4 * 16].reshape(4, 16)
    np.testing.assert_array_equal(got, x[:8:2, :16])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (lambda: ptx("f32", swizzle=4), "swizzle_mode 4 .at most 3. is not emulated"),
        (lambda: ptx("f32", last=0), "not a tensor map of this driver"),
        (lambda: ptx("f32").replace(".version 9", ".version 7", 1), "before PTX 8.6"),
    ],
    ids=["swizzle", "incomplete", "version"],
)
def test_what_is_wrong_with_a_map_is_said(text: Any, words: str) -> None:
    with pytest.raises(Fault, match=words):
        emulated(text(), elements("f32"), (0, 0))


def test_a_column_begins_at_a_multiple_of_16_bytes() -> None:
    with pytest.raises(Fault, match="the first coordinate 5 is not a multiple of 16 bytes"):
        emulated(ptx("f32"), elements("f32"), (3, 5))


def test_a_stride_is_a_multiple_of_16_bytes() -> None:
    x = elements("f32")
    raw = emulated(ptx("f32").replace(f", {WIDTH * 4};", f", {WIDTH * 4 + 8};"), x, (0, 0))
    np.testing.assert_array_equal(raw.view(x.dtype).reshape(BOX), expected(x, (0, 0)))
