"""Triton's products for sm_90 and sm_100 on the emulator, against NumPy, without a race."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Options

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("triton", "ml_dtypes")
try:
    import triton
    import triton.language as tl

    @triton.jit
    def product(
        a, b, c, n, k,
        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ):  # fmt: skip
        rows = tl.program_id(0) * BM + tl.arange(0, BM)
        columns = tl.program_id(1) * BN + tl.arange(0, BN)
        depth = tl.arange(0, BK)
        total = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            x = tl.load(a + rows[:, None] * k + (start + depth)[None, :])
            y = tl.load(b + (start + depth)[:, None] * n + columns[None, :])
            total = tl.dot(x, y, total)
        tl.store(c + rows[:, None] * n + columns[None, :], total)

    @triton.jit
    def persistent(
        a, b, c, m, n, k,
        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr,
    ):  # fmt: skip
        tiles_m = m // BM
        tiles = tiles_m * (n // BN)
        depth = tl.arange(0, BK)
        for tile in tl.range(
            tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=WS
        ):
            rows = tile % tiles_m * BM + tl.arange(0, BM)
            columns = tile // tiles_m * BN + tl.arange(0, BN)
            total = tl.zeros((BM, BN), tl.float32)
            for start in range(0, k, BK):
                x = tl.load(a + rows[:, None] * k + (start + depth)[None, :])
                y = tl.load(b + (start + depth)[:, None] * n + columns[None, :])
                total = tl.dot(x, y, total)
            tl.store(c + rows[:, None] * n + columns[None, :], total)
except ImportError:
    pass


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize(("arch", "instruction"), [(90, "wgmma.mma_async"), (100, "tcgen05.mma")])
@pytest.mark.parametrize(
    ("kind", "name"),
    [("fp16", "float16"), ("bf16", "bfloat16"), ("fp32", "float32"), ("fp8e4nv", "float8_e4m3fn")],
)
def test_products(
    arch: int,
    instruction: str,
    m: int,
    kind: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ml_dtypes
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    types = {"a": f"*{kind}", "b": f"*{kind}", "c": "*fp32", "n": "i32", "k": "i32"}
    sizes = {"BM": m, "BN": 128, "BK": 32}
    source = ASTSource(product, {**types, **dict.fromkeys(sizes, "constexpr")}, sizes)
    made: Any = triton.compile(source, target=GPUTarget("cuda", arch, 32))
    ptx = made.asm["ptx"]
    assert instruction in ptx
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    rng = np.random.default_rng(1)
    x = rng.integers(-4, 5, (2 * m, 96)).astype(dtype)
    y = rng.integers(-4, 5, (96, 256)).astype(dtype)
    out, nothing = np.zeros((2 * m, 256), "f4"), np.zeros(16, "u1")
    launch(
        ptx, "product", x.view(f"u{dtype.itemsize}"), y.view(f"u{dtype.itemsize}"), out,
        np.uint32(256), np.uint32(96), nothing, nothing, grid=(2, 2),
        block=(32 * made.metadata.num_warps,), shared=made.metadata.shared,
        device=Device(f"sm_{arch}", Options(check_races=True)),
    )  # fmt: skip
    np.testing.assert_array_equal(out, x.astype("f4") @ y.astype("f4"))


@pytest.mark.parametrize("specialize", [False, True])
def test_a_persistent_loop(
    specialize: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", **dict.fromkeys("mnk", "i32")}
    sizes = {"BM": 128, "BN": 64, "BK": 64, "WS": specialize}
    source = ASTSource(persistent, {**types, **dict.fromkeys(sizes, "constexpr")}, sizes)
    made: Any = triton.compile(source, target=GPUTarget("cuda", 100, 32))
    ptx = made.asm["ptx"]
    assert "tcgen05.mma" in ptx
    block = re.search(r"\.reqntid (\d+)", ptx)
    assert block is not None
    assert int(block[1]) == (384 if specialize else 128)
    rng = np.random.default_rng(1)
    m, n, k = 256, 192, 128
    x = rng.integers(-4, 5, (m, k)).astype("f2")
    y = rng.integers(-4, 5, (k, n)).astype("f2")
    out, scratch = np.zeros((m, n), "f4"), np.zeros(65536, "u1")
    launch(
        ptx, "persistent", x.view("u2"), y.view("u2"), out, *map(np.uint32, (m, n, k)), scratch,
        scratch, grid=(2,), block=(int(block[1]),), shared=made.metadata.shared,
        device=Device("sm_100", Options(check_races=True)),
    )  # fmt: skip
    np.testing.assert_array_equal(out, x.astype("f4") @ y.astype("f4"))
