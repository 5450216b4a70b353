"""Whether launches use executable graphs, and the number of those graphs."""

from __future__ import annotations

import os
from dataclasses import dataclass

from culaunch._base.values import spell
from culaunch._launch.devices.driver import current_driver, open_drivers

VARIABLE = "CULAUNCH_GRAPHS"


@dataclass(frozen=True)
class GraphStatus:
    """Whether launches go as graphs, as :func:`culaunch.graph.graph_status` returns it.

    Attributes
    ----------
    mode : str
        The selected mode: ``"auto"``, ``"1"`` or ``"0"``.
    is_on : bool
        Whether repeated launches run as graphs.
    reason : str
        Why, or why not.
    count : int
        The number of graphs.
    limit : int
        The highest number of graphs.

    Examples
    --------
    >>> cl.graph.set_graphs(False)
    >>> status = cl.graph.graph_status()
    >>> status.mode, status.is_on
    ('0', False)
    >>> cl.graph.set_graphs("auto")
    """

    mode: str
    is_on: bool
    reason: str
    count: int
    limit: int

    def __str__(self) -> str:
        if not self.is_on:
            return f"off: {self.reason}"
        return f"on: {self.reason}; {self.count} of at most {self.limit}"


def set_graphs(mode: bool | str, *, limit: int | None = None) -> None:
    """Choose whether launches that are repeated go as executable CUDA graphs.

    The choice is also written to the environment, as ``CULAUNCH_GRAPHS``, for child processes and
    for C++ libraries of this process that open the driver later.

    Parameters
    ----------
    mode : bool or str
        True or ``"1"``: from the first call on. False or ``"0"``: never; existing graphs are
        destroyed. ``"auto"``: after a few equal calls, where graphs were measured to gain.
    limit : int, optional
        How many graphs there may be, 256 without it. Each takes about 0.12 MB of the device's
        memory.

    Raises
    ------
    ValueError
        If the mode is anything else, or the limit is negative.
    TypeError
        If the limit is not an int.

    Examples
    --------
    >>> import culaunch as cl
    >>> cl.graph.set_graphs(False)
    >>> cl.graph.set_graphs("auto", limit=64)
    """
    text = {True: "1", False: "0"}[mode] if isinstance(mode, bool) else mode
    if not isinstance(text, str) or text not in ("0", "1", "auto"):
        raise ValueError(f'mode must be True, False, "1", "0" or "auto" (got {spell(mode)})')
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise TypeError(f"limit must be an int (got {spell(limit)})")
    if limit is not None and not 0 <= limit < 1 << 31:
        raise ValueError(f"limit must be from 0 to 2^31 - 1 (got {spell(limit)})")
    os.environ[VARIABLE] = text
    for driver in (current_driver(), *open_drivers.values()):
        driver.choose_graphs(text, -1 if limit is None else limit)


def graph_status() -> GraphStatus:
    """Return whether the driver in use takes launches as graphs, why, and how many there are.

    Returns
    -------
    GraphStatus
        The mode, whether it is on and why, and the number of graphs.

    Raises
    ------
    DriverNotFoundError
        If there is no driver.

    Examples
    --------
    >>> import culaunch as cl
    >>> print(cl.graph.graph_status())  # doctest: +SKIP
    on: the driver's graphs were measured to be faster; 12 of at most 256
    """
    return GraphStatus(*current_driver().graph_status())
