"""With an option, a use of device memory that nothing has written is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import culaunch as cl
from culaunch import testing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

N = 64
SOURCE = """
extern "C" __global__ void copy(int* y, const int* x) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void write(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 7; }
extern "C" __global__ void exchange(int* x) { atomicExch(x + threadIdx.x, 7); }
extern "C" __global__ void add(int* x) { atomicAdd(x + threadIdx.x, 7); }
extern "C" __global__ void discard(int* y, const int* x, int n) {
  int value = *(volatile const int*)(x + threadIdx.x);
  if (threadIdx.x < n) y[threadIdx.x] = value;
}
extern "C" __global__ void sum(int* y, const int* x) {
  if (x[threadIdx.x] > 0) atomicAdd(y, 1);
}
"""


@pytest.fixture(autouse=True)
def emulator() -> Iterator[None]:
    with testing.use_driver("emulator"):
        yield
        testing.reset_emulator()


@pytest.fixture
def kernels() -> Any:
    return cl.load(cl.compile(SOURCE, line_info=True, name="unwritten.cu"))


def use(kernels: Any, x: cl.DeviceArray) -> np.ndarray:
    y = cl.zeros(N, "i4")
    kernels["copy"][1, N](y, x)
    return y.numpy()


def test_a_use_is_reported_with_its_allocation(kernels: Any) -> None:
    with testing.emulator_options(check_unwritten=True, track_allocations=True):
        x = cl.empty(N, "i4")
        with pytest.raises(cl.DriverError) as caught:
            use(kernels, x)
    report = caught.value.report
    assert report is not None
    assert (report.kind, report.thread) == ("uninitialized", (0, 0, 0))
    assert f"read of global address {x.address:#x}, which nothing has written" in report.message
    where = f"the address: 0 bytes into an allocation of 256 bytes at {x.address:#x}, argument 1"
    assert any(note.startswith(f"{where}, made at {__file__}:") for note in report.notes)
    assert "(check_unwritten turns this check off)" in report.notes


def by_copy(x: cl.DeviceArray) -> None:
    x.copy_from(np.full(N, 7, np.int32))


def by_the_host(x: cl.DeviceArray) -> None:
    np.from_dlpack(x)[:] = 7


def by_a_device_copy(x: cl.DeviceArray) -> None:
    x.copy_from(cl.to_device(np.full(N, 7, np.int32)))


@pytest.mark.parametrize("write", [by_copy, by_the_host, by_a_device_copy])
def test_the_host_writes(kernels: Any, write: Callable[[cl.DeviceArray], None]) -> None:
    with testing.emulator_options(check_unwritten=True):
        x = cl.empty(N, "i4")
        write(x)
        np.testing.assert_array_equal(use(kernels, x), 7)


def test_zeros_are_written(kernels: Any) -> None:
    with testing.emulator_options(check_unwritten=True):
        np.testing.assert_array_equal(use(kernels, cl.zeros(N, "i4")), 0)


@pytest.mark.parametrize("name", ["write", "exchange"])
def test_another_launch_writes(kernels: Any, name: str) -> None:
    with testing.emulator_options(check_unwritten=True):
        x = cl.empty(N, "i4")
        kernels[name][1, N](x, *([N] if name == "write" else []))
        np.testing.assert_array_equal(use(kernels, x), 7)


def test_a_launch_without_the_option_writes_too(kernels: Any) -> None:
    with testing.emulator_options(check_unwritten=True):
        x = cl.empty(N, "i4")
    kernels["write"][1, N](x, N)
    with testing.emulator_options(check_unwritten=True):
        np.testing.assert_array_equal(use(kernels, x), 7)


def test_what_a_launch_leaves_out_stays_unwritten(kernels: Any) -> None:
    with testing.emulator_options(check_unwritten=True):
        x = cl.empty(N, "i4")
        kernels["write"][1, N](x, N - 1)
        with pytest.raises(cl.DriverError, match=r"read of global address .*nothing has written"):
            use(kernels, x)


def test_a_sum_of_unwritten_memory_stays_unwritten(kernels: Any) -> None:
    with testing.emulator_options(check_unwritten=True):
        x = cl.empty(N, "i4")
        kernels["add"][1, N](x)
        with pytest.raises(cl.DriverError, match="nothing has written"):
            use(kernels, x)


def test_a_branch_is_a_use(kernels: Any) -> None:
    with (
        testing.emulator_options(check_unwritten=True),
        pytest.raises(cl.DriverError, match="nothing has written"),
    ):
        kernels["sum"][1, N](cl.zeros(1, "i4"), cl.empty(N, "i4"))


def test_a_read_that_is_discarded_is_no_use(kernels: Any) -> None:
    with testing.emulator_options(check_unwritten=True):
        x, y = cl.empty(N, "i4"), cl.zeros(N, "i4")
        kernels["write"][1, N](x, 8)
        kernels["discard"][1, N](y, x, 8)
        np.testing.assert_array_equal(y.numpy(), [7] * 8 + [0] * (N - 8))


def test_an_allocation_without_the_option_is_zero_and_not_checked(kernels: Any) -> None:
    x = cl.empty(N, "i4")
    np.testing.assert_array_equal(use(kernels, x), 0)
    with testing.emulator_options(check_unwritten=True):
        np.testing.assert_array_equal(use(kernels, x), 0)
        assert cl.empty(N, "i4").numpy().any()  # no zeros, on which a program might rely
