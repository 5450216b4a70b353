"""One launch of a profile."""

from __future__ import annotations

from dataclasses import dataclass

# By the numbers of csrc/profile/launch_record.h.
STATES = ("pending", "timed", "captured", "untimed", "refused", "lost")


@dataclass(frozen=True)
class Launch:
    """One launch, as a :class:`culaunch.profile.Profile` lists it.

    Attributes
    ----------
    name : str
        The kernel as it is written in C++; for a graph, ``graph of`` and its kernels.
    mangled : str
        The kernel's name in its image; empty for a graph.
    block : tuple of int
        Threads of a block, (x, y, z); zeros for a graph.
    shared_memory : int
        Dynamic shared memory of a block in bytes.
    device, stream : int
        The device's ordinal, and the stream's handle; with ``others=True``, CUPTI's number of the
        stream.
    thread : str
        The name of the thread that launched; empty if culaunch did not launch it.
    begin : float
        When the driver was called, in milliseconds since the profile began.
    host_time : float or None
        How long the driver took for the launch, in milliseconds; None if culaunch did not launch
        it.
    state : str
        One of ``"timed"``, ``"captured"`` (into a graph, which ran nothing), ``"refused"`` (by the
        driver), ``"lost"`` (the device failed) and ``"untimed"`` (there is no clock).
    device_begin : float or None
        When the device began, in milliseconds since the profile began (see
        :meth:`~culaunch.profile.Profile.save`).
    device_time : float or None
        Milliseconds on the device, between two events around the launch, or as CUPTI records them.
    argument_bytes : int or None
        Bytes of the arrays that the kernel was given, each counted once; None where an array's size
        is not known.
    error : str
        What the driver reported; empty if it reported nothing.

    Examples
    --------
    >>> with cl.profile.launches() as profile:
    ...     kernel[1, 256](y, x, 2.0, 256)
    >>> profile.launches[0].grid, profile.launches[0].block
    ((1, 1, 1), (256, 1, 1))
    """

    name: str
    mangled: str
    grid: tuple[int, int, int]
    """Blocks of the grid, (x, y, z); zeros for a graph."""
    block: tuple[int, int, int]
    shared_memory: int
    device: int
    stream: int
    thread: str
    begin: float
    host_time: float | None
    state: str
    device_begin: float | None = None
    device_time: float | None = None
    argument_bytes: int | None = None
    error: str = ""

    @property
    def begin_of_work(self) -> float:
        """The time when the device began; if it is unknown, when the call began."""
        return self.begin if self.device_begin is None else self.device_begin
