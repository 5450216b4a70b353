"""The emulator's reports on wrong kernels."""

from __future__ import annotations

import errno
import io
import re
import sys
from typing import Any

import numpy as np
import pytest
from corpus._case import cuda
from emulate import launch
from emulator_internals import Device, Fault, Options, Result

ILLEGAL_ADDRESS, MISALIGNED = Result.ILLEGAL_ADDRESS, Result.MISALIGNED_ADDRESS
LAUNCH_FAILED = Result.LAUNCH_FAILED


def fail(kernel: str, *arguments: Any, **how: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        launch(cuda("faults.cu"), kernel, *arguments, **how)
    fault = caught.value
    assert fault.kernel == kernel
    assert kernel in str(fault)
    return fault


def integers(count: int = 64) -> np.ndarray:
    return np.zeros(count, np.int32)


def test_global_out_of_bounds() -> None:
    x = np.zeros(100, np.float32)
    fault = fail("past_the_end", x, np.int32(100), grid=(4,), block=(32,))
    assert fault.code == ILLEGAL_ADDRESS
    assert (fault.block, fault.thread) == ((3, 0, 0), (4, 0, 0))
    assert "4-byte write" in str(fault)
    assert "0 bytes after the end of an allocation of 400 bytes" in str(fault)
    assert fault.source is not None
    assert fault.source.endswith("faults.cu:7")
    text = cuda("faults.cu").split("\n")[fault.line - 1]
    assert "st.global" in text
    assert text.strip() in str(fault)


def test_lanes_before_the_fault_are_not_written() -> None:
    # An access is checked whole: a launch that fails leaves memory in an undefined state on a GPU.
    x = np.zeros(100, np.float32)
    fail("past_the_end", x, np.int32(100), grid=(1,), block=(128,))
    assert not x.any()


def test_misaligned() -> None:
    fault = fail("misaligned", np.zeros(256, np.uint8), block=(32,))
    assert fault.code == MISALIGNED
    assert fault.thread == (9, 0, 0)
    assert "not a multiple of 4" in str(fault)


def test_null_page() -> None:
    fault = fail("wrong_pointer", integers(), block=(1,))
    assert fault.code == ILLEGAL_ADDRESS


def test_shared_out_of_bounds() -> None:
    fault = fail("shared_past_the_end", integers(), np.int32(4), block=(32,))
    assert fault.code == ILLEGAL_ADDRESS
    assert fault.thread == (28, 0, 0)
    assert "128 bytes of shared memory" in str(fault)
    assert fault.source is not None
    assert fault.source.endswith(":17")


def test_local_out_of_bounds() -> None:
    fault = fail("local_past_the_end", integers(), np.int32(7), block=(4,))
    assert fault.code == ILLEGAL_ADDRESS
    assert "local" in str(fault)
    assert fault.thread == (1, 0, 0)


def test_uninitialised_shared_memory() -> None:
    fault = fail("uninitialised", integers(), grid=(2,), block=(64,))
    assert fault.code == LAUNCH_FAILED
    assert fault.thread == (58, 0, 0)
    assert "shared address 0x14, which the block has not written" in str(fault)
    launch(cuda("faults.cu"), "uninitialised", integers(), block=(64,), check_uninitialized=False)


def test_race() -> None:
    launch(cuda("faults.cu"), "no_barrier", integers(128), block=(128,))
    fault = fail("no_barrier", integers(128), block=(128,), check_races=True)
    assert "race" in str(fault)
    assert fault.source is not None
    assert fault.source.endswith(":32")


@pytest.mark.parametrize("kernel", ["half_a_barrier", "two_barriers", "barrier_in_a_loop"])
@pytest.mark.parametrize("threads", [64, 50])
def test_divergent_barrier(kernel: str, threads: int) -> None:
    fault = fail(kernel, integers(), block=(threads,), grid=(2,))
    assert fault.code == LAUNCH_FAILED
    assert re.search(r"bar(\.sync|rier)", str(fault))
    assert fault.block == (0, 0, 0)


def test_early_return_is_right() -> None:
    out = integers()
    launch(cuda("faults.cu"), "early_return", out, np.int32(41), block=(64,))
    np.testing.assert_array_equal(out[:41], np.arange(41)[::-1])


@pytest.mark.slow
def test_missing_lane() -> None:
    fault = fail("missing_lane", integers(), time_limit=0.3)
    assert fault.code in (LAUNCH_FAILED, 702)


def test_assertion() -> None:
    fault = fail("assertion", integers())
    assert fault.code == 710
    assert "kernel.cu:12: assertion: assertion `x[3] > 0` failed" in str(fault)
    assert fault.thread == (3, 0, 0)


def test_trap() -> None:
    fault = fail("stop", integers())
    assert fault.code == LAUNCH_FAILED
    assert fault.thread == (7, 0, 0)


def test_endless_recursion() -> None:
    assert fail("endless_recursion", integers(), block=(1,)).code == 714


def test_time_limit() -> None:
    assert fail("forever", integers(), time_limit=0.3).code == 702


def test_fault_is_sticky() -> None:
    device = Device()
    fail("stop", integers(), device=device)
    again = fail("stop", integers(), device=device)
    assert again is not device.fault
    assert again.reason.startswith("an earlier launch is to blame")
    assert again.reason.endswith("the kernel executed trap")
    assert device.fault is not None
    assert device.fault.reason == "the kernel executed trap"


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"block": (1025,)}, 1),
        ({"block": (32, 32, 2)}, 1),
        ({"grid": (0,)}, 1),
        ({"grid": (1, 65536)}, 1),
        ({"shared": 200 * 1024}, 1),
    ],
)
def test_refused_launch_is_not_sticky(how: dict[str, Any], code: int) -> None:
    device = Device()
    assert fail("stop", integers(), device=device, **how).code == code
    assert device.fault is None


def test_printf() -> None:
    said: list[str] = []
    text = np.frombuffer(b"caf\xc3\xa9\0", np.uint8)
    launch(cuda("faults.cu"), "messages", np.int32(3), text, write=said.append)
    wanted = "{} of 3:  4.50|ab  |z|1099511627776|0xff|%|café\n"
    assert "".join(said) == wanted.format(0) + wanted.format(1)


def test_a_standard_output_that_is_full_fails_no_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    text = np.frombuffer(b"x\0", np.uint8)
    monkeypatch.setattr(sys, "stdout", _Full())
    with pytest.warns(RuntimeWarning, match="output of kernels is lost: .*No space left"):
        launch(cuda("faults.cu"), "messages", np.int32(3), text, device=Device())
    monkeypatch.setattr(sys, "stdout", None)
    launch(cuda("faults.cu"), "messages", np.int32(3), text, device=Device())


class _Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_heap() -> None:
    out = integers(40)
    launch(cuda("faults.cu"), "heap", out, block=(40,))
    np.testing.assert_array_equal(out, np.arange(40))


def test_options_reach_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    text = np.frombuffer(b"x\0", np.uint8)
    launch(cuda("faults.cu"), "messages", np.int32(3), text, device=Device(options=Options()))
    assert capsys.readouterr().out.startswith("0 of 3")
