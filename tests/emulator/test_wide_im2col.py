"""The modes im2col::w and im2col::w::128: columns along W, with a halo, against a walk over W."""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Options, ProgramDriver, prototype, words_of
from im2col_columns import KINDS, Map

import culaunch as cl

SOURCE = r"""
typedef unsigned long long u64;
struct alignas(64) Map { u64 words[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void column(const __grid_constant__ Map in, unsigned char* raw, int bytes,
                                  int c, int w, int h, int d, int n, short halo, short offset) {
  extern __shared__ __align__(1024) unsigned char part[];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%9], %10;\n"
        "cp.async.bulk.tensor." DIM ".shared::cluster.global." MODE
        ".mbarrier::complete_tx::bytes [%0], [%1, " FROM "], [%9], {%7, %8};"
        ::"r"(at(part)), "l"(&in), "r"(c), "r"(w), "r"(h), "r"(d), "r"(n), "h"(halo), "h"(offset),
        "r"(at(&bar)), "r"(bytes) : "memory");
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
               "@!p bra AGAIN; }" ::"r"(at(&bar)) : "memory");
  for (int i = threadIdx.x; i < bytes; i += 32) raw[i] = part[i];
}
"""
AXES = {3: "{%2, %3, %6}", 4: "{%2, %3, %4, %6}", 5: "{%2, %3, %4, %5, %6}"}
ATOMS = {2: (16, 4), 3: (16, 8), 4: (32, 8)}  # bytes of a chunk, and chunks of 16 bytes in a row


