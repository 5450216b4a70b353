"""A picture of the choices of a table over their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.figures import axes_for, label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._tune.configs import Config


def config_text(config: Config) -> str:
    """Return a configuration in words."""
    return ", ".join(f"{name} {value}" for name, value in config.items())


def has_numbers(entry: dict[str, Any]) -> bool:
    """Tell whether an entry of a table has a place in the picture."""
    return _number(entry["key"]) is not None


def plot_keys(entries: Iterable[dict[str, Any]], axes: Any) -> Any:
    """Draw the entries of a device; the first number of a key is the place, the rest is the line.

    Parameters
    ----------
    entries : iterable of dict
        As the table's file has them.
    axes : matplotlib.axes.Axes or None
        The place to draw; None for a new figure's.
    """
    axes = axes_for("TunedConfigs.plot", axes)
    lines: dict[tuple[str, str, str], list[tuple[float, float, str]]] = {}
    for entry in entries:
        at = _number(entry["key"])
        if at is None:
            continue
        rest = ", ".join(str(part) for i, part in enumerate(entry["key"]) if i != at)
        point = (entry["key"][at], entry["value"], config_text(entry["config"]))
        lines.setdefault((entry["name"], rest, entry["unit"]), []).append(point)
    for (name, rest, unit), points in lines.items():
        points.sort()
        text = f"{name} ({rest})" if rest else name
        keys, values = [point[0] for point in points], [point[1] for point in points]
        axes.plot(keys, values, "o-", label=label(f"{text}, {unit}"))
        for key, value, config in points:
            axes.annotate(label(config), (key, value), fontsize="small")
    axes.set(xscale="log", yscale="log", xlabel="key", ylabel="best configuration")
    if lines:
        axes.legend(fontsize="small")
    return axes


def _number(key: list[Any]) -> int | None:
    """Return which part of a key is its first positive number."""
    for i, part in enumerate(key):
        if isinstance(part, (int, float)) and not isinstance(part, bool) and part > 0:
            return i
    return None
