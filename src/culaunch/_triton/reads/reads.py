"""The inputs of a heuristic or a grid, found from its code (``of_code``).

These functions are nearly always a lambda over a few arguments: ``args["h0"] is not None``,
``args["D"] % args["BD"] == 0``. If everything that a function can reach is known to be pure, an
earlier call with the same inputs has the same result. Any other function must be called.
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
    """The inputs that determine the result of a function of a kernel's arguments."""

    values: set[str] = field(default_factory=set)
    """Arguments whose values it reads. They must be numbers, bools, strings or None."""
    nones: set[str] = field(default_factory=set)
    """Arguments that it only compares with None, and None."""
    types: set[str] = field(default_factory=set)
    """Arguments whose type it reads."""
    dtypes: set[str] = field(default_factory=set)
    """Arguments whose element type it reads."""
    shapes: set[tuple[str, ShapePart]] = field(default_factory=set)
    """Pairs of a PyTorch tensor and the part of its shape or strides that the function reads."""
    guards: list[Guard] = field(default_factory=list)
    """Globals that it uses."""
    cells: list[tuple[Any, object]] = field(default_factory=list)
    """Closed-over variables that it uses, with their contents."""

    @property
    def names(self) -> set[str]:
        """All arguments that it reads."""
        return self.values | self.nones | self.types | self.dtypes | {one for one, _ in self.shapes}
