"""The kernels that devices ran: CUPTI's record beside culaunch's own."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from culaunch._base.nvidia_libraries import needed
from culaunch._core import demangle, set_pip_folders, start_device_kernels, stop_device_kernels
from culaunch._errors import DriverError
from culaunch._launch.devices.device import synchronize
from culaunch._profile.launch import Launch

if TYPE_CHECKING:
    from collections.abc import Sequence


class DeviceKernel(NamedTuple):
    """The fields of ``DeviceKernel`` (csrc/profile/device_kernels.h)."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    device: int
    stream: int
    registers: int
    static_shared: int
    dynamic_shared: int
    local_bytes: int
    begin: int
    end: int

    @property
    def group(self) -> tuple[object, ...]:
        """The row of a profile that it belongs to."""
        return (self.name, self.device, self.grid, self.block, self.dynamic_shared)


@dataclass
class Recording:
    """A recording by CUPTI."""

    began: int
    """Its beginning in nanoseconds of the monotonic clock."""
    _mark: tuple[int, int, int]
    kernels: Sequence[DeviceKernel] = ()
    dropped: int = 0

    @classmethod
    def start(cls) -> Recording:
        """Begin to record."""
        with needed(
            "others=True", "CUPTI", set_pip_folders, "python -m pip install nvidia-cuda-cupti"
        ):
            # The two clocks are read one after the other, so they differ by less than a
            # microsecond from this.
            mark = start_device_kernels()
        return cls(time.monotonic_ns(), mark)

    def stop(self) -> None:
        """Wait for the kernels of the current device, and read the record."""
        with contextlib.suppress(DriverError):  # of an earlier kernel, which the profile lists
            synchronize()
        found, self.dropped = stop_device_kernels(self._mark)
        self.kernels = sorted(map(DeviceKernel._make, found), key=lambda one: one.begin)

    def milliseconds(self, moment: int) -> float:
        """Return a time of CUPTI in milliseconds since the beginning."""
        return (moment - self._mark[2]) / 1e6

    def complete(self, own: Sequence[Launch]) -> list[tuple[Launch, DeviceKernel | None]]:
        """Return culaunch's launches with CUPTI's times, and all other kernels, as they ran.

        A launch is the first kernel of its name and configuration that began after the call and is
        not another launch's. If CUPTI has none, the launch keeps its own times.
        """
        waiting: dict[tuple[object, ...], deque[DeviceKernel]] = defaultdict(deque)
        for kernel in self.kernels:
            waiting[kernel.group].append(kernel)
        found: list[tuple[Launch, DeviceKernel | None]] = []
        others: list[DeviceKernel] = []
        for launch in sorted(own, key=lambda one: one.begin):
            group = (launch.mangled, launch.device, launch.grid, launch.block, launch.shared_memory)
            if group not in waiting or launch.state not in ("timed", "untimed"):
                found.append((launch, None))
                continue
            candidates = waiting[group]
            # Kernels before this call are before all later ones, too.
            while candidates and self.milliseconds(candidates[0].begin) < launch.begin:
                others.append(candidates.popleft())
            if candidates:
                own_kernel = candidates.popleft()
                found.append((self._timed(launch, own_kernel), own_kernel))
            else:
                found.append((launch, None))
        others += (one for kernels in waiting.values() for one in kernels)
        found += ((self._timed(_launch_of(one), one), one) for one in others)
        # A queue may hold a launch for long, so the call's time says nothing about the order.
        return sorted(found, key=lambda pair: pair[0].begin_of_work)

    def _timed(self, launch: Launch, kernel: DeviceKernel) -> Launch:
        begin = self.milliseconds(kernel.begin)
        return replace(
            launch,
            begin=launch.begin if launch.host_time is not None else begin,
            stream=kernel.stream,
            state="timed",
            device_begin=begin,
            device_time=(kernel.end - kernel.begin) / 1e6,
        )


def _launch_of(kernel: DeviceKernel) -> Launch:
    """Return a launch that is not culaunch's: nothing is known of the host's side."""
    return Launch(
        name=demangle(kernel.name),
        mangled=kernel.name,
        grid=kernel.grid,
        block=kernel.block,
        shared_memory=kernel.dynamic_shared,
        device=kernel.device,
        stream=kernel.stream,
        thread="",
        begin=0.0,
        host_time=None,
        state="timed",
    )
