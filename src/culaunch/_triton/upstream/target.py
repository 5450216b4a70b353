"""Makes Triton compile for the device of a call."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import threading
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import DeviceAttribute
from culaunch._base.driver_choice import driver_choice
from culaunch._base.fork_lock import ForkLock
from culaunch._errors import MissingDependencyError
from culaunch._launch.devices.driver import capability_of, current_driver
from culaunch._triton.upstream.host_clock import HostClock, time_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._core import Driver

# The device properties that Triton's driver returns.
_PROPERTIES = {
    "max_shared_mem": DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    "max_num_regs": DeviceAttribute.MAX_REGISTERS_PER_BLOCK,
    "multiprocessor_count": DeviceAttribute.MULTIPROCESSOR_COUNT,
    "warpSize": DeviceAttribute.WARP_SIZE,
    "sm_clock_rate": DeviceAttribute.CLOCK_RATE,
    "mem_clock_rate": DeviceAttribute.MEMORY_CLOCK_RATE,
    "mem_bus_width": DeviceAttribute.GLOBAL_MEMORY_BUS_WIDTH,
}
_lock = ForkLock()


def triton_module(name: str = "") -> Any:
    """Import Triton, or a module of it by its name below ``triton``.

    Raise MissingDependencyError if it is not installed.
    """
    try:
        # Import the package first: if it is missing, a module below it may be reported instead.
        package = importlib.import_module("triton")
        return importlib.import_module(f"triton.{name}") if name else package
    except ImportError as error:
        # A module that Triton itself imports is missing. The message names it.
        if error.name != "triton":
            raise
        raise MissingDependencyError(
            "this needs Triton: python -m pip install triton. (Loading and launching a saved "
            "KernelSet does not.)"
        ) from None


class StandIn:
    """Answers the compiler's questions to Triton's active driver, for another device or none.

    Parameters
    ----------
    name : str
        Triton caches its compiled kernels by this.
    capability : (int, int)
    attribute : callable, optional
        Returns an attribute of the device by its number.
    """

    def __init__(
        self,
        name: str,
        capability: tuple[int, int],
        attribute: Callable[[int], int] = lambda number: 0,  # noqa: ARG005
    ) -> None:
        self._device = name
        self._capability = capability
        self._attribute = attribute

    @classmethod
    def of_device(cls, driver: Driver, device: int) -> StandIn:
        """Make one for a device of a driver."""
        capability = capability_of(driver, device)
        name = f"{driver.name}:{device}"
        return cls(name, capability, lambda number: driver.attribute(number, device))

    def get_current_device(self) -> Any:
        """Name the device."""
        return self._device

    def get_current_stream(self, device: Any) -> int:  # noqa: ARG002
        """Return a stream that is never launched on."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return the device of PyTorch's tensors for a driver without a GPU: the host."""
        return importlib.import_module("torch").device("cpu")

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:  # noqa: ARG002
        """Return (major, minor)."""
        return self._capability

    @property
    def utils(self) -> Any:
        """The object that autotuners ask for a device's properties, by this name."""
        return self

    def get_device_properties(self, device: Any = None) -> dict[str, int]:  # noqa: ARG002
        """Return the same properties as Triton's own driver."""
        return {name: self._attribute(number) for name, number in _PROPERTIES.items()}

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return an autotuner's timer, because Triton's own needs an NVIDIA device's events."""
        return time_once

    def get_device_interface(self) -> type[HostClock]:
        """Return the timer of autotuners with `warmup` or `rep`."""
        return HostClock

    def get_empty_cache_for_benchmark(self) -> None:
        """Return nothing: there is no device cache to empty."""

    def clear_cache(self, cache: object) -> None:
        """Do nothing."""

    @property
    def launcher_cls(self) -> Any:
        """Refuse Triton's own launches: Triton knows no device here.

        Raises
        ------
        RuntimeError
        """
        raise RuntimeError(
            f"Triton cannot launch on {self._device}, which is not one of its GPUs, but this call "
            "needs Triton: culaunch.triton.report() says why"
        )

    def get_current_target(self) -> Any:
        """Return the target of the compilation."""
        major, minor = self._capability
        return triton_module("backends.compiler").GPUTarget("cuda", 10 * major + minor, 32)


@contextlib.contextmanager
def compiling_for(driver: Driver, device: int) -> Iterator[None]:
    """Make Triton compile for a device while the block runs."""
    if driver.name == "cuda":
        active = triton_module("runtime.driver").driver
        current = active.active.get_current_device()
        if current == device:
            yield
            return
        # Triton compiles for the current device, but a call may go to another.
        active.active.set_current_device(device)
        try:
            yield
        finally:
            active.active.set_current_device(current)
        return
    # Triton's own driver supports only NVIDIA's devices.
    with standing_in(StandIn.of_device(driver, device)):
        yield


@contextlib.contextmanager
def standing_in(driver: StandIn) -> Iterator[None]:
    """Replace Triton's active driver while the block runs."""
    active = triton_module("runtime.driver").driver
    # The process has one active driver, so threads that compile for different devices take turns.
    with _lock:
        before = getattr(active, "_active", None) if hasattr(active, "_active") else active.active
        _stood_aside.append((threading.get_ident(), before))
        active.set_active(driver)
        try:
            yield
        finally:
            _stood_aside.pop()
            active.set_active(before)


def _put_back() -> None:
    """Restore Triton's driver in a forked process, if a missing thread had replaced it."""
    if _stood_aside and _stood_aside[0][0] != threading.get_ident():
        triton_module("runtime.driver").driver.set_active(_stood_aside[0][1])
        _stood_aside.clear()


# The threads with a stand-in, and the previous active driver of each.
_stood_aside: list[tuple[int, Any]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_put_back)


def has_stand_in() -> bool:
    """Whether Triton has no driver of its own, and uses one of ours."""
    return isinstance(getattr(triton_module("runtime.driver").driver, "_active", None), StandIn)


def stand_in_where_triton_has_no_driver() -> None:
    """Give Triton an active driver if the emulator is selected and there is no GPU.

    Wrappers of kernels and functions that prune configurations ask it for the target and for the
    device's properties.
    """
    if driver_choice() != "emulator":
        return
    active = triton_module("runtime.driver").driver
    if getattr(active, "_active", None) is not None:  # this one, or the user's own
        return
    backends = triton_module("backends").backends
    try:
        if any(backend.driver.is_active() for backend in backends.values()):
            return
    except ImportError:  # Triton's own asks PyTorch
        pass
    driver = current_driver()
    active.set_active(StandIn.of_device(driver, driver.current_device()))
