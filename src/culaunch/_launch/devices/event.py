"""Events: marks in a stream, and the time between two of them."""

from __future__ import annotations

from culaunch._base.checks import checked_flag
from culaunch._base.other_words import with_other_words
from culaunch._base.values import spell
from culaunch._launch.devices.driver import current_driver, device_ordinal
from culaunch._launch.devices.stream_handle import stream_or_current

_BLOCKING_SYNC, _DISABLE_TIMING = 1, 2  # CU_EVENT_...


@with_other_words
class Event:
    """A mark in a stream: it is done when everything before it in the stream is.

    Parameters
    ----------
    device : int, optional
        The device's ordinal; the current one by default.
    timing : bool, optional
        False for an event that only orders: recording it costs less.
    blocking : bool, optional
        True for a :meth:`synchronize` that lets the processor sleep instead of asking again.

    Attributes
    ----------
    handle : int
        The ``CUevent``.
    device : int
    timing : bool
    is_recorded : bool
        Whether it was put into a stream.

    Raises
    ------
    DriverError
        If the driver cannot make one.

    Examples
    --------
    >>> start = cl.Event().record()
    >>> kernel[1, 256](y, x, 2.0, 256)
    >>> end = cl.Event().record()
    >>> end.synchronize()
    >>> end.elapsed(start) >= 0
    True
    """

    def __init__(
        self, device: int | None = None, *, timing: bool = True, blocking: bool = False
    ) -> None:
        flags = _BLOCKING_SYNC * checked_flag("blocking", blocking)
        self.timing = checked_flag("timing", timing)
        self._driver = current_driver()
        self.device = device_ordinal(self._driver, device)
        self.is_recorded = False
        self.handle = self._driver.event_create(
            self.device, flags | _DISABLE_TIMING * (not self.timing)
        )

    def record(self, stream: object = None) -> Event:
        """Record the event in a stream, and return it.

        Recording it again moves it to the new place.

        Parameters
        ----------
        stream : Stream, int or stream of a framework, optional
            The stream; the current one by default.

        Returns
        -------
        Event
            This event.

        Raises
        ------
        DriverError
            If the stream is another device's, among others.
        """
        handle = stream_or_current(stream, self.device)
        self._driver.event_record(self.device, self.handle, handle)
        self.is_recorded = True
        return self

    def query(self) -> bool:
        """Tell whether it is done, as one that was never recorded is; a fault is raised here.

        Returns
        -------
        bool
            True if all work before the event has run, or it was never recorded.
        """
        return self._driver.event_query(self.device, self.handle)

    def synchronize(self) -> None:
        """Wait until it is done; a fault of a kernel before it is raised here."""
        self._driver.event_synchronize(self.device, self.handle)

    def elapsed(self, since: Event) -> float:
        """Wait for both events, and return the time from another one to this.

        Parameters
        ----------
        since : Event
            The earlier event, of the same device.

        Returns
        -------
        float
            Milliseconds, to about half a microsecond. On the emulator, of the emulation.

        Raises
        ------
        TypeError
            If it is not an Event.
        ValueError
            If one of them was made with ``timing=False``, was not recorded, or is of another
            device.
        """
        if not isinstance(since, Event):
            raise TypeError(f"since must be a culaunch.Event (got {spell(since)})")
        for name, event in (("since", since), ("the event", self)):
            if not event.timing:
                raise ValueError(f"{name} must be made with timing=True, or it has no time")
            if not event.is_recorded:
                raise ValueError(
                    f"{name} must be recorded before elapsed(): call event.record(stream) first"
                )
        if since.device != self.device:
            raise ValueError(
                "both events must be on one device to measure the time between them (got devices "
                f"{since.device} and {self.device})"
            )
        # For an event that is not complete, the driver returns an error instead of a time.
        since.synchronize()
        self.synchronize()
        return self._driver.event_elapsed(self.device, since.handle, self.handle)

    def __repr__(self) -> str:
        return f"<culaunch.Event {self.handle:#x} of device {self.device}>"

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._driver.event_destroy(self.device, self.handle)
