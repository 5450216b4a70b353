"""The launches of a block of code: tables, JSON and a timeline."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_path
from culaunch._base.figures import picture
from culaunch._base.outputs import write_output
from culaunch._base.values import counted
from culaunch._profile.chrome_trace import trace_events
from culaunch._profile.tables import as_html, as_text
from culaunch._profile.timeline import draw_timeline

if TYPE_CHECKING:
    import os

    from culaunch._profile.kernel_profile import KernelProfile
    from culaunch._profile.launch import Launch
    from culaunch._profile.listing import Listing


class Profile:
    """The launches of a block, as :func:`culaunch.profile.launches` lists them.

    ``print`` shows a table in a terminal, and notebooks show one in HTML.

    Examples
    --------
    >>> with cl.profile.launches() as profile:
    ...     kernel[1, 256](y, x, 2.0, 256)
    >>> [(row.calls, row.block) for row in profile.kernels]
    [(1, (256, 1, 1))]
    """

    def __init__(self) -> None:
        self._listing: Listing | None = None

    def _complete(self) -> Listing:
        if self._listing is None:
            raise RuntimeError(
                "the profile is not complete: read it after the with block of "
                "culaunch.profile.launches()"
            )
        return self._listing

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch, in the order of the calls; with ``others=True``, as the devices ran them.

        Raises
        ------
        RuntimeError
            Inside the block: its launches have not ended.
        """
        return self._complete().launches

    @property
    def kernels(self) -> tuple[KernelProfile, ...]:
        """A row for each kernel and configuration, the one with the longest total time first."""
        return self._complete().kernels

    @property
    def is_emulated(self) -> bool:
        """Whether the launches were emulated. Nothing is then known of a device's times."""
        return self._complete().is_emulated

    @property
    def omitted(self) -> int:
        """The number of launches past the limit, which are only counted."""
        return self._complete().omitted

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the kernels with their computed values, and the launches.

        Returns
        -------
        dict
            The fields, in a form that JSON can hold.
        """
        computed = ("device_time", "host_time", "total_time", "bandwidth_fraction")
        return {
            "is_emulated": self.is_emulated,
            "omitted": self.omitted,
            "kernels": [
                {**asdict(row), **{name: getattr(row, name) for name in computed}}
                for row in self.kernels
            ],
            "launches": [asdict(launch) for launch in self.launches],
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return the profile as a text in JSON; times are in milliseconds.

        Parameters
        ----------
        indent : int, optional
            Spaces for each level; by default everything is on one line.

        Returns
        -------
        str
            The text.
        """
        return json.dumps(self.to_dict(), indent=indent)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline in Chrome's trace format, for Perfetto and ``chrome://tracing``.

        A row for each thread shows the calls of the driver, and a row for each stream shows the
        kernels. A device has a clock of its own. Its times are shifted to the earliest ones at
        which no kernel begins before its launch.

        Parameters
        ----------
        path : path
            The file, such as ``trace.json``.

        Raises
        ------
        OSError
            If it cannot be written.
        TypeError, ValueError
            If the path is not one.
        """
        text = json.dumps({"traceEvents": trace_events(self._complete()), "displayTimeUnit": "ms"})
        write_output(checked_path("path", path), text.encode())

    def plot(self, axes: Any = None) -> Any:
        """Draw the timeline with matplotlib: calls of threads, kernels of streams.

        Parameters
        ----------
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
        """
        return draw_timeline(self._complete(), axes)

    def __str__(self) -> str:
        return as_text(self._complete())

    def _repr_html_(self) -> str:
        return as_html(self._complete()) + (picture(self.plot) if self.launches else "")

    def __repr__(self) -> str:
        if self._listing is None:
            return "<culaunch.profile.Profile, not complete>"
        count, rows = len(self.launches), len(self.kernels)
        return (
            f"<culaunch.profile.Profile of {counted(count, 'launch')}, {counted(rows, 'kernel')}>"
        )
