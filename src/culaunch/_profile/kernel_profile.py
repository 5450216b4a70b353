"""The launches of one kernel with one configuration: a row of a profile."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._profile.launch import Launch


@dataclass(frozen=True)
class KernelProfile:
    """All launches of a kernel with one grid, block and shared memory on one device.

    Attributes
    ----------
    name : str
        The kernel as it is written in C++; for a graph, ``graph of`` and its kernels.
    device : str
        The device's name.
    block : tuple of int
        Threads of a block, (x, y, z).
    shared_memory, static_shared : int
        Dynamic and static shared memory of a block in bytes.
    registers, local_bytes : int or None
        Registers and bytes of local memory of a thread; None if the driver does not know.
    calls : int
        Number of launches, without those that the driver refused.
    device_times, host_times : tuple of float
        Milliseconds of the timed launches on the device, and of all launches on the host.
    argument_bytes : int or None
        Bytes of the arrays of a launch: the median of the launches if they are known.
    bandwidth : float or None
        Bytes of the arguments per second on the device: the median of the launches if both are
        known.
    peak_bandwidth : float or None
        Bytes per second of the device's memory.
    active_blocks : int or None
        Blocks that a multiprocessor runs at once, by the driver.
    occupancy : float or None
        Their warps, as a fraction of those that a multiprocessor can run.
    limited_by : tuple of str
        What allows no more blocks: ``"threads"``, ``"blocks"``, ``"registers"`` or
        ``"shared memory"``.
    hint : str
        What would let one more block in; empty if nothing would.

    Examples
    --------
    >>> with cl.profile.launches() as profile:
    ...     kernel[1, 256](y, x, 2.0, 256)
    >>> profile.kernels[0].calls
    1
    """

    name: str
    device: str
    grid: tuple[int, int, int]
    """Blocks of the grid, (x, y, z)."""
    block: tuple[int, int, int]
    shared_memory: int
    calls: int
    device_times: tuple[float, ...]
    host_times: tuple[float, ...]
    argument_bytes: int | None = None
    bandwidth: float | None = None
    peak_bandwidth: float | None = None
    static_shared: int = 0
    registers: int | None = None
    local_bytes: int | None = None
    active_blocks: int | None = None
    occupancy: float | None = None
    limited_by: tuple[str, ...] = ()
    hint: str = ""
    states: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def device_time(self) -> float | None:
        """The median time on the device in milliseconds; None if no launch was timed."""
        return statistics.median(self.device_times) if self.device_times else None

    @property
    def host_time(self) -> float | None:
        """The median time of the launch on the host in milliseconds."""
        return statistics.median(self.host_times) if self.host_times else None

    @property
    def total_time(self) -> float:
        """All time on the device in milliseconds."""
        return sum(self.device_times)

    @property
    def bandwidth_fraction(self) -> float | None:
        """That bandwidth, as a fraction of the memory's."""
        if self.bandwidth is None or not self.peak_bandwidth:
            return None
        return self.bandwidth / self.peak_bandwidth


def median_bytes(launches: list[Launch]) -> int | None:
    """Return the median of the known bytes of launches."""
    known = [one.argument_bytes for one in launches if one.argument_bytes is not None]
    return int(statistics.median(known)) if known else None


def median_bandwidth(launches: list[Launch]) -> float | None:
    """Return the median of the bytes per second of launches whose bytes and times are known."""
    known = [
        1e3 * one.argument_bytes / one.device_time
        for one in launches
        if one.argument_bytes is not None and one.device_time
    ]
    return statistics.median(known) if known else None
