"""malloc and free in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpus._case import cuda
from emulate import image_of, launch

from culaunch._base.cuda import Result
from culaunch._emulator import Device, Fault

ILLEGAL_ADDRESS, LAUNCH_FAILED = Result.ILLEGAL_ADDRESS, Result.LAUNCH_FAILED
HEAP = 8 << 20


def run(kernel: str, *arguments: Any, **how: Any) -> None:
    launch(cuda("heap.cu"), kernel, *arguments, **how)


def fail(kernel: str, *arguments: Any, **how: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        run(kernel, *arguments, **{"block": (1,), **how})
    return caught.value


def test_a_double_free_is_named_with_both_places() -> None:
    fault = fail("free_twice")
    assert fault.code == LAUNCH_FAILED
    assert "a double free" in str(fault)
    assert "block (0, 0, 0), thread (0, 0, 0) at PTX line" in str(fault)
    assert "heap.cu:21" in str(fault)
    assert str(fault.source).endswith("heap.cu:22")


@pytest.mark.parametrize(
    ("offset", "why"), [(-1, "did not return"), (16, "16 bytes into a malloc block")]
)
def test_a_pointer_that_malloc_did_not_give_cannot_be_freed(offset: int, why: str) -> None:
    fault = fail("free_another", np.zeros(64, np.uint8), np.int32(offset))
    assert fault.code == LAUNCH_FAILED
    assert why in str(fault)
    assert str(fault.source).endswith("heap.cu:28")


def test_use_after_free_says_who_freed() -> None:
    fault = fail("use_after_free", np.zeros(1, np.int32))
    assert fault.code == ILLEGAL_ADDRESS
    assert "12 bytes into a malloc block of 64 bytes" in str(fault)
    assert "heap.cu:34" in str(fault)
    assert str(fault.source).endswith("heap.cu:35")


@pytest.mark.parametrize("size", [HEAP + 1, 1 << 40, 2**64 - 1])
def test_malloc_that_cannot_be_satisfied_gives_null(size: int) -> None:
    out = np.ones(4, np.uint64)
    run("give", out, np.uint64(size), block=(4,))
    assert not out.any()


def test_the_heap_ends_and_what_is_freed_can_be_had_again() -> None:
    device, out, read = Device(), np.zeros(32, np.uint64), np.zeros(16, np.int32)
    instance = device.load(image_of(cuda("heap.cu")))
    how: dict[str, Any] = {"device": device, "instance": instance}
    run("give", out, np.uint64(HEAP // 16), **how)
    assert (out != 0).sum() == 16
    run("fill", out, **how)
    run("take_back", out[out != 0], read, block=(16,), **how)
    np.testing.assert_array_equal(np.sort(read), np.flatnonzero(out) + 10)
    run("give", out, np.uint64(HEAP // 16), **how)
    assert (out != 0).sum() == 16


def test_blocks_outlive_the_launch_that_made_them() -> None:
    device, out, read = Device(), np.zeros(8, np.uint64), np.zeros(8, np.int32)
    run("give", out, np.uint64(4), block=(8,), device=device)
    run("fill", out, block=(8,), device=device)
    run("take_back", out, read, block=(8,), device=device)
    np.testing.assert_array_equal(read, np.arange(8) + 10)
    fault = fail("take_back", out, read, device=device)
    assert "heap.cu:15" in str(fault)
    assert fault.code == ILLEGAL_ADDRESS
