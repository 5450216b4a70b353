"""Streams of a device."""

from __future__ import annotations

import threading

from culaunch._base.checks import checked_flag
from culaunch._base.other_words import with_other_words
from culaunch._base.values import fits, spell
from culaunch._core import current_stream, set_current_stream
from culaunch._launch.devices.driver import current_driver, device_ordinal
from culaunch._launch.devices.event import Event
from culaunch._launch.devices.stream_handle import stream_handle


@with_other_words
class Stream:
    """A stream of a device: kernels and copies in it run in order.

    It is destroyed together with the object, after its work has run. In a ``with stream:`` block it
    is the *current* stream of its device on this thread. Launches with culaunch's own arrays,
    copies and allocations use it if you give no ``stream=``. At the end of the block, the previous
    current stream waits for it on the device; the program does not wait.

    Parameters
    ----------
    device : int, optional
        The device's ordinal; the current one by default.
    priority : int, optional
        A lower number is more urgent; 0 is the usual priority. A number outside the device's range
        (:meth:`priorities`) is refused.
    non_blocking : bool, optional
        False makes the stream and the default stream wait for each other (driver API, without
        ``CU_STREAM_NON_BLOCKING``).

    Attributes
    ----------
    handle : int
        The ``CUstream``.
    device : int
    priority : int or None
        None for a stream that was created elsewhere.

    Raises
    ------
    ValueError
        If the device does not have this priority.
    DriverError
        If the driver cannot create a stream.

    Examples
    --------
    >>> stream = cl.Stream()
    >>> kernel[1, 256, 0, stream](y, x, 2.0, 256)
    >>> stream.synchronize()
    >>> with stream:
    ...     z = scale(x, 2.0)
    """

    handle: int
    device: int
    priority: int | None

    def __init__(
        self, device: int | None = None, *, priority: int = 0, non_blocking: bool = True
    ) -> None:
        flags = int(checked_flag("non_blocking", non_blocking))
        self._driver = current_driver()
        self.device = device_ordinal(self._driver, device)
        self.priority = fits(priority, "priority", 32)
        # The driver silently clamps an unsupported priority.
        if self.priority != 0:
            self._check_priority(self.priority)
        self._owner: object = None
        self._entered = _Entered()
        self.handle = self._driver.stream_create(self.device, flags, self.priority)

    @classmethod
    def from_handle(cls, stream: object, device: int | None = None) -> Stream:
        """Return another library's stream with these methods.

        Parameters
        ----------
        stream : int or object
            Any valid ``stream=`` of a launch. An object is kept alive. The stream behind an int
            must live as long as it is used.
        device : int, optional
            For a default stream (0, 1 or 2), which is every device's: the current one by default.

        Returns
        -------
        Stream
            A stream with the same handle. culaunch does not destroy the handle.

        Raises
        ------
        TypeError, OverflowError
            If it is not a stream.
        ValueError
            If it is another device's.
        """
        handle = stream_handle(stream)
        self = cls.__new__(cls)
        self._driver = current_driver()
        # Every device has the default streams under the same handles, so the driver cannot tell the
        # device.
        if handle in DEFAULT_STREAMS:
            self.device = device_ordinal(self._driver, device)
        else:
            self.device = self._driver.stream_device(handle)
            if device is not None and device_ordinal(self._driver, device) != self.device:
                raise ValueError(
                    f"stream must be of device {device} (got one of device {self.device})"
                )
        self.priority = None
        self._owner = stream
        self._entered = _Entered()
        self.handle = handle
        return self

    @staticmethod
    def priorities(device: int | None = None) -> tuple[int, int]:
        """Return the least and the most urgent priority of a device; the latter is smaller.

        Parameters
        ----------
        device : int, optional
            The ordinal of the device; the current one by default.

        Returns
        -------
        tuple of int
            The two priorities.
        """
        driver = current_driver()
        return driver.priority_range(device_ordinal(driver, device))

    def synchronize(self) -> None:
        """Wait until everything in the stream has run; a kernel's fault is raised here."""
        self._driver.stream_synchronize(self.device, self.handle)

    def query(self) -> bool:
        """Tell whether everything in the stream has run; a kernel's fault is raised here.

        Returns
        -------
        bool
            True if the stream is idle.
        """
        return self._driver.stream_query(self.device, self.handle)

    def record(self, event: Event | None = None) -> Event:
        """Record an event, which completes when all earlier work in the stream has run.

        Parameters
        ----------
        event : Event, optional
            The event; a new one by default.

        Returns
        -------
        Event
            The event.

        Raises
        ------
        ValueError
            If the event is another device's.
        TypeError
            If `event` is not an Event.
        """
        event = Event(self.device) if event is None else event
        if not isinstance(event, Event):
            raise TypeError(f"event must be a culaunch.Event (got {spell(event)})")
        event.record(self)
        return event

    def wait(self, other: object) -> None:
        """Make later work in this stream wait, on the device.

        Parameters
        ----------
        other : Event, or a stream
            What to wait for: an event, or the work in another stream so far.

        Raises
        ------
        TypeError
            If it is neither.
        """
        # Record an event in the other stream now, so its later work is not included.
        if not isinstance(other, Event):
            other = Stream.from_handle(other).record()
        self._driver.stream_wait_event(self.device, self.handle, other.handle, 0)

    def __enter__(self) -> Stream:
        before = current_stream(self.device)
        set_current_stream(self.device, self.handle)
        # Stored per thread, like the current stream, because several threads may enter one Stream.
        self._entered.before.append(before)
        return self

    def __exit__(self, *exception: object) -> None:
        before = self._entered.before.pop()
        set_current_stream(self.device, before)
        # Later work in the previous stream waits for the block's work. After an error, nothing
        # follows.
        if exception[0] is None and before != self.handle:
            Stream.from_handle(before, self.device).wait(self)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the protocol's version and the handle, for every library that takes a stream."""
        return (0, self.handle)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.handle, self.device) == (other.handle, other.device)

    def __hash__(self) -> int:
        return hash((self.handle, self.device))

    def __repr__(self) -> str:
        return f"<culaunch.Stream {self.handle:#x} of device {self.device}>"

    def __del__(self) -> None:
        # The owner destroys a stream that was made elsewhere. Its priority is unknown.
        if hasattr(self, "handle") and self.priority is not None:
            self._driver.stream_destroy(self.device, self.handle)

    def _check_priority(self, priority: int) -> None:
        least, most = self._driver.priority_range(self.device)
        if not most <= priority <= least:
            raise ValueError(
                f"priority must be from {most} (the most urgent) to {least} on device "
                f"{self.device} (got {priority})"
            )


class _Entered(threading.local):
    """The streams that were current before each ``with`` block that a thread is in."""

    def __init__(self) -> None:
        self.before: list[int] = []


# CUDA's default streams: the legacy stream has two handles, and the per-thread stream one.
DEFAULT_STREAMS = (0, 1, 2)
