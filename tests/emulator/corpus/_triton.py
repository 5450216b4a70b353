"""Triton's kernels, from the PTX that `record_triton.py` kept."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from corpus._case import HERE, Case, from_ptx

_FACTS = json.loads((HERE / "ptx" / "triton.json").read_text())
# Triton adds two pointers, to scratch memory that these kernels do not have.
_SCRATCH = [np.uint64(0), np.uint64(0)]


def _case(name: str, grid: tuple[int, ...], **rest: Any) -> Case:
    facts = _FACTS[name]
    arguments = rest.pop("arguments")
    return Case(
        name=f"triton_{name}",
        ptx=from_ptx(f"triton_{name}.ptx"),
        kernel=facts["kernel"],
        grid=grid,
        block=(32 * facts["warps"],),
        shared=facts["shared"],
        arguments=lambda rng: [*arguments(rng), *_SCRATCH],
        **rest,
    )


def _softmax(a: list[Any]) -> dict[int, np.ndarray]:
    x = a[0].reshape(3, -1).astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    return {1: (e / e.sum(1, keepdims=True)).reshape(-1)}


def _layer_norm(a: list[Any]) -> dict[int, np.ndarray]:
    x = a[0].reshape(4, -1).astype(np.float64)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + float(a[7]))
    y = (x - mean[:, None]) * rstd[:, None] * a[2] + a[3]
    return {1: y.reshape(-1), 4: mean, 5: rstd}


def _matmul_arguments(dtype: Any, m: int, n: int, k: int, rng: np.random.Generator) -> list[Any]:
    return [
        rng.standard_normal((m, k)).astype(dtype),
        rng.standard_normal((k, n)).astype(dtype),
        np.zeros((m, n), np.float32),
        *(np.int32(x) for x in (m, n, k)),
    ]


def _matmul(a: list[Any]) -> dict[int, np.ndarray]:
    return {2: a[0].astype(np.float64) @ a[1].astype(np.float64)}


def _matmul_tf32(a: list[Any]) -> dict[int, np.ndarray]:
    # The tensor core reads the upper 19 bits of each factor.
    x, y = ((v.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for v in a[:2])
    return {2: x.astype(np.float64) @ y.astype(np.float64)}


def _philox(counter: np.ndarray, seed: int) -> np.ndarray:
    """Return the first word of Philox 4x32-10 with the counter (c, 0, 0, 0)."""
    mask, a, b = (np.uint64(x) for x in (0xFFFFFFFF, 0xD2511F53, 0xCD9E8D57))
    zero = np.zeros(counter.shape, np.uint64)
    c0, c1, c2, c3 = counter.astype(np.uint64), zero, zero, zero
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        high, low = a * c0, b * c2
        c0, c2 = (
            (low >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            (high >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
        )
        c1, c3 = low & mask, high & mask
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0.astype(np.uint32)


def _dropout(a: list[Any]) -> dict[int, np.ndarray]:
    word = _philox(np.arange(a[0].size), int(a[4])).view(np.int32)
    positive = np.where(word < 0, -word - 1, word)
    keep = positive * np.float32(4.6566127342e-10) > a[3]
    return {1: np.where(keep, a[0] / (1 - a[3]), 0)}


TRITON = (
    _case(
        "add",
        (3,),
        arguments=lambda rng: [
            *rng.standard_normal((2, 2500), np.float32),
            np.zeros(2500, np.float32),
            np.int32(2500),
        ],
        expected=lambda a: {2: a[0] + a[1]},
    ),
    _case(
        "softmax",
        (3,),
        arguments=lambda rng: [
            rng.standard_normal(2100, np.float32),
            np.zeros(2100, np.float32),
            np.int32(700),
        ],
        expected=_softmax,
        rtol=1e-5,
        same_on_gpu=False,
    ),
    _case(
        "layer_norm",
        (4,),
        arguments=lambda rng: [
            rng.standard_normal(4 * 900, np.float32),
            np.zeros(4 * 900, np.float32),
            *rng.standard_normal((2, 900), np.float32),
            *np.zeros((2, 4), np.float32),
            np.int32(900),
            np.float32(1e-5),
        ],
        expected=_layer_norm,
        rtol=1e-4,
        atol=1e-5,
        same_on_gpu=False,
    ),
    _case(
        "matmul_f16",
        (2, 2),
        arguments=partial(_matmul_arguments, np.float16, 128, 96, 112),
        expected=_matmul,
        rtol=1e-4,
        atol=1e-4,
        same_on_gpu=False,
    ),
    _case(
        "matmul_bf16",
        (2, 2),
        arguments=partial(_matmul_arguments, ml_dtypes.bfloat16, 70, 67, 50),
        expected=_matmul,
        rtol=1e-4,
        atol=1e-4,
        same_on_gpu=False,
    ),
    _case(
        "matmul_tf32",
        (2, 2),
        arguments=partial(_matmul_arguments, np.float32, 128, 80, 96),
        expected=_matmul_tf32,
        rtol=1e-4,
        atol=1e-4,
        same_on_gpu=False,
    ),
    _case(
        "matmul_int8",
        (1,),
        arguments=lambda rng: [
            rng.integers(-128, 128, (64, 96), np.int8),
            rng.integers(-128, 128, (96, 64), np.int8),
            np.zeros((64, 64), np.int32),
            np.int32(96),
        ],
        expected=lambda a: {2: a[0].astype(np.int32) @ a[1].astype(np.int32)},
    ),
    _case(
        "histogram",
        (3,),
        arguments=lambda rng: [
            rng.integers(0, 64, 1300, np.int32),
            np.zeros(64, np.int32),
            np.zeros(1, np.int32),
            np.zeros(1, np.float32),
            np.int32(1300),
        ],
        expected=lambda a: {
            1: np.bincount(a[0], minlength=64).astype(np.int32),
            2: a[0].max(keepdims=True),
            3: a[0].sum(keepdims=True).astype(np.float32),
        },
    ),
    _case(
        "dropout",
        (2,),
        arguments=lambda rng: [
            rng.standard_normal(2000, np.float32),
            np.zeros(2000, np.float32),
            np.int32(2000),
            np.float32(0.4),
            np.int32(123),
        ],
        expected=_dropout,
        rtol=1e-6,
        same_on_gpu=False,
    ),
    _case(
        "sort_and_scan",
        (1,),
        arguments=lambda rng: [
            rng.integers(-999, 999, 256, np.int32),
            np.zeros(256, np.int32),
            np.zeros(256, np.int32),
        ],
        expected=lambda a: {1: np.sort(a[0]), 2: np.cumsum(a[0], dtype=np.int32)},
    ),
)
