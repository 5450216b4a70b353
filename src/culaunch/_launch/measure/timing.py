"""The times of a benchmark: their median and their spread, for reading and plotting."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from culaunch._base.figures import axes_for, label, picture
from culaunch._base.html import html_table
from culaunch._base.units import scaled_text, time_text

_BINS, _WIDTH = 8, 40
_EMULATED = "wall clock of the emulation on the CPU, which says nothing about a GPU"
_FAR = 3.0  # times the distance from the minimum to the upper quartile, above the quartile


@dataclass(frozen=True)
class Timing:
    """The result of :func:`culaunch.profile.benchmark`.

    Attributes
    ----------
    name : str
        The name of the kernel or the function.
    device : str
        The device's name.
    times : tuple of float
        Milliseconds, in the order of the runs.
    is_emulated : bool
        Whether they are wall-clock times of an emulation, which say nothing about a GPU.
    is_flushed : bool
        Whether the second-level cache was overwritten before each run.
    bytes, flops : float or None
        The bytes and operations of one call, as declared.
    peak_bandwidth, peak_flops : float or None
        The limits per second that the fractions refer to.

    Examples
    --------
    >>> launcher = kernel[1, 256]
    >>> timing = cl.profile.benchmark(launcher, y, x, 2.0, 256, repeat=5, flush=False, bytes=2048)
    >>> timing.median > 0, timing.bandwidth > 0
    (True, True)
    """

    name: str
    device: str
    times: tuple[float, ...]
    is_emulated: bool = False
    is_flushed: bool = False
    bytes: float | None = None
    flops: float | None = None
    peak_bandwidth: float | None = None
    peak_flops: float | None = None

    @property
    def median(self) -> float:
        """The median time, in milliseconds."""
        return statistics.median(self.times)

    @property
    def minimum(self) -> float:
        """The shortest time, in milliseconds."""
        return min(self.times)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile of the times, in milliseconds."""
        # The standard library needs two values.
        if len(self.times) == 1:
            return self.times[0], self.times[0]
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return low, high

    @property
    def spread(self) -> float:
        """Return the interquartile range as a fraction of the median."""
        low, high = self.quartiles
        return (high - low) / self.median if self.median else 0.0

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second, by the median; None if the bytes were not given."""
        return _rate(self.bytes, self.median)

    @property
    def throughput(self) -> float | None:
        """Floating-point operations per second, by the median; None if they were not given."""
        return _rate(self.flops, self.median)

    @property
    def bandwidth_fraction(self) -> float | None:
        """The fraction of the memory's peak bandwidth."""
        return _fraction(self.bandwidth, self.peak_bandwidth)

    @property
    def flops_fraction(self) -> float | None:
        """The fraction of the peak arithmetic throughput."""
        return _fraction(self.throughput, self.peak_flops)

    @property
    def roofline_fraction(self) -> float | None:
        """The fraction of the limit that binds the kernel: the larger of the two fractions."""
        # A kernel is bound by memory or by arithmetic, whichever limit it is closer to.
        known = [one for one in (self.bandwidth_fraction, self.flops_fraction) if one is not None]
        return max(known, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON: the fields, and the values computed from them.

        Returns
        -------
        dict
            The fields, and the properties. Times are in milliseconds.
        """
        names = ("median", "minimum", "quartiles", "spread", "bandwidth", "throughput")
        computed = {name: getattr(self, name) for name in (*names, "roofline_fraction")}
        return {**asdict(self), **computed}

    def plot(self, axes: Any = None) -> Any:
        """Draw the times with matplotlib.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to; a new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes
            ``axes.figure.savefig(path)`` writes it to a file.

        Raises
        ------
        MissingDependencyError
            Without matplotlib.
        TypeError
            If `axes` are not matplotlib's.
        """
        axes = axes_for("Timing.plot", axes)
        axes.hist(self.times, bins=min(50, len(self.times)))
        axes.axvline(self.median, color="black", linestyle="--", label=f"median {self.median:.4g}")
        axes.set(title=label(self.name), xlabel="milliseconds", ylabel="runs")
        axes.legend()
        return axes

    def __str__(self) -> str:
        low, high = self.quartiles
        times = (
            f"median {time_text(self.median)}, quartiles {time_text(low)} and {time_text(high)}, "
            f"minimum {time_text(self.minimum)}"
        )
        lines = [f"{self.name} on {self.device}", f"  {times}; {self._runs()}"]
        if self.is_emulated:
            lines.append(f"  {_EMULATED}")
        lines += [f"  {text}" for _, text in self._rates()]
        return "\n".join([*lines, *self._histogram()])

    def _repr_html_(self) -> str:
        low, high = self.quartiles
        rows = [
            ("median", time_text(self.median)),
            ("quartiles", f"{time_text(low)} and {time_text(high)}"),
            ("minimum", time_text(self.minimum)),
            ("runs", self._runs()),
            *self._rates(),
        ]
        drawn = picture(self.plot)
        note = [_EMULATED] * self.is_emulated + ([] if drawn else self._histogram())
        caption = f"{self.name} on {self.device}"
        return html_table(("", "time"), rows, caption, "\n".join(note)) + drawn

    def _runs(self) -> str:
        return f"{len(self.times)} runs{', L2 flushed' if self.is_flushed else ''}"

    def _rates(self) -> list[tuple[str, str]]:
        """Return the known rates, each with its name."""
        rates = []
        for name, rate, unit, fraction, what in (
            ("bandwidth", self.bandwidth, "B/s", self.bandwidth_fraction, "the memory's"),
            ("throughput", self.throughput, "FLOP/s", self.flops_fraction, "the arithmetic's"),
        ):
            if rate is not None:
                part = "" if fraction is None else f", {fraction:.1%} of {what} peak"
                rates.append((name, f"{scaled_text(rate)}{unit}{part}"))
        return rates

    def __repr__(self) -> str:
        runs = f"{len(self.times)} runs on {self.device}"
        return f"<culaunch.profile.Timing {self.name}: median {time_text(self.median)}, {runs}>"

    def _histogram(self) -> list[str]:
        low, high = min(self.times), max(self.times)
        quartile = self.quartiles[1]
        # A few delayed runs would squeeze all others into one bin.
        high = min(high, quartile + _FAR * (quartile - low))
        if high <= low:
            return []
        shown = [one for one in self.times if one <= high]
        counts = [0] * _BINS
        for one in shown:
            counts[min(int((one - low) / (high - low) * _BINS), _BINS - 1)] += 1
        step, most = (high - low) / _BINS, max(counts)
        lines = [
            f"  {time_text(low + i * step):>9} |{bar:<{_WIDTH}}| {count}"
            for i, count in enumerate(counts)
            for bar in ["#" * round(_WIDTH * count / most)]
        ]
        if slower := len(self.times) - len(shown):
            lines.append(f"  {slower} slower, up to {time_text(max(self.times))}")
        return lines


def _rate(amount: float | None, milliseconds: float) -> float | None:
    return None if amount is None or not milliseconds else 1e3 * amount / milliseconds


def _fraction(value: float | None, peak: float | None) -> float | None:
    return None if value is None or peak is None else value / peak