class Wide(NamedTuple):
    """A tensor of 4-byte elements, its map and a copy; the innermost axis first, as in a map."""

    extents: tuple[int, ...]
    corners: tuple[int, int]
    box: tuple[int, int]
    start: tuple[int, ...]
    halo: int = 0
    offset: int = 0
    step: int = 1
    swizzle: int = 3
    wide128: bool = False

    def pixels(self) -> list[tuple[int, int]]:
        """Return W and the image of each pixel."""
        w, image = self.start[1], self.start[-1]
        walk = []
        for _ in range((128 if self.wide128 else self.box[1]) + self.halo):
            walk.append((w + self.offset, image))
            w += self.step
            if w >= self.extents[1] + self.corners[1]:
                w, image = self.corners[0], image + 1
        if not self.wide128:
            return walk
        return [one for i in range(0, 128, 32) for one in walk[i : i + 32 + self.halo]]

    def tensor(self) -> np.ndarray:
        count = int(np.prod(self.extents))
        raw = np.zeros(count + 4, "i4")
        start = -raw.ctypes.data % 16 // 4
        x = raw[start : start + count].reshape(self.extents[::-1])
        x[...] = np.arange(1, count + 1).reshape(x.shape)
        return x

    def expected(self, x: np.ndarray) -> np.ndarray:
        """Return the bytes of shared memory."""
        part = np.zeros((len(self.pixels()), self.box[0]), "i4")
        between = self.start[2:-1][::-1]  # D and H
        for row, (w, image) in zip(part, self.pixels(), strict=True):
            for i in range(self.box[0]):
                place = (image, *between, w, self.start[0] + i)
                if all(0 <= at < size for at, size in zip(place, x.shape, strict=True)):
                    row[i] = x[place]
        chunk, span = ATOMS[self.swizzle]
        parts = part.reshape(-1).view("u1").reshape(-1, chunk)
        number, across = np.arange(len(parts)), span * 16 // chunk
        raw = np.zeros_like(parts)
        raw[number ^ number * chunk // 128 % across] = parts  # rows of 128 bytes
        return raw.reshape(-1)


CASES = {
    "manual": Wide((32, 9, 7, 20), (0, 0), (32, 128), (0, 2, 3, 0), halo=2),
    "manual stride": Wide((32, 67, 4, 4), (-1, 0), (32, 64), (0, -1, 2, 0), 1, 0, 2),
    "offset": Wide((32, 67, 4, 4), (-1, 0), (32, 64), (0, -1, 2, 0), 0, 1, 2),
    "3d": Wide((16, 10, 4), (-1, -2), (16, 24), (0, 3, 1), swizzle=2),
    "5d": Wide((32, 6, 3, 2, 5), (0, 0), (32, 16), (0, 1, 2, 1, 1), halo=1, offset=1),
    "left of the box": Wide((32, 12, 2, 3), (2, 0), (32, 16), (0, -1, 1, 0)),
    "behind": Wide((32, 5, 2, 2), (0, 0), (32, 16), (0, 3, 1, 1), halo=3),
    "chunks of 32 bytes": Wide((32, 9, 2, 8), (0, -1), (32, 32), (0, 0, 1, 0), swizzle=4),
    "128": Wide((32, 9, 7, 20), (0, 0), (32, 1), (0, 2, 3, 0), halo=2, wide128=True),
    "128 stride": Wide((32, 40, 2, 9), (-1, 1), (32, 1), (0, 0, 1, 0), 3, 2, 2, wide128=True),
}


@functools.cache
def ptx(rank: int, mode: str) -> str:
    words = ("DIM", f"{rank}d"), ("FROM", AXES[rank]), ("MODE", mode)
    text = "".join(f'#define {name} "{value}"\n' for name, value in words)
    return cl.compile(text + SOURCE, arch="compute_100a").data.decode()


def encode(driver: ProgramDriver, case: Wide, address: int, **changed: Any) -> tuple[int, Map]:
    """Encode the map of a case; give the code and the map."""
    raw = (ctypes.c_ubyte * (128 + 64))()
    out = Map.from_buffer(raw, -ctypes.addressof(raw) % 64)
    rank = len(case.extents)
    strides = np.cumprod([4 * case.extents[0], *case.extents[1:-1]])

    def array(kind: Any, values: Any) -> Any:
        numbers = [int(value) for value in values]
        return (kind * len(numbers))(*numbers)

    words = words_of(driver.cuTensorMapEncodeIm2colWide)
    function = prototype(words)(driver.find(b"cuTensorMapEncodeIm2colWide"))
    code = function(
        ctypes.byref(out), KINDS["i4"], rank, address, array(ctypes.c_ulonglong, case.extents),
        array(ctypes.c_ulonglong, strides), *changed.get("corners", case.corners), *case.box,
        array(ctypes.c_uint, (1, case.step, *(1,) * (rank - 2))), changed.get("interleave", 0),
        changed.get("mode", int(case.wide128)), changed.get("swizzle", case.swizzle), 0, 0,
    )  # fmt: skip
    return code, out


def emulated(case: Wide, x: np.ndarray, mode: str = "") -> np.ndarray:
    code, map_ = encode(ProgramDriver(Device("sm_100")), case, x.ctypes.data)
    assert code == 0
    size = len(case.pixels()) * case.box[0] * 4
    raw = np.zeros(size, "u1")
    c, *at, n = case.start
    numbers = (np.int32(value) for value in (size, c, *[*at, 0, 0][:3], n))
    text = ptx(len(case.extents), mode or ("im2col::w::128" if case.wide128 else "im2col::w"))
    launch(
        text, "column", bytes(map_), raw, *numbers, np.int16(case.halo), np.int16(case.offset),
        shared=size, memory=(x,), device=Device("sm_100", Options(check_races=True, time_limit=20)),
    )  # fmt: skip
    return raw


@pytest.mark.parametrize("name", CASES)
def test_a_column_along_w(name: str) -> None:
    case = CASES[name]
    x = case.tensor()
    np.testing.assert_array_equal(emulated(case, x), case.expected(x))


@pytest.mark.parametrize(
    ("changed", "mode", "words"),
    [
        ({"start": (0, 9, 3, 0)}, "", r"\(9, 3\) are outside .* from \(0,\) to \(9,\)"),
        ({"halo": 512}, "", "offset is 512, but the largest for 4 axes is 511"),
        ({"offset": 32}, "", "offset is 32, but the largest for 4 axes is 31"),
        ({}, "im2col", "the copy is im2col, but .* tensor map is im2col::w"),
        ({"wide128": True}, "im2col::w", "is im2col::w, but .* is im2col::w::128"),
    ],
    ids=["behind", "halo", "offset", "mode", "width"],
)
def test_what_is_wrong_with_a_column_is_said(changed: Any, mode: str, words: str) -> None:
    case = CASES["manual"]._replace(**changed)
    with pytest.raises(Fault, match=words):
        emulated(case, case.tensor(), mode)


@pytest.mark.parametrize(
    ("arch", "changed", "code", "words"),
    [
        ("sm_90", {}, 801, "wide tensor maps need sm_100 or newer, but the device is sm_90"),
        ("sm_100", {"mode": 2}, 1, "no CUtensorMapIm2ColWideMode 2"),
        ("sm_100", {"swizzle": 0}, 1, "im2col::w has no swizzle 0"),
        ("sm_100", {"swizzle": 5}, 801, "flips 8 bytes"),
        ("sm_100", {"corners": (5, -4)}, 1, "begins at 5, ends at 5"),
        ("sm_100", {"corners": (-32769, 0)}, 1, "the corner -32769 is not from -32768 to 32767"),
    ],
)
def test_what_the_driver_refuses(arch: str, changed: Any, code: int, words: str) -> None:
    driver = ProgramDriver(Device(arch))
    assert encode(driver, CASES["manual"], 0x1000, **changed)[0] == code
    text = ctypes.c_void_p()
    driver.cuGetErrorString(code, ctypes.pointer(text))
    assert re.search(words, ctypes.string_at(text.value or 0).decode())
