"""malloc and free in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpus._case import HERE, cuda
from emulate import image_of, launch
from emulator_internals import Device, Fault, Options, Result

import culaunch as cl
from culaunch import testing

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


def test_blocks_that_are_not_freed_are_reported_once() -> None:
    device, out = Device(options=Options(check_leaks=True)), np.zeros(4, np.uint64)
    run("give", out, np.uint64(100), block=(4,), device=device)
    with pytest.raises(Fault) as caught:
        device.require_no_leaks()
    text = str(caught.value)
    assert "4 blocks of malloc in kernels, 400 bytes in all, are not freed" in text
    assert text.count("100 bytes at 0x") == 4
    assert "allocated by block (0, 0, 0), thread (2, 0, 0) at PTX line" in text
    assert "heap.cu:" in text
    assert device.fault is None, "the device is good"
    device.require_no_leaks()


def test_freed_blocks_and_devices_without_the_check_do_not_leak() -> None:
    device, out = Device(options=Options(check_leaks=True)), np.zeros(2, np.uint64)
    read = np.zeros(2, np.int32)
    run("give", out, np.uint64(4), block=(2,), device=device)
    run("take_back", out, read, block=(2,), device=device)
    device.require_no_leaks()
    device = Device()
    run("give", out, np.uint64(4), block=(2,), device=device)
    device.require_no_leaks()


def test_leaks_are_reported_by_a_synchronization_and_at_the_end_of_a_block() -> None:
    with testing.use_driver("emulator"):
        image = cl.compile((HERE / "cuda" / "heap.cu").read_text(), std="c++17", line_info=True)
        give, out = cl.load(image)["give"], np.zeros(2, np.uint64)
        leaks = pytest.raises(
            cl.DriverError, match="2 blocks of malloc in kernels, 32 bytes in all"
        )
        with leaks, testing.emulator_options(check_leaks=True):
            give[1, 2](out, 16)
        with testing.emulator_options(check_leaks=True):
            give[1, 1](out, 16)
            with pytest.raises(cl.DriverError, match=r"1 block of malloc in kernels.*is not freed"):
                cl.synchronize()
            give[1, 1](out, 16)
            with pytest.raises(cl.DriverError, match=r"1 block of malloc in kernels.*is not freed"):
                testing.reset_emulator()


def test_a_use_after_free_names_the_allocation_if_asked() -> None:
    fault = fail("use_after_free", np.zeros(1, np.int32), track_allocations=True)
    assert "freed, allocated by block (0, 0, 0), thread (0, 0, 0) at PTX line" in str(fault)
