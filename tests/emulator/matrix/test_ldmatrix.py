"""ldmatrix on a simulated shared memory, alone and feeding mma as kernels do."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_internals import matrix as mx


def load(memory: np.ndarray, addresses: np.ndarray, count: int, trans: bool) -> list[np.ndarray]:
    places = mx.ldmatrix_addresses(addresses, count, trans=trans)
    if not trans:
        assert places.shape == (count, *addresses.shape)
        return list(memory.view(np.uint32)[places // 4])
    assert places.shape == (count, 2, *addresses.shape)
    halves = memory.view(np.uint16)[places // 2].astype(np.uint32)
    return list(halves[:, 0] | halves[:, 1] << np.uint32(16))


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.int64])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_each_lane_gets_its_pair(count, trans, dtype):
    rng = np.random.default_rng(0)
    memory = rng.integers(0, 256, 8192, dtype=np.uint8)
    addresses = (rng.permutation(512)[: 3 * 32].reshape(3, 32) * 16).astype(dtype)
    got = load(memory, addresses, count, trans)
    halves = memory.view(np.uint16)
    for warp in range(3):
        for i in range(count):
            rows = [halves[int(p) // 2 :][:8] for p in addresses[warp, 8 * i : 8 * i + 8]]
            matrix = np.array(rows, np.uint32)
            matrix = matrix.T if trans else matrix
            for lane in range(32):
                low, high = matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2]
                assert got[i][warp, lane] == int(high) << 16 | int(low)


def test_a_tile_of_a_matmul():
    """D = A B by ldmatrix.x4, ldmatrix.x2.trans and mma.m16n8k16, both matrices row by row."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal((16, 16)).astype(np.float16)
    b = rng.standard_normal((16, 8)).astype(np.float16)
    memory = np.concatenate([a.ravel().view(np.uint8), b.ravel().view(np.uint8)])
    lane = np.arange(32)
    a_rows = (lane % 16 * 32 + lane // 16 * 16)[None].astype(np.uint32)
    b_rows = (512 + lane % 16 * 16)[None].astype(np.uint32)
    c = [np.zeros((1, 32), np.uint32)] * 4
    registers = load(memory, a_rows, 4, False), load(memory, b_rows, 2, True)
    got = mx.mma("m16n8k16", ("f32", "f16", "f16", "f32"), *registers, c)
    d = np.zeros((16, 8), np.float32)
    for i, register in enumerate(got):
        d[lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2] = register[0].view(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(d, exact.astype(np.float32))


def test_movmatrix_transposes():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 1 << 32, (2, 32), dtype=np.uint32)
    matrices = a.view(np.uint16).reshape(2, 8, 8)
    got = mx.movmatrix(a)
    assert (got.view(np.uint16).reshape(2, 8, 8) == matrices.transpose(0, 2, 1)).all()
    assert (mx.movmatrix(got) == a).all()


def test_other_counts_are_refused():
    with pytest.raises(ValueError, match=r"count must be 1, 2 or 4 matrices \(got 3\)"):
        mx.ldmatrix_addresses(np.zeros((1, 32), np.uint32), 3)
