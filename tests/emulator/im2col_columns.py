"""Columns of pixels in im2col mode: a kernel that copies one, and a walk over the bounding box."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

import culaunch as cl

# A column of pixels as it is in shared memory, and the column written to another tensor.
SOURCE = r"""
typedef unsigned long long u64;
struct alignas(64) Map { u64 words[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void column(const __grid_constant__ Map in, const __grid_constant__ Map out,
                                  unsigned char* raw, int bytes, int c, int w, int h, int d, int n,
                                  short ow, short oh, short od, int store) {
  extern __shared__ __align__(1024) unsigned char part[];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%10], %11;\n"
        "cp.async.bulk.tensor." DIM ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [%0], [%1, " FROM "], [%10], " OFFSETS ";"
        ::"r"(at(part)), "l"(&in), "r"(c), "r"(w), "r"(h), "r"(d), "r"(n), "h"(ow), "h"(oh),
        "h"(od), "r"(at(&bar)), "r"(bytes) : "memory");
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
               "@!p bra AGAIN; }" ::"r"(at(&bar)) : "memory");
  for (int i = threadIdx.x; i < bytes; i += 32) raw[i] = part[i];
  __syncwarp();
  if (store && threadIdx.x == 0) {
    if (store == ADD)
      asm volatile(
          "cp.reduce.async.bulk.tensor." DIM ".global.shared::cta.add.im2col_no_offs.bulk_group"
          " [%1, " FROM "], [%0];" ::"r"(at(part)), "l"(&out), "r"(c), "r"(w), "r"(h), "r"(d),
          "r"(n) : "memory");
    else
      asm volatile(
          "cp.async.bulk.tensor." DIM ".global.shared::cta.im2col_no_offs.bulk_group"
          " [%1, " FROM "], [%0];" ::"r"(at(part)), "l"(&out), "r"(c), "r"(w), "r"(h), "r"(d),
          "r"(n) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""
AXES = {3: ("{%2, %3, %6}", "{%7}"), 4: ("{%2, %3, %4, %6}", "{%7, %8}"),
        5: ("{%2, %3, %4, %5, %6}", "{%7, %8, %9}")}  # fmt: skip
LOAD, STORE, ADD = range(3)  # the work after the load
KINDS = {"u1": 0, "u2": 1, "i4": 3, "f2": 6, "f4": 7}  # CUtensorMapDataType


class Column(NamedTuple):
    """A tensor, its map, and the place of a column; the innermost axis first, as in a map."""

    dtype: str
    extents: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    box: tuple[int, int]
    start: tuple[int, ...]
    offsets: tuple[int, ...]
    steps: tuple[int, ...] = (1, 1, 1)
    swizzle: int = 0
    fill: int = 0

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def stored(self) -> Column:
        """Return it with a bounding box inside the tensor, as stores need it."""
        lower = tuple(max(corner, 0) for corner in self.lower)
        upper = tuple(min(corner, 0) for corner in self.upper)
        sizes = map(int.__add__, self.extents[1:-1], upper)
        at = (min(max(c, a), b - 1) for c, a, b in zip(self.start[1:-1], lower, sizes, strict=True))
        return self._replace(lower=lower, upper=upper, start=(self.start[0], *at, self.start[-1]))

    @property
    def size(self) -> int:
        return self.box[0] * self.box[1] * np.dtype(self.dtype).itemsize

    def tensor(self) -> np.ndarray:
        """Return a tensor at a multiple of 16 bytes, without zeros."""
        count, item = int(np.prod(self.extents)), np.dtype(self.dtype).itemsize
        raw = np.zeros(count * item + 16, "u1")
        start = -raw.ctypes.data % 16
        x = raw[start : start + count * item].view(self.dtype).reshape(self.extents[::-1])
        x[...] = np.arange(count).reshape(x.shape) % 251 + 1
        return x

    def pixels(self) -> list[tuple[int, ...]]:
        """Walk over the bounding box: W, H, D, N of each pixel, without the offsets."""
        *at, image = self.start[1:]
        found = []
        for _ in range(self.box[1]):
            found.append((*at, image))
            for axis in range(self.rank - 2):
                at[axis] += self.steps[axis]
                if at[axis] < self.extents[axis + 1] + self.upper[axis]:
                    break
                at[axis] = self.lower[axis]
            else:
                image += 1
        return found

    def element(self, pixel: tuple[int, ...], channel: int, moved: bool) -> tuple[int, ...] | None:
        """Return the index of an element in the tensor; None if it is outside."""
        shift = self.offsets if moved else (0, 0, 0)
        *at, image = pixel
        place = (channel, *(a + b for a, b in zip(at, shift, strict=False)), image)
        inside = all(0 <= a < size for a, size in zip(place, self.extents, strict=True))
        return place[::-1] if inside else None

    def expected(self, x: np.ndarray, y: np.ndarray, store: int) -> tuple[np.ndarray, np.ndarray]:
        """Return shared memory after the load, and the other tensor after the store."""
        part, after = np.zeros(self.box[::-1], x.dtype), y.copy()
        if self.fill:
            part.view("u4")[...] = 0x7FF77FF7
        for i, pixel in enumerate(self.pixels()):
            for j in range(self.box[0]):
                source, target = (
                    self.element(pixel, self.start[0] + j, one) for one in (True, False)
                )
                if source is not None:
                    part[i, j] = x[source]
                if store and target is not None:
                    after[target] = part[i, j] + (after[target] if store == ADD else 0)
        chunks = part.reshape(-1).view("u1").reshape(-1, 16)
        row = np.arange(len(chunks))
        # In row r of 128 bytes, the chunk c of a span of n chunks is at c ^ (r % n).
        place = row ^ row // 8 % (2**self.swizzle)
        raw = np.zeros_like(chunks)
        raw[place] = chunks
        return raw.reshape(-1), after


COLUMNS = {
    "3d": Column("i4", (16, 10, 3), (-1,), (-2,), (8, 21), (4, 2, 0), (1,)),
    "4d": Column("u2", (32, 7, 6, 2), (-1, -2), (-3, 0), (16, 56), (16, 3, -2, 0), (2, 1)),
    "5d": Column(
        "u1", (32, 5, 4, 3, 2), (-1, 0, -2), (-2, 1, -1), (16, 60), (0, 2, 3, -1, 0), (1, 0, 2)
    ),
    "strides": Column(
        "f4", (8, 9, 8, 2), (-1, -1), (-1, -2), (8, 40), (0, 2, 1, 0), (1, 2), (2, 3)
    ),
    "behind": Column("f4", (8, 4, 4, 2), (0, 0), (0, 0), (8, 40), (4, 1, 2, 1), (0, 1), fill=1),
    "swizzle": Column(
        "f2", (64, 6, 5, 2), (-1, -1), (-1, -1), (64, 48), (0, -1, -1, 0), (1, 1), swizzle=3
    ),
    "spans": Column("i4", (8, 9, 4), (0,), (0,), (8, 36), (0, 0, 0), (0,), swizzle=1),
    "small": Column("u1", (16, 9, 4), (-1,), (1,), (16, 16), (0, 8, 2), (0,)),
}


@functools.cache
def ptx(rank: int) -> str:
    words = ("DIM", f"{rank}d"), ("FROM", AXES[rank][0]), ("OFFSETS", AXES[rank][1])
    text = f"#define ADD {ADD}\n" + "".join(f'#define {name} "{value}"\n' for name, value in words)
    return cl.compile(text + SOURCE, arch="compute_90").data.decode()


class Map(ctypes.Structure):
    _fields_ = (("words", ctypes.c_ulonglong * 16),)


def encode(function: Any, column: Column, address: int, **changed: Any) -> tuple[int, Map]:
    """Encode the map of a column; give the code and the map."""
    raw = (ctypes.c_ubyte * (128 + 64))()  # a map is at a multiple of 64 bytes
    out, rank = Map.from_buffer(raw, -ctypes.addressof(raw) % 64), changed.get("rank", column.rank)
    item = np.dtype(column.dtype).itemsize
    strides = np.cumprod([item * column.extents[0], *column.extents[1:-1]])

    def array(name: str, kind: Any, values: Any) -> Any:
        numbers = [int(value) for value in changed.get(name, values)]
        return (kind * len(numbers))(*numbers)

    code = function(
        ctypes.byref(out), changed.get("kind", KINDS[column.dtype]), ctypes.c_uint(rank),
        ctypes.c_void_p(address), array("extents", ctypes.c_ulonglong, column.extents),
        array("strides", ctypes.c_ulonglong, strides),
        array("lower", ctypes.c_int, column.lower), array("upper", ctypes.c_int, column.upper),
        *(ctypes.c_uint(size) for size in changed.get("box", column.box)),
        array("steps", ctypes.c_uint, (1, *column.steps[: rank - 2], 1)),
        changed.get("interleave", 0), column.swizzle, 0, changed.get("fill", column.fill),
    )  # fmt: skip
    return code, out


def arguments(column: Column, store: int) -> list[Any]:
    """Return the scalars of the kernel: an axis that the tensor lacks is zero."""
    c, *at, n = column.start
    at, offsets = [*at, 0, 0][:3], [*column.offsets, 0, 0][:3]
    return [
        *(np.int32(value) for value in (column.size, c, *at, n)),
        *(np.int16(value) for value in offsets), np.int32(store),
    ]  # fmt: skip
