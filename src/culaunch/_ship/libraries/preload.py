"""``preload``: load the code of a first call before the call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._launch import Device, Kernel, Module
from culaunch._launch.devices.driver import current_driver, device_ordinal
from culaunch._launch.modules.loading import LoadReport, preloading
from culaunch._launch.private_members import make_ready
from culaunch._ship.functions.loaded_function import LoadedFunction
from culaunch._ship.libraries.library import Library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._core import Kernel as CoreKernel

_SOURCES = (Library, LoadedFunction, Module, Kernel)


def preload(
    *sources: Any, devices: int | Device | Iterable[int | Device] | None = None
) -> LoadReport:
    """Load the code of the first calls now and prepare devices, so those calls do not wait.

    From a set of Triton's variants, only those that run on a device are loaded. If variants differ
    only in the architecture, only the nearest is.

    Parameters
    ----------
    *sources : Library, LoadedFunction, KernelSet, Module or Kernel
        The objects that you are going to call.
    devices : int, Device, or iterable of them, optional
        Where to load them; the current device by default.

    Returns
    -------
    LoadReport
        The code that this call loaded, without the code that was loaded before.

    Raises
    ------
    TypeError
        If an argument has another type.
    DriverError, ImageError
        If an image cannot be loaded.
    KernelNotFoundError
        If a function has no program for a device.

    Examples
    --------
    >>> report = cl.ship.preload(module)
    """
    ordinals = _ordinals(devices)
    for source in sources:
        if not isinstance(source, _SOURCES) and not _is_set_of_variants(source):
            raise TypeError(
                "preload() accepts libraries, their functions, sets of Triton kernels, modules "
                f"and kernels (got {spell(source)})"
            )
    # Every module loaded in the block records its time and place.
    with preloading() as loaded:
        for source in sources:
            for ordinal in ordinals:
                with Device(ordinal):  # which decides the program, if there are several
                    for kernel in _kernels(source, ordinal):
                        make_ready(kernel, ordinal)
    return LoadReport(tuple(loaded))


def _kernels(source: Any, ordinal: int) -> Iterator[CoreKernel]:
    if isinstance(source, Library):
        for function in source:
            yield from function.load_all()
        yield from source.kernels.values()
    elif isinstance(source, LoadedFunction):
        yield from source.load_all()
    elif isinstance(source, Module):
        yield from source.kernels
    elif isinstance(source, Kernel):
        yield source
    else:
        yield from source.load_all(ordinal)


def _is_set_of_variants(source: Any) -> bool:
    # Libraries of functions do not need the Triton package.
    from culaunch._triton.saved.variant_dispatch import VariantDispatcher

    return isinstance(source, VariantDispatcher)


def _ordinals(devices: Any) -> list[int]:
    driver = current_driver()
    if isinstance(devices, Iterable) and not isinstance(devices, (str, bytes)):
        return [device_ordinal(driver, one) for one in devices]
    return [device_ordinal(driver, devices)]
