"""The profile of a block: where it begins and ends, and how its log is read."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.checks import checked_flag
from culaunch._base.values import fits
from culaunch._core import demangle, start_profile, stop_profile
from culaunch._errors import DriverError
from culaunch._launch.devices.device import Device
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.measure.peak_rates import peak_rates
from culaunch._profile.device_kernels import Recording
from culaunch._profile.kernel_profile import KernelProfile, median_bandwidth, median_bytes
from culaunch._profile.launch import STATES, Launch
from culaunch._profile.listing import Listing
from culaunch._profile.occupancy_limits import BlockNeeds, Multiprocessor, limits_of
from culaunch._profile.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._core import Driver
    from culaunch._profile.device_kernels import DeviceKernel

# The resources of a multiprocessor, in the order of the class.
_RESOURCES = (
    "max_threads_per_multiprocessor",
    "max_blocks_per_multiprocessor",
    "max_registers_per_multiprocessor",
    "max_shared_memory_per_multiprocessor",
    "reserved_shared_memory_per_block",
)


class _Kernel(NamedTuple):
    """The fields of ``LaunchedKernel`` (csrc/profile/launch_record.h); -1 is unknown."""

    name: str
    device: int
    threads: int
    dynamic_shared: int
    registers: int
    static_shared: int
    local_bytes: int
    max_threads: int
    active_blocks: int


class _Record(NamedTuple):
    """The fields of ``LaunchRecord``; -1 and None mean unknown."""

    kernel: int
    graph_kernels: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    device: int
    stream: int
    thread: int
    begin: int
    duration: int
    argument_bytes: int
    time: int
    code: int
    context: int
    device_begin: float | None
    device_time: float | None


@contextlib.contextmanager
def launches(*, limit: int = 100_000, others: bool = False) -> Iterator[Profile]:
    """Profile every launch inside a ``with`` block.

    The profile lists launches of launchers, functions, graphs, and Triton kernels that culaunch
    launches, from all threads of the process. With ``others=True``, it also lists kernels that
    bypass culaunch, such as those of a framework, or of C++ libraries with a copy of culaunch's
    headers.

    Each launch is enclosed by two events in its stream. Launches do not go as graphs inside the
    block, so the profile sees each of them. The end of the block waits for its launches. A launch
    under stream capture is listed without a time, because it does not run. Blocks may be nested.

    Parameters
    ----------
    limit : int, optional
        The number of launches to keep. Later ones are only counted.
    others : bool, optional
        Let CUPTI (pip's ``nvidia-cuda-cupti``) record the kernels of all devices and libraries. All
        times on devices are then CUPTI's. The kernels of a graph are listed one by one.
        The end of the block waits for the current device. Only one profiler of a process can use
        CUPTI, so ``torch.profiler`` must not run. On the emulator, which only culaunch uses, it
        changes nothing.

    Returns
    -------
    context manager
        Its value is a :class:`~culaunch.profile.Profile`, which is complete when the block ends,
        also by an exception.

    Raises
    ------
    DriverNotFoundError
        If there is no driver.
    MissingDependencyError
        If CUPTI is not installed.
    InternalError
        If CUPTI refuses, for instance because another profiler uses it.
    TypeError, ValueError
        If the limit is not an int above 0, or `others` is not a bool.

    Examples
    --------
    >>> with cl.profile.launches() as profile:
    ...     kernel[1, 256](y, x, 2.0, 256)
    >>> print(profile)
    1 launch on ...
    """
    if fits(limit, "limit", 32) < 1:
        raise ValueError(f"limit must be above 0 (got {limit})")
    checked_flag("others", others)
    driver = current_driver()
    profile = Profile()
    recording = Recording.start() if others and driver.name != "emulator" else None
    mark = start_profile(driver, limit)
    try:
        yield profile
    finally:
        try:
            kernels, records, omitted = stop_profile(driver, mark)
        finally:
            # Whatever happens, CUPTI is left to others.
            if recording is not None:
                recording.stop()
        _fill(profile, driver, [_Kernel(*one) for one in kernels], records, omitted, recording)


def _fill(
    profile: Profile,
    driver: Driver,
    kernels: list[_Kernel],
    records: list[Any],
    omitted: int,
    recording: Recording | None,
) -> None:
    found = [_Record(*one) for one in records]
    # The emulator has neither a clock of a device nor registers.
    is_emulated = driver.name == "emulator"
    origin = min((one.begin for one in found), default=0)
    if recording is not None:
        origin = recording.began
        omitted += recording.dropped
    offsets = _offsets(found, origin)
    names = {one.ident: one.name for one in threading.enumerate()}
    own = [_launch(one, kernels, driver, origin, offsets, names) for one in found]
    of: dict[Any, _Kernel] = {
        _group(launch): kernels[one.kernel]
        for launch, one in zip(own, found, strict=True)
        if one.kernel >= 0
    }
    listed: list[tuple[Launch, DeviceKernel | None]] = [(one, None) for one in own]
    if recording is not None:
        # CUPTI has the kernels of a graph, whose time would count twice.
        own = [one if one.mangled else replace(one, device_time=None) for one in own]
        listed = recording.complete(own)
    groups: dict[Any, list[tuple[Launch, DeviceKernel | None]]] = {}
    for pair in listed:
        groups.setdefault(_group(pair[0]), []).append(pair)
    devices = {one.device: _Device(one.device, is_emulated) for one, _ in listed}
    rows = []
    for group, pairs in groups.items():
        device, recorded = devices[pairs[0][0].device], pairs[0][1]
        kernel = of.get(group)
        if kernel is None and recorded is not None:
            kernel = _recorded_kernel(recorded, device)
        rows.append(_row([launch for launch, _ in pairs], kernel, device))
    rows.sort(key=lambda row: (-row.total_time, -sum(row.host_times)))
    profile._listing = Listing(  # noqa: SLF001 - set once, here
        tuple(launch for launch, _ in listed), tuple(rows), is_emulated, omitted
    )


def _group(launch: Launch) -> tuple[object, ...]:
    """Return what the launches of a row share."""
    name = launch.mangled or launch.name
    return (name, launch.device, launch.grid, launch.block, launch.shared_memory)


def _recorded_kernel(one: DeviceKernel, device: _Device) -> _Kernel:
    """Return the facts of a kernel that culaunch did not load."""
    threads = one.block[0] * one.block[1] * one.block[2]
    blocks = -1
    if device.multiprocessor is not None:
        needs = BlockNeeds(threads, one.registers, one.static_shared + one.dynamic_shared)
        blocks = limits_of(needs, device.multiprocessor).blocks
    return _Kernel(
        one.name, one.device, threads, one.dynamic_shared, one.registers, one.static_shared,
        one.local_bytes, -1, blocks,
    )  # fmt: skip


def _launch(
    one: _Record,
    kernels: list[_Kernel],
    driver: Driver,
    origin: int,
    offsets: dict[int, float],
    threads: dict[int | None, str],
) -> Launch:
    mangled = kernels[one.kernel].name if one.kernel >= 0 else ""
    name = demangle(mangled) if mangled else _graph_name(one.graph_kernels)
    begin = one.device_begin
    return Launch(
        name=name,
        mangled=mangled,
        grid=one.grid,
        block=one.block,
        shared_memory=one.shared,
        device=one.device,
        stream=one.stream,
        thread=threads.get(one.thread, f"ended thread {one.thread}"),
        begin=(one.begin - origin) / 1e6,
        host_time=one.duration / 1e6,
        state=STATES[one.time],
        device_begin=None if begin is None else begin + offsets[one.context],
        device_time=one.device_time,
        argument_bytes=one.argument_bytes if one.argument_bytes >= 0 else None,
        error=driver.describe(one.code) if one.code else "",
    )


def _graph_name(kernels: tuple[str, ...]) -> str:
    names: list[str] = []
    for name in map(demangle, kernels):
        if name not in names:
            names.append(name)
    return f"graph of {', '.join(names) or 'no kernels'}"


def _offsets(records: list[_Record], origin: int) -> dict[int, float]:
    """Return for each context when its clock began, in milliseconds since the first launch.

    No kernel begins before the call that launches it: this is the earliest time for which that
    holds. It is exact if one launch found its stream idle.
    """
    offsets: dict[int, float] = {}
    for one in records:
        if one.device_begin is not None:
            least = (one.begin - origin) / 1e6 - one.device_begin
            offsets[one.context] = max(offsets.get(one.context, least), least)
    return offsets


class _Device:
    """The name and the limits of a device, as far as the driver knows them."""

    def __init__(self, ordinal: int, is_emulated: bool) -> None:
        self.name = "an unknown device"
        self.bandwidth: float | None = None
        self.multiprocessor: Multiprocessor | None = None
        self.is_emulated = is_emulated
        if ordinal < 0:
            return
        device = Device(ordinal)
        # A fact that the driver does not know, or no longer knows, is left out.
        with contextlib.suppress(DriverError):
            self.name = device.name
        if is_emulated:
            return
        with contextlib.suppress(DriverError):
            self.bandwidth = peak_rates(device).get("bandwidth")
        with contextlib.suppress(DriverError):
            has = Multiprocessor(*map(device.attribute, _RESOURCES))
            if has.threads and has.blocks and has.registers:
                self.multiprocessor = has


def _row(launches: list[Launch], kernel: _Kernel | None, device: _Device) -> KernelProfile:
    first = launches[0]
    done = [one for one in launches if one.state != "refused"]
    fields: dict[str, Any] = {}
    if kernel is not None and not device.is_emulated:
        fields = {
            "registers": kernel.registers if kernel.registers >= 0 else None,
            "active_blocks": kernel.active_blocks if kernel.active_blocks >= 0 else None,
            **_occupancy(kernel, device),
        }
    if kernel is not None:
        fields["static_shared"] = max(kernel.static_shared, 0)
        fields["local_bytes"] = kernel.local_bytes if kernel.local_bytes >= 0 else None
    states: dict[str, int] = {}
    for one in launches:
        states[one.state] = states.get(one.state, 0) + 1
    return KernelProfile(
        name=first.name,
        device=device.name,
        grid=first.grid,
        block=first.block,
        shared_memory=first.shared_memory,
        calls=len(done),
        device_times=tuple(one.device_time for one in done if one.device_time is not None),
        host_times=tuple(one.host_time for one in done if one.host_time is not None),
        argument_bytes=median_bytes(done),
        bandwidth=median_bandwidth(done),
        peak_bandwidth=device.bandwidth,
        states=states,
        **fields,
    )


def _occupancy(kernel: _Kernel, device: _Device) -> dict[str, Any]:
    has = device.multiprocessor
    if has is None or kernel.active_blocks < 0:
        return {}
    warps = kernel.active_blocks * max(-(-kernel.threads // 32), 1)
    fields: dict[str, Any] = {"occupancy": min(warps / max(has.threads // 32, 1), 1.0)}
    shared = max(kernel.static_shared, 0) + kernel.dynamic_shared
    limits = limits_of(BlockNeeds(kernel.threads, max(kernel.registers, 0), shared), has)
    # The driver knows the device better. If it says something else, the reason is not known.
    if limits.blocks == kernel.active_blocks:
        fields |= {"limited_by": limits.by, "hint": limits.hint}
    return fields
