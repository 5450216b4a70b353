"""The timeline of a profile as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.figures import axes_for, label

if TYPE_CHECKING:
    from culaunch._profile.listing import Listing

_COLORS = 10  # matplotlib's cycle has as many
_HEIGHT = 0.8  # of a bar; rows have a distance of 1


def draw_timeline(listing: Listing, axes: Any = None) -> Any:
    """Draw a bar for each call of the driver, and for each kernel on its stream.

    Parameters
    ----------
    listing : Listing
    axes : matplotlib.axes.Axes, optional
    """
    axes = axes_for("Profile.plot", axes)
    rows: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for launch in listing.launches:
        if launch.host_time is not None:
            host = rows.setdefault(f"thread {launch.thread}", {})
            host.setdefault(launch.name, []).append((launch.begin, launch.host_time))
        if launch.device_begin is not None and launch.device_time is not None:
            device = rows.setdefault(f"device {launch.device}, stream {launch.stream:#x}", {})
            span = (launch.device_begin, launch.device_time)
            device.setdefault(launch.name, []).append(span)
    # The kernels that took longest have colors of their own; the others share gray.
    names = list(dict.fromkeys(row.name for row in listing.kernels))
    colors = {name: f"C{i}" for i, name in enumerate(names[:_COLORS])}
    seen: set[str] = set()
    for place, kernels in enumerate(rows.values()):
        for name, spans in kernels.items():
            color = colors.get(name, "gray")
            key = name if name in colors else "other kernels"
            bars = axes.broken_barh(
                spans, (place - _HEIGHT / 2, _HEIGHT), facecolors=color, edgecolors=color
            )
            if key not in seen:
                seen.add(key)
                bars.set_label(label(key))
    axes.set_yticks(range(len(rows)), [label(row) for row in rows])
    axes.invert_yaxis()
    axes.set(title="launches", xlabel="milliseconds")
    if seen:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize="small")
    return axes
