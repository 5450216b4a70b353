"""The device runtime: launches of kernels by kernels (CUDA Dynamic Parallelism, version 2).

All children of a grid run after it, one after the other. So streams and events only have handles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import store
from culaunch._emulator.ops.device_copies import COPIES, TAIL_LAUNCH, words_of
from culaunch._emulator.report import Related

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.types import Lanes

_NO_EFFECT = (
    *("GetLastError", "PeekAtLastError", "StreamDestroy", "EventDestroy", "EventRecord"),
    *("EventRecord_ptsz", "EventRecordWithFlags", "EventRecordWithFlags_ptsz"),
    *("StreamWaitEvent", "StreamWaitEvent_ptsz"),
)
_HANDLE = 0x10  # of every stream and event


def _extents(group: Group, value: Lanes) -> list[tuple[int, ...]]:
    """Return three numbers for each lane, from the bytes of a ``dim3``."""
    rows = np.ascontiguousarray(value[:, :12]).view(np.uint32)
    return [tuple(map(int, row)) for row in np.broadcast_to(rows, (group.n, 3))]


def _parameter_buffer(group: Group, arguments: list[Lanes]) -> Lanes:
    launch = group.chunk.launch
    kernels = [launch.kernel.module.function_name(at) for at in words_of(group, arguments[0])]
    image = launch.kernel.module.image
    grids, blocks = (_extents(group, value) for value in arguments[1:3])
    shared, addresses, ranges = words_of(group, arguments[3]), [], []
    for lane, name in enumerate(kernels):
        if name not in image.kernels:
            raise Fault(
                LAUNCH_FAILED,
                "cudaGetParameterBufferV2 got an address that is not a kernel's",
                lane=group.lane_at(lane),
            )
        size = image.kernel(name).param_bytes
        own = grids[lane], blocks[lane], shared[lane] & 0xFFFFFFFF
        addresses.append(launch.children.prepare(name, size, *own))
        ranges.append((addresses[-1], size))
    launch.memory.add(ranges)
    return np.array(addresses, np.uint64)


def _launch(group: Group, arguments: list[Lanes]) -> Lanes:
    launch = group.chunk.launch
    call = launch.position(group.code.blocks[group.block].instructions[-1])
    buffers, streams = (words_of(group, value) for value in arguments[:2])
    for lane, (buffer, stream) in enumerate(zip(buffers, streams, strict=True)):
        block, thread = group.chunk.place(group.lane_at(lane))
        place = Related(f"launched by block {block}, thread {thread} at {call}", call)
        if not launch.children.launch(buffer, place, is_tail=stream == TAIL_LAUNCH):
            raise Fault(
                LAUNCH_FAILED,
                f"cudaLaunchDeviceV2 got {buffer:#x}, which is not a parameter buffer, or one that "
                "was launched: get one for each launch from cudaGetParameterBufferV2",
                lane=group.lane_at(lane),
            )
    return np.zeros(1, np.uint32)


def _create(group: Group, arguments: list[Lanes]) -> Lanes:
    at = np.array(words_of(group, arguments[0]), np.uint64)
    store(group, LOCATORS[""](group, at, 8, "write"), 8, [np.full(1, _HANDLE, np.uint64)])
    return np.zeros(1, np.uint32)


def _number(value: int) -> Callable[..., Lanes]:
    """Return a function that writes an int."""

    def write(group: Group, arguments: list[Lanes]) -> Lanes:
        at = np.array(words_of(group, arguments[0]), np.uint64)
        store(group, LOCATORS[""](group, at, 4, "write"), 4, [np.full(1, value, np.uint32)])
        return np.zeros(1, np.uint32)

    return write


def _succeed(_group: Group, _arguments: list[Lanes]) -> Lanes:
    """Return success: a launch that fails ends the parent's launch."""
    return np.zeros(1, np.uint32)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "GetParameterBufferV2": _parameter_buffer,
    "LaunchDeviceV2": _launch,
    "LaunchDeviceV2_ptsz": _launch,
    "StreamCreateWithFlags": _create,
    "EventCreateWithFlags": _create,
    "GetDevice": _number(0),
    "GetDeviceCount": _number(1),
    **COPIES,
    **dict.fromkeys(_NO_EFFECT, _succeed),
}
# Compilers call the names with __cudaCDP2, and PTX that is written by hand the documented ones.
DEVICE_RUNTIME = {
    f"{prefix}{name}": function
    for prefix in ("__cudaCDP2", "cuda")
    for name, function in _FUNCTIONS.items()
}
