"""What the emulated device and its kernels say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.device import Device
    from culaunch._emulator.driver.state import Kernel

# Few, because a cooperative grid is emulated as a whole.
MULTIPROCESSORS = 16
_THREADS_PER_MULTIPROCESSOR = 2048
_BLOCKS_PER_MULTIPROCESSOR = 32
_REGISTERS = 32

_LAST_DEVICE_ATTRIBUTE = 160  # CUDA 13 has fewer; a newer header may ask for more
_LAST_KERNEL_ATTRIBUTE = 15
# What cuKernelSetAttribute takes: shared memory, its carve-out, and clusters.
SETTABLE = (8, 9, 11, 12, 13, 14, 15)

# CUdevice_attribute (cuda.h); what is not here is 0, as for a feature that is absent.
_DEVICE = {
    1: 1024,  # threads per block
    2: 1024,  # block dimensions
    3: 1024,
    4: 64,
    5: 2**31 - 1,  # grid dimensions
    6: 65535,
    7: 65535,
    8: 48 * 1024,  # shared memory per block
    9: 64 * 1024,  # constant memory
    10: 32,  # warp size
    12: 65536,  # registers per block
    16: MULTIPROCESSORS,
    31: 1,  # concurrent kernels
    39: _THREADS_PER_MULTIPROCESSOR,
    41: 1,  # unified addressing
    82: 65536,  # registers per multiprocessor
    95: 1,  # cooperative launch
    106: _BLOCKS_PER_MULTIPROCESSOR,
    115: 1,  # memory pools
}


def device_attribute(device: Device, attribute: int) -> int | None:
    """Return a device attribute by its number; None if that is none."""
    if not 1 <= attribute <= _LAST_DEVICE_ATTRIBUTE:
        return None
    computed = {
        75: device.capability[0],
        76: device.capability[1],
        81: device.max_shared + 1024,  # shared memory per multiprocessor
        97: device.max_shared,  # opted in
        113: 1024,  # reserved shared memory per block
    }
    return computed.get(attribute, _DEVICE.get(attribute, 0))


def kernel_attribute(device: Device, kernel: Kernel, attribute: int) -> int | None:
    """Return a kernel attribute by its number (cuda.h, CUfunction_attribute); None if that is none.

    PTX has no register count: 32 is reported.
    """
    if not 0 <= attribute <= _LAST_KERNEL_ATTRIBUTE:
        return None
    info = kernel.info
    version = 10 * device.capability[0] + device.capability[1]
    initial = 48 * 1024 - info.static_shared
    cluster = info.cluster or (0, 0, 0)
    return {
        0: info.max_threads,
        1: info.static_shared,
        3: info.local_bytes,
        4: _REGISTERS,
        5: version,
        6: version,
        8: initial if kernel.max_dynamic_shared is None else kernel.max_dynamic_shared,
        11: cluster[0],
        12: cluster[1],
        13: cluster[2],
    }.get(attribute, 0)


def occupancy(device: Device, kernel: Kernel, threads: int, shared: int) -> int:
    """Return the blocks of a kernel that a multiprocessor runs at once."""
    if not 0 < threads <= kernel.info.max_threads:
        return 0
    blocks = min(_THREADS_PER_MULTIPROCESSOR // threads, _BLOCKS_PER_MULTIPROCESSOR)
    used = kernel.info.static_shared + shared
    return min(blocks, device.max_shared // used) if used else blocks


def best_block(
    device: Device, kernel: Kernel, shared: Callable[[int], int], limit: int
) -> tuple[int, int]:
    """Return the block with the most threads on a multiprocessor, and how many of it run there.

    Parameters
    ----------
    shared : callable
        Returns the dynamic shared memory of a block of so many threads.
    limit : int
        The largest block to think of; 0 for no limit.
    """
    largest = min(kernel.info.max_threads, limit or kernel.info.max_threads)
    best = (0, 0)
    for threads in {largest, *range(32, largest + 1, 32)}:
        blocks = occupancy(device, kernel, threads, shared(threads))
        best = max(best, (blocks * threads, threads))
    threads = best[1]
    return threads, best[0] // threads if threads else 0
