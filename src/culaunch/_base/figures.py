"""Pictures by matplotlib, which is loaded only for them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import is_installed, optional
from culaunch._base.values import spell

if TYPE_CHECKING:
    from collections.abc import Callable


def axes_for(purpose: str, axes: Any) -> Any:
    """Return the caller's axes, or the axes of a new figure.

    Parameters
    ----------
    purpose : str
        What draws, for the error without matplotlib.
    axes : matplotlib.axes.Axes or None

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    TypeError
        If the axes are not matplotlib's.
    """
    if axes is None:
        figures = optional("matplotlib.figure", purpose, "matplotlib")
        return figures.Figure(layout="constrained").subplots()
    if not hasattr(axes, "hist"):
        raise TypeError(f"axes must be matplotlib's (got {spell(axes)})")
    return axes


def picture(draw: Callable[[], Any]) -> str:
    """Return a function's drawing as SVG for a notebook, or an empty text without matplotlib."""
    if not is_installed("matplotlib"):
        return ""
    import matplotlib as mpl

    target = io.StringIO()
    # Keep text as text, and use the same names in equal pictures.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "culaunch"}):
        draw().figure.savefig(target, format="svg", metadata={"Date": None})
    text = target.getvalue()
    return text[text.index("<svg") :]


def label(name: str, limit: int = 60) -> str:
    """Return a name for a picture: on one line, short, and without matplotlib's formulas."""
    text = "".join(c if c.isprintable() else " " for c in name)
    if len(text) > limit:
        text = f"{text[: limit - 3]}..."
    return text.replace("$", r"\$")
