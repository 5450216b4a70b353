"""Tensor maps of elements of 4 and 6 bits: dense, and padded to 16 bytes in shared memory."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import pytest
from driver_table import Table
from emulate import launch
from emulator_internals import Device, Fault, Options

import culaunch as cl
from culaunch._emulator.memory.tensor_map import TensorMap

# Rows of 128 elements go to shared memory, and from there to `raw` and, if `stores`, back.
SOURCE = r"""
typedef unsigned long long u64;
struct alignas(64) Map { u64 words[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void tile(const __grid_constant__ Map in, const __grid_constant__ Map out,
                                unsigned char* raw, int counted, int bytes, int x, int stores) {
  __shared__ __align__(1024) unsigned char part[2048];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(at(&bar)), "r"(counted) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];"
        ::"r"(at(part)), "l"(&in), "r"(x), "r"(2), "r"(at(&bar)) : "memory");
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
               "@!p bra AGAIN; }" ::"r"(at(&bar)) : "memory");
  for (int i = threadIdx.x; i < bytes; i += 32) raw[i] = part[i];
  __syncwarp();
  if (threadIdx.x == 0 && stores)
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
        ::"l"(&out), "r"(x), "r"(2), "r"(at(part)) : "memory");
}
"""
# The number of the type, the bits of an element, and the bytes of 16 elements in shared memory.
DENSE, PADDED, SIX = (13, 4, 8), (14, 4, 16), (15, 6, 16)
ROWS, COLUMNS = 12, 384


@functools.cache
def ptx() -> str:
    return cl.compile(SOURCE, arch="compute_100a").data.decode()


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Return rows of elements without gaps between them, the lowest bits first."""
    each = values[..., None] >> np.arange(bits) & 1
    return np.packbits(each.reshape(len(values), -1).astype("u1"), axis=-1, bitorder="little")


def run(
    form: tuple[int, int, int], values: np.ndarray, x: int, swizzle: int = 0, stores: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    kind, bits, unit = form
    rows = packed(values, bits)
    given, out = (aligned(np.zeros_like(rows)) for _ in range(2))
    given[...] = rows
    row = rows.shape[1]
    maps = [
        TensorMap(
            kind, 0, swizzle, 0, one.ctypes.data, (COLUMNS, ROWS), (1, row), (128, 16), (1, 1)
        ).pack()
        for one in (given, out)
    ]
    raw = np.zeros((16, 8 * unit), "u1")
    counted = np.int32(16 * 128 * bits // 8)
    launch(
        ptx(), "tile", *maps, raw.reshape(-1), counted, np.int32(raw.nbytes), np.int32(x),
        np.int32(stores), memory=(given, out),
        device=Device("sm_100", Options(time_limit=20)),
    )  # fmt: skip
    return raw, out


def aligned(array: np.ndarray) -> np.ndarray:
    raw = np.zeros(array.nbytes + 32, "u1")
    start = -raw.ctypes.data % 32
    return raw[start : start + array.nbytes].reshape(array.shape)


@pytest.mark.parametrize("form", [DENSE, PADDED, SIX])
@pytest.mark.parametrize("swizzled", [False, True])
def test_sixteen_elements_are_a_unit_of_shared_memory(form: Any, swizzled: bool) -> None:
    _, bits, unit = form
    values = np.random.default_rng(1).integers(0, 1 << bits, (ROWS, COLUMNS))
    # Rows of 64 bytes have the swizzle of 64 bytes.
    raw, _ = run(form, values, 128, swizzle=(2 if unit == 8 else 3) * swizzled)
    dense = np.zeros((16, 128), "i8")
    dense[: ROWS - 2] = values[2:, 128:256]  # the rows behind the last one are zeros
    expected = np.zeros((16, 8, unit), "u1")
    expected[..., : 2 * bits] = packed(dense, bits).reshape(16, 8, 2 * bits)
    chunks = expected.reshape(16, -1, 16)
    got = raw.reshape(16, -1, 16)
    for row in range(16):
        flip = (row & 7 if unit == 16 else row >> 1 & 3) * swizzled
        for i, chunk in enumerate(chunks[row]):
            assert got[row, i ^ flip].tolist() == chunk.tolist(), (row, i)


def test_dense_elements_go_back() -> None:
    values = np.random.default_rng(2).integers(0, 16, (ROWS, COLUMNS))
    _, out = run(DENSE, values, 128, stores=1)
    expected = np.zeros_like(values)
    expected[2:, 128:256] = values[2:, 128:256]
    assert out.tolist() == packed(expected, 4).tolist()


@pytest.mark.parametrize(
    ("x", "stores", "words"),
    [(64, 0, "first coordinate 64 of elements with padding"), (0, 1, "are not stored")],
)
def test_padded_elements_have_rules(x: int, stores: int, words: str) -> None:
    with pytest.raises(Fault, match=words):
        run(PADDED, np.zeros((ROWS, COLUMNS), "i8"), x, stores=stores)


ENCODED = {"kind": 14, "address": 1 << 20, "extent": 384, "stride": 192, "inner": 128, "fill": 0}


def encode(arch: str, **given: int) -> tuple[int, str, bytes]:
    """Return the code of the driver's function, its words, and the map."""
    one = {**ENCODED, **given}
    table, encoded = Table(arch), (ctypes.c_ubyte * 128)()
    code = table(
        "cuTensorMapEncodeTiled", encoded, one["kind"], 2, one["address"],
        (ctypes.c_size_t * 2)(one["extent"], 12), (ctypes.c_size_t * 1)(one["stride"]),
        (ctypes.c_uint * 2)(one["inner"], 16), (ctypes.c_uint * 2)(1, 1), 0, 3, 0, one["fill"],
    )  # fmt: skip
    return code, table.text(code), bytes(encoded)


def test_the_driver_encodes_packed_types() -> None:
    code, _, encoded = encode("sm_100")
    expected = TensorMap(14, 0, 3, 0, 1 << 20, (384, 12), (1, 192), (128, 16), (1, 1))
    assert (code, TensorMap.unpack(encoded)) == (0, expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": 16}, "no tensor map data type 16"),
        ({"address": 16}, "address 0x10 is not a multiple of 32"),
        ({"stride": 208}, "stride 0xd0 is not a multiple of 32"),
        ({"extent": 320}, "first extent 320 is not a multiple of 128"),
        ({"kind": 13, "extent": 385}, "first extent 385 is not a multiple of 2"),
        ({"inner": 64}, "box's first extent is 64, which is not 128"),
        ({"kind": 13, "inner": 48}, "24 bytes in a row, which is not a multiple of 16"),
        ({"fill": 1}, "only floats can be filled with NaN"),
    ],
)
def test_the_driver_has_rules_for_packed_types(given: dict[str, int], words: str) -> None:
    code, text, _ = encode("sm_100", **given)
    assert code == 1
    assert words in text


def test_packed_types_need_a_device() -> None:
    code, text, _ = encode("sm_90")
    assert code == 801
    assert "tensor maps of packed elements need sm_100 or newer" in text
