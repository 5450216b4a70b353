"""What a heuristic, or a grid, depends on, as its code tells (``of_code``).

Such functions are nearly always a lambda over a few arguments: ``args["h0"] is not None``,
``args["D"] % args["BD"] == 0``. Where everything that one can come to is known to be pure, its
result is that of an earlier call for which the same was read. Whatever is not known has to be
called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._triton.reads.shapes import ShapePart

# An entry of a dict that must be as it is: (dict, name, is present, object).
Guard = tuple[dict[Any, Any], Any, bool, object]


@dataclass
class Reads:
    """What the result of a function of a kernel's arguments depends on.

    Attributes
    ----------
    values : set of str
        Arguments whose values it reads, which have to be numbers, bools, strings or None.
    nones : set of str
        Arguments of which it asks only whether they are given, and None.
    types : set of str
        Arguments whose type it reads.
    dtypes : set of str
        Arguments whose element type it reads.
    shapes : set of (str, ShapePart)
        Tensors of PyTorch of whose shape, or strides, it reads a part.
    guards : list of Guard
        Globals that it uses.
    cells : list of (cell, object)
        Closed-over variables that it uses, with what they hold.
    """

    values: set[str] = field(default_factory=set)
    nones: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    shapes: set[tuple[str, ShapePart]] = field(default_factory=set)
    guards: list[Guard] = field(default_factory=list)
    cells: list[tuple[Any, object]] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """All arguments that it reads."""
        return self.values | self.nones | self.types | self.dtypes | {one for one, _ in self.shapes}
