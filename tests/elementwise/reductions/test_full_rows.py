"""Short rows whose threads have exactly their packs, so no index is compared with a size."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import kernels

from culaunch import elementwise as ew


def rms_norm(x, weight):
    return x * ew.rsqrt(ew.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def softmax(x, weight):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True) * weight


def total(x, weight):
    return ew.sum(x * weight, axis=-1)


def of_numpy(function, x, weight):
    x, weight = x.astype(np.float64), weight.astype(np.float64)
    if function is rms_norm:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight
    if function is total:
        return (x * weight).sum(-1)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) * weight


# No block has as many rows as its threads could take, and some rows are not full.
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", [128, 136, 256, 512, 520, 1024])
@pytest.mark.parametrize("function", [rms_norm, softmax, total])
def test_rows_in_place(function, size, dtype):
    rng = np.random.default_rng(size)
    x = rng.standard_normal((301, size)).astype(dtype)
    weight = rng.standard_normal(size).astype(dtype)
    wanted = of_numpy(function, x, weight)
    fused = ew.fuse(function)
    found = fused(x, weight) if function is total else fused(x, weight, out=x)
    tolerance = 2e-2 if dtype == "float16" else 2e-5
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * 4)


@pytest.mark.parametrize(
    ("function", "dtype", "size"),
    [(rms_norm, "float32", 2048), (rms_norm, "float16", 8192), (softmax, "float32", 4096)],
)
def test_rows_that_are_read_again(function, dtype, size):
    x = np.random.default_rng(size).standard_normal((140, size)).astype(dtype)
    weight = (np.arange(size) / size).astype(dtype)
    (text,) = kernels(ew.fuse(function), x, weight)
    assert "_again" in text.name
    policies = [text.source.count(f"load_again<{last}>(") for last in ("false", "true")]
    assert policies == [2 if function is softmax else 1, 1]
    wanted = of_numpy(function, x, weight)
    ew.fuse(function)(x, weight, out=x)
    tolerance = 5e-3 if dtype == "float16" else 2e-5
    np.testing.assert_allclose(x, wanted, rtol=tolerance, atol=tolerance)
    (other,) = kernels(ew.fuse(function), x[:, :-8], weight[:-8])
    assert "_again" not in other.name


def test_full_rows_are_read_without_comparisons():
    x, weight = np.ones((301, 256), np.float16), np.ones(256, np.float16)
    (full,) = kernels(ew.fuse(rms_norm), x, weight)
    assert "_full" in full.name
    assert "at < end" not in full.source
    assert "if (is_row)" in full.source
    (other,) = kernels(ew.fuse(rms_norm), np.ones((301, 248), np.float16), weight[:248])
    assert "_full" not in other.name
    assert "at < end" in other.source


def test_common_values_are_read_before_the_first_store():
    x, weight = np.ones((301, 512), np.float16), np.ones(512, np.float16)
    (text,) = kernels(ew.fuse(softmax), x, weight)
    loads = text.source.index("x1_pack[j] =")
    loop = text.source.index("for (int j", loads)
    assert loads < loop < text.source.index("y0_row + at")
