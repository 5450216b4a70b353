"""From a CUlaunchConfig to the arguments of an emulated launch."""

from __future__ import annotations

import ctypes
import math
import struct
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import LaunchAttribute
from culaunch._base.values import counted
from culaunch._emulator.driver.attributes import MULTIPROCESSORS, occupancy
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.fault import (
    COOPERATIVE_LAUNCH_TOO_LARGE,
    INVALID_CLUSTER_SIZE,
    INVALID_VALUE,
    Explanation,
    Fault,
)
from culaunch._emulator.memory.read_only import NamedArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.device import Device
    from culaunch._emulator.driver.c_types import LaunchConfig
    from culaunch._emulator.driver.state import Arrays, Kernel

_UNKNOWN = "an argument"
_NEAR = 1024  # bytes: an index out of bounds, and not an address that is unknown


def launch_request(config: LaunchConfig, kernel: Kernel, device: Device) -> dict[str, Any]:
    """Read a launch configuration, and refuse it if the real driver would."""
    own = kernel.info.cluster
    cluster, cooperative = own or (1, 1, 1), False
    # Priorities and programmatic serialization change nothing if kernels run one after another.
    for i in range(config.attribute_count):
        attribute = config.attributes[i]
        if attribute.id == LaunchAttribute.COOPERATIVE:
            cooperative = bool(attribute.value[0])
        elif attribute.id == LaunchAttribute.CLUSTER_DIMENSION:
            cluster = struct.unpack_from("<III", bytes(attribute.value))
    if own is not None and cluster != own:
        reason = f"the cluster is {cluster}, but the kernel was compiled for {own}"
        raise Fault(INVALID_CLUSTER_SIZE, reason, kernel=kernel.info.name)
    if math.prod(cluster) > kernel.max_cluster:
        reason = (
            f"the cluster has {counted(math.prod(cluster), 'block')}, but at most "
            f"{kernel.max_cluster} "
            "are allowed"
        )
        raise Fault(INVALID_CLUSTER_SIZE, reason, kernel=kernel.info.name)
    allowed = kernel.max_dynamic_shared
    if allowed is None:
        allowed = 48 * 1024 - kernel.info.static_shared
    if config.shared > allowed:
        raise Fault(
            INVALID_VALUE,
            f"{counted(config.shared, 'byte')} of dynamic shared memory, but the kernel allows "
            f"{allowed}",
            kernel=kernel.info.name,
        )
    grid, block = tuple(config.grid), tuple(config.block)
    if cooperative:
        threads = block[0] * block[1] * block[2]
        limit = occupancy(device, kernel, threads, config.shared) * MULTIPROCESSORS
        if grid[0] * grid[1] * grid[2] > limit:
            raise Fault(
                COOPERATIVE_LAUNCH_TOO_LARGE,
                f"at most {limit} blocks of this size can be resident at once",
                kernel=kernel.info.name,
            )
    return {
        "grid": grid,
        "block": block,
        "shared_bytes": config.shared,
        "cluster": cluster,
        "cooperative": cooperative,
    }


def parameter_bytes(kernel: Kernel, params: Any) -> bytes:
    """Gather a kernel's parameters from the pointers that C passed."""
    # C passes a pointer for each parameter, in order, and no sizes: those are the kernel's own.
    values = bytearray(kernel.info.param_bytes)
    if kernel.info.params and not params:
        raise Refusal(INVALID_VALUE, "the kernel has parameters, and none were passed")
    for i, parameter in enumerate(kernel.info.params):
        if not params[i]:
            raise Refusal(INVALID_VALUE, f"the pointer to argument {i} is null")
        end = parameter.offset + parameter.size
        values[parameter.offset : end] = ctypes.string_at(params[i], parameter.size)
    return bytes(values)


def named_arrays(arrays: list[tuple[int, int]], kernel: Kernel, values: bytes) -> list[NamedArray]:
    """Find the argument for each array: the one that points into it."""
    if not arrays:
        return []
    pointers, named = _pointers(kernel, values), []
    for base, size in arrays:
        found = [i for i, at in enumerate(pointers) if base <= at < base + size]
        name = f"argument {found[0]}" if found else _UNKNOWN
        named.append(NamedArray(base, size, name))
    return named


def array_arguments(arrays: Arrays, kernel: Kernel, values: bytes) -> list[tuple[int, int, int]]:
    """Return the number, the address and the size of each argument that is an array."""
    left, found = [*arrays.writable, *arrays.read_only], []
    for i, at in enumerate(_pointers(kernel, values)):
        array = next((one for one in left if one[0] == at), None)
        if array is not None:
            left.remove(array)
            found.append((i, *array))
    return found


def _pointers(kernel: Kernel, values: bytes) -> list[int]:
    """Return each argument of eight bytes as an address, and zero for the others."""
    # The driver learns of the arrays before the launch, and gets only the bytes of the arguments.
    # The address connects the two.
    return [
        int.from_bytes(values[p.offset : p.offset + p.size], "little") if p.size == 8 else 0
        for p in kernel.info.params
    ]


def argument_names(kernel: Kernel, values: bytes) -> Callable[[int, int], str]:
    """Return a function that names the argument with a pointer between two addresses."""

    def name(begin: int, end: int) -> str:
        found = named_arrays([(begin, end - begin)], kernel, values)[0].name
        return found if found != _UNKNOWN else ""

    return name


def beyond_views(
    arrays: Arrays, kernel: Kernel, values: bytes
) -> Callable[[int], Explanation | None]:
    """Return a function that describes an address beyond a view."""

    def explain(address: int) -> Explanation | None:
        for base, size in (*arrays.storages, *arrays.read_only_storages):
            if not base <= address < base + size:
                continue
            given = [*arrays.writable, *arrays.read_only]
            views = [one for one in given if base <= one[0] < base + size]
            view = min(
                named_arrays(views, kernel, values),
                key=lambda one: max(one.base - address, address - one.base - one.size + 1),
            )
            end = view.base + view.size
            away = f"{counted(address - end, 'byte')} after the end of"
            if address < view.base:
                away = f"{counted(view.base - address, 'byte')} before"
            elif address < end:
                away = "crossing the end of"
            return Explanation(
                "beyond-view",
                f"{away} {view.name}, a view of {counted(view.size, 'byte')}, and inside the "
                f"array of {size} "
                f"bytes at {base:#x} that it is a view of: the option check_views forbids that",
            )
        return None

    return explain


def explain(fault: Fault, known: str) -> None:
    """Add a hint to a fault that only a user of the driver API can cause: the memory it may use."""
    if fault.distance is not None and fault.distance >= _NEAR and not fault.notes:
        fault.notes.append(f"if this is host memory: {known}")
