"""How long a launch takes on its device, and how close it comes to the device's limits."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag, checked_number
from culaunch._base.values import fits, spell
from culaunch._core import Launcher, array_stream, current_stream
from culaunch._launch.arrays.memory import empty
from culaunch._launch.devices.device import Device
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.devices.stream_handle import stream_handle
from culaunch._launch.devices.streams import DEFAULT_STREAMS, Stream
from culaunch._launch.measure.peak_rates import peak_rates
from culaunch._launch.measure.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Callable

_FEWEST, _MOST = 5, 1000
_SECONDS = 0.2  # to spend if the number of runs is not given


def benchmark(
    function: Callable[..., object],
    *args: Any,
    repeat: int | None = None,
    warmup: int = 3,
    flush: bool = True,
    stream: object = None,
    bytes: float | None = None,  # noqa: A002 - what is counted
    flops: float | None = None,
    peak_bandwidth: float | None = None,
    peak_flops: float | None = None,
) -> Timing:
    """Time the calls of a launcher, or of any function that launches in one stream.

    Two events in the stream enclose each run. The times exclude the work between the runs, and the
    host's cost of the launch if it is shorter than the flush. An empty run takes one or two
    microseconds.

    With ``flush=False``, the stream is usually idle before a run. The time then includes the host's
    work between the two events: on an H200, a kernel of 7 us is reported with 22 us. To time a
    small kernel with a warm cache, pass a function that launches it many times, and divide.

    Parameters
    ----------
    function : callable
        A launcher (``kernel[grid, block]``), a function that launches, a Triton launcher ...
    *args
        Its arguments.
    repeat : int, optional
        Number of timed runs. By default they take about 0.2 seconds together; at least 5 and at
        most 1000.
    warmup : int, optional
        Number of runs before the first timed one.
    flush : bool, optional
        Whether to overwrite the second-level cache before each run. The run then finds its
        arguments in memory, as it would in a larger program. Without the flush, the times of small
        kernels include the host's work. Not available on the emulator.
    stream : int or object, optional
        The stream that the function launches in. By default the launcher's own, or the current
        stream of the framework that owns the first array.
    bytes, flops : float, optional
        Bytes that one call reads and writes, and its number of floating-point operations. The
        result then also gives the fraction of the device's limits.
    peak_bandwidth, peak_flops : float, optional
        The limits per second. The defaults are the bandwidth of the device's memory, and the
        float32 rate without tensor cores at the highest clock.

    Returns
    -------
    Timing
        The times in milliseconds. On the emulator they are wall-clock times of the emulation, which
        say nothing about a GPU.

    Raises
    ------
    TypeError, ValueError, OverflowError
        If an argument is invalid, or the call's arguments are wrong.
    DriverError
        If a launch fails.

    Examples
    --------
    >>> timing = cl.profile.benchmark(kernel[1, 256], y, x, 2.0, 256, repeat=5, flush=False)
    >>> print(timing)
    void scale<float>(float*, float const*, float, int) on ...
    """
    if not callable(function):
        raise TypeError(
            "function must be a launcher, such as kernel[grid, block], or another callable (got "
            f"{spell(function)})"
        )
    if repeat is not None and not fits(repeat, "repeat", 32) > 0:
        raise ValueError(f"repeat must be above 0 (got {repeat})")
    if fits(warmup, "warmup", 32) < 0:
        raise ValueError(f"warmup must be at least 0 (got {warmup})")
    checked_flag("flush", flush)
    work = {
        "bytes": bytes,
        "flops": flops,
        "peak_bandwidth": peak_bandwidth,
        "peak_flops": peak_flops,
    }
    for name, value in work.items():
        if value is not None and not checked_number(name, value) > 0:
            raise ValueError(f"{name} must be above 0 (got {spell(value)})")
    where = _stream_of(function, args, stream)
    device = Device(where.device)
    is_emulated = current_driver().name == "emulator"
    # The emulated device has no cache to flush.
    flushed = None if is_emulated or not flush else _Flush(device, where)
    for _ in range(warmup):
        function(*args)
    if repeat is None:
        repeat = _runs_of(function, args, where)
    times = _measure(function, args, where, repeat, flushed)
    limits = {} if is_emulated else peak_rates(device)
    return Timing(
        name=_name_of(function),
        device=device.name,
        times=times,
        is_emulated=is_emulated,
        is_flushed=flushed is not None,
        bytes=bytes,
        flops=flops,
        peak_bandwidth=peak_bandwidth or limits.get("bandwidth"),
        peak_flops=peak_flops or limits.get("flops"),
    )


class _Flush:
    """Overwrite the second-level cache of a device."""

    def __init__(self, device: Device, stream: Stream) -> None:
        # Twice the size of the cache, because writes may be spread unevenly over its parts.
        size = max(2 * device.attribute("l2_cache_size"), 1 << 25)
        self._stream = stream
        self._array = empty(size, "u1", device=device.ordinal)

    def __call__(self) -> None:
        self._array.fill(0, self._stream)


def _measure(
    function: Callable[..., object],
    args: tuple[Any, ...],
    stream: Stream,
    repeat: int,
    flush: _Flush | None,
) -> tuple[float, ...]:
    marks = []
    for _ in range(repeat):
        if flush is not None:
            flush()
        # The event is recorded after the flush and before the launch. Both events are in the
        # stream, so the flush hides the host's work between them.
        start = stream.record()
        function(*args)
        marks.append((start, stream.record()))
    return tuple(end.elapsed(start) for start, end in marks)


def _runs_of(function: Callable[..., object], args: tuple[Any, ...], stream: Stream) -> int:
    """Return how many runs take about as long as allowed."""
    stream.synchronize()
    start = time.perf_counter()
    function(*args)
    stream.synchronize()
    # Wait for one run: a rough estimate is enough.
    took = max(time.perf_counter() - start, 1e-6)
    return min(max(math.ceil(_SECONDS / took), _FEWEST), _MOST)


def _stream_of(function: object, args: tuple[Any, ...], stream: object) -> Stream:
    """Return the stream that a call goes to."""
    if stream is None and isinstance(function, Launcher):
        stream = function.stream
    if stream is not None:
        handle = stream_handle(stream)
        return Stream.from_handle(handle, _device_of(args) if handle in DEFAULT_STREAMS else None)
    for argument in args:
        found = array_stream(current_driver(), argument)
        if found is not None:
            handle, device = found
            return Stream.from_handle(handle, device if handle in DEFAULT_STREAMS else None)
    device = Device().ordinal
    return Stream.from_handle(current_stream(device), device)


def _device_of(args: tuple[Any, ...]) -> int | None:
    """Return the device of the first array."""
    for argument in args:
        found = array_stream(current_driver(), argument)
        if found is not None:
            return found[1]
    return None


def _name_of(function: object) -> str:
    kernel = getattr(function, "kernel", None)
    name = getattr(kernel, "demangled", None) or getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__
