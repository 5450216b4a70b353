"""The private parts of the extension's objects that this package uses."""

# ruff: noqa: SLF001 - these names start with an underscore because they are not public

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._core import DeviceArray as CoreDeviceArray
    from culaunch._core import Driver, Launcher
    from culaunch._core import Kernel as CoreKernel
    from culaunch._core import Module as CoreModule


def core_of(module: Any) -> CoreModule:
    """Return the extension's object of a module."""
    core: CoreModule = module._core
    return core


def kernel_attribute(kernel: CoreKernel, attribute: int, ordinal: int) -> int:
    """Return an attribute of a kernel on a device, by its ``CUfunction_attribute`` number."""
    return kernel._attribute(attribute, ordinal)


def is_configured(kernel: CoreKernel) -> bool:
    """Tell whether anything but a function's program has made a launcher of a kernel."""
    return kernel._is_configured


def make_ready(kernel: CoreKernel, ordinal: int) -> None:
    """Prepare a kernel on a device, as its first launch does."""
    kernel._make_ready(ordinal)


def stream_device(launcher: Launcher) -> int:
    """Return the device of a launcher's stream."""
    return launcher._stream_device


def driver_of(array: CoreDeviceArray) -> Driver:
    """Return the driver that owns an array's memory."""
    return array._driver


def ordinal_of(array: CoreDeviceArray) -> int:
    """Return the ordinal of an array's device."""
    return array._dlpack_device[1]


def copy_from(array: CoreDeviceArray, source: Any, stream: int, *, waits: bool) -> None:
    """Copy a contiguous buffer of an array's length into it."""
    array._copy_from(source, stream, waits)


def copy_to(array: CoreDeviceArray, target: Any, stream: int, *, waits: bool) -> None:
    """Copy an array into a contiguous buffer of its length."""
    array._copy_to(target, stream, waits)
