"""Streams: culaunch's own, and the handles of every framework's."""

from __future__ import annotations

from typing import Any

from culaunch._base.values import fits, spell
from culaunch._launch.driver import current_driver, device_ordinal


class Stream:
    """A stream of a device: kernels and copies in it run in order.

    It does not wait for the default stream (driver API, ``CU_STREAM_NON_BLOCKING``). It is
    destroyed with the object, once what was put into it has run.

    Parameters
    ----------
    device : int, optional
        The device's ordinal; the current one by default.
    priority : int, optional
        Smaller is more urgent; 0 is the usual one.

    Raises
    ------
    DriverError
        If the driver cannot make one.
    """

    def __init__(self, device: int | None = None, *, priority: int = 0) -> None:
        self._driver = current_driver()
        self.device = device_ordinal(self._driver, device)
        self.handle = self._driver.stream_create(self.device, fits(priority, "priority", 32))

    def synchronize(self) -> None:
        """Wait until everything in the stream has run; a kernel's fault is raised here."""
        self._driver.stream_synchronize(self.device, self.handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the protocol's version and the handle, for every library that takes a stream."""
        return (0, self.handle)

    def __repr__(self) -> str:
        return f"<culaunch.Stream {self.handle:#x} of device {self.device}>"

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._driver.stream_destroy(self.device, self.handle)


def stream_handle(stream: object) -> int:
    """Return the handle of a stream: an int, or an object of a framework.

    Parameters
    ----------
    stream : int or object
        A ``CUstream`` as an int, an object with ``__cuda_stream__`` (the CUDA stream protocol),
        or a PyTorch, CuPy or Numba stream.

    Raises
    ------
    TypeError, OverflowError
        If it is none of these, or no handle.
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        if not 0 <= stream < 1 << 64:
            raise OverflowError(f"stream must be a handle, of 64 bits (got {spell(stream)})")
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair = protocol() if callable(protocol) else protocol
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[1], int):
            raise TypeError(
                f"__cuda_stream__ of {type(stream).__qualname__} must give a tuple of 0 and the "
                f"handle (got {spell(pair)})"
            )
        return pair[1]
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, Numba
        handle: Any = getattr(stream, name, None)
        if hasattr(handle, "value"):  # a ctypes pointer, whose null is None
            handle = handle.value or 0
        if isinstance(handle, int):
            return handle
    raise TypeError(
        "stream must be an int handle, an object with __cuda_stream__, or a PyTorch, CuPy or "
        f"Numba stream (got {spell(stream)})"
    )
