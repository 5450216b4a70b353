"""A roofline: the throughput of kernels under the limits of their device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.figures import axes_for, label
from culaunch._base.values import spell
from culaunch._launch.measure.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Iterable


def plot_roofline(timings: Iterable[Timing], axes: Any = None) -> Any:
    """Draw kernels over their arithmetic intensity, under the limits of the device.

    The slope is the bandwidth of the memory, and the flat part the rate of arithmetic. A kernel on
    the slope is limited by the memory.

    Parameters
    ----------
    timings : iterable of Timing
        Results of :func:`culaunch.profile.benchmark` on one device, with ``bytes=`` and ``flops=``.
    axes : matplotlib.axes.Axes, optional
        The place to draw; a new figure's by default.

    Returns
    -------
    matplotlib.axes.Axes
        ``axes.figure.savefig(path)`` writes it to a file.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    TypeError, ValueError
        If a timing is not one, is emulated, or has no bytes, operations or limits; or if the
        timings have different limits.

    Examples
    --------
    >>> timing = cl.profile.benchmark(
    ...     kernel[1, 256], y, x, 2.0, 256, bytes=2048, flops=256
    ... )  # doctest: +SKIP
    >>> axes = cl.profile.plot_roofline([timing])  # doctest: +SKIP
    """
    if not hasattr(timings, "__iter__"):
        raise TypeError(f"timings must be an iterable of Timing (got {spell(timings)})")
    points = [_point(timing) for timing in timings]
    if not points:
        raise ValueError("timings must have at least one Timing (got none)")
    limits = {(point[3], point[4]) for point in points}
    if len(limits) > 1:
        raise ValueError("timings must be of one device: their limits differ")
    axes = axes_for("plot_roofline", axes)
    ((bandwidth, flops),) = limits
    ridge = flops / bandwidth
    intensities = [point[1] for point in points]
    low, high = min(*intensities, ridge) / 4, max(*intensities, ridge) * 4
    axes.loglog([low, ridge, high], [low * bandwidth, flops, flops], color="black")
    for i, (name, intensity, rate, _, _) in enumerate(points):
        axes.plot(intensity, rate, "o", color=f"C{i}", label=label(name))
    axes.set(xlabel="operations per byte", ylabel="operations per second", title="roofline")
    axes.legend(fontsize="small")
    return axes


def _point(timing: Timing) -> tuple[str, float, float, float, float]:
    """Return the name, the intensity, the rate, and the limits of a timing."""
    if not isinstance(timing, Timing):
        raise TypeError(f"timings must be Timing, as benchmark returns it (got {spell(timing)})")
    if timing.is_emulated:
        raise ValueError(f"{timing.name} was emulated: its times say nothing about a device")
    if not timing.bytes or not timing.flops or timing.throughput is None:
        raise ValueError(
            f"{timing.name} lacks its bytes or operations: call benchmark with bytes= and flops="
        )
    if not timing.peak_bandwidth or not timing.peak_flops:
        raise ValueError(
            f"the limits of {timing.name}'s device are not known: call benchmark with "
            "peak_bandwidth= and peak_flops="
        )
    intensity = timing.flops / timing.bytes
    return timing.name, intensity, timing.throughput, timing.peak_bandwidth, timing.peak_flops
