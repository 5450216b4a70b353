"""The attributes that the emulated device and its kernels report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.cuda import DeviceAttribute, FunctionAttribute

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.device import Device
    from culaunch._emulator.driver.state import Kernel

# Few, because a cooperative grid is emulated as a whole.
MULTIPROCESSORS = 16
# The limits of devices with compute capability 8.0 and 9.0; occupancy is computed from these.
_THREADS_PER_MULTIPROCESSOR = 2048
_BLOCKS_PER_MULTIPROCESSOR = 32
_REGISTERS = 32

_LAST_DEVICE_ATTRIBUTE = 160  # CUDA 13 has fewer; a newer header may ask for more
_LAST_KERNEL_ATTRIBUTE = FunctionAttribute.CLUSTER_SCHEDULING_POLICY_PREFERENCE
# The attributes that cuKernelSetAttribute accepts: shared memory, its carve-out, and clusters.
SETTABLE = (
    FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES,
    FunctionAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT,
    FunctionAttribute.REQUIRED_CLUSTER_WIDTH,
    FunctionAttribute.REQUIRED_CLUSTER_HEIGHT,
    FunctionAttribute.REQUIRED_CLUSTER_DEPTH,
    FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    FunctionAttribute.CLUSTER_SCHEDULING_POLICY_PREFERENCE,
)

# Attributes that are not listed are 0, like an absent feature.
_DEVICE: dict[int, int] = {
    DeviceAttribute.MAX_THREADS_PER_BLOCK: 1024,
    DeviceAttribute.MAX_BLOCK_DIM_X: 1024,
    DeviceAttribute.MAX_BLOCK_DIM_Y: 1024,
    DeviceAttribute.MAX_BLOCK_DIM_Z: 64,
    DeviceAttribute.MAX_GRID_DIM_X: 2**31 - 1,
    DeviceAttribute.MAX_GRID_DIM_Y: 65535,
    DeviceAttribute.MAX_GRID_DIM_Z: 65535,
    DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK: 48 * 1024,
    DeviceAttribute.TOTAL_CONSTANT_MEMORY: 64 * 1024,
    DeviceAttribute.WARP_SIZE: 32,
    DeviceAttribute.MAX_REGISTERS_PER_BLOCK: 65536,
    DeviceAttribute.MULTIPROCESSOR_COUNT: MULTIPROCESSORS,
    DeviceAttribute.CONCURRENT_KERNELS: 1,
    DeviceAttribute.MAX_THREADS_PER_MULTIPROCESSOR: _THREADS_PER_MULTIPROCESSOR,
    DeviceAttribute.UNIFIED_ADDRESSING: 1,
    DeviceAttribute.MAX_REGISTERS_PER_MULTIPROCESSOR: 65536,
    DeviceAttribute.COOPERATIVE_LAUNCH: 1,
    DeviceAttribute.MAX_BLOCKS_PER_MULTIPROCESSOR: _BLOCKS_PER_MULTIPROCESSOR,
    DeviceAttribute.MEMORY_POOLS_SUPPORTED: 1,
}


def device_attribute(device: Device, attribute: int) -> int | None:
    """Return a device attribute by its number, or None if there is no such attribute."""
    if not 1 <= attribute <= _LAST_DEVICE_ATTRIBUTE:
        return None
    computed: dict[int, int] = {
        DeviceAttribute.COMPUTE_CAPABILITY_MAJOR: device.capability[0],
        DeviceAttribute.COMPUTE_CAPABILITY_MINOR: device.capability[1],
        DeviceAttribute.CLUSTER_LAUNCH: int(device.has_clusters),
        # The system keeps 1 KiB of a multiprocessor's shared memory for each block.
        DeviceAttribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: device.max_shared + 1024,
        DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: device.max_shared,
        DeviceAttribute.RESERVED_SHARED_MEMORY_PER_BLOCK: 1024,
    }
    return computed.get(attribute, _DEVICE.get(attribute, 0))


def kernel_attribute(device: Device, kernel: Kernel, attribute: int) -> int | None:
    """Return a kernel attribute by its number, or None if it does not exist.

    PTX has no register count: 32 is reported.
    """
    if not 0 <= attribute <= _LAST_KERNEL_ATTRIBUTE:
        return None
    info = kernel.info
    version = 10 * device.capability[0] + device.capability[1]
    dynamic = kernel.max_dynamic_shared
    # Until a kernel opts in to more, static and dynamic memory share the 48 KiB of all devices.
    if dynamic is None:
        dynamic = 48 * 1024 - info.static_shared
    cluster = info.cluster or (0, 0, 0)
    values: dict[int, int] = {
        FunctionAttribute.MAX_THREADS_PER_BLOCK: info.max_threads,
        FunctionAttribute.SHARED_SIZE_BYTES: info.static_shared,
        FunctionAttribute.LOCAL_SIZE_BYTES: info.local_bytes,
        FunctionAttribute.NUM_REGS: _REGISTERS,
        FunctionAttribute.PTX_VERSION: version,
        FunctionAttribute.BINARY_VERSION: version,
        FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES: dynamic,
        FunctionAttribute.REQUIRED_CLUSTER_WIDTH: cluster[0],
        FunctionAttribute.REQUIRED_CLUSTER_HEIGHT: cluster[1],
        FunctionAttribute.REQUIRED_CLUSTER_DEPTH: cluster[2],
        FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED: int(kernel.allows_large_clusters),
    }
    return values.get(attribute, 0)


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
    # Whole warps, and the limit itself, which need not be a multiple of one.
    for threads in {largest, *range(32, largest + 1, 32)}:
        blocks = occupancy(device, kernel, threads, shared(threads))
        best = max(best, (blocks * threads, threads))
    threads = best[1]
    return threads, best[0] // threads if threads else 0
