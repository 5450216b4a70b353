"""Tensor maps over a body's arrays, encoded in each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from culaunch._function.arrays.array import StandIn


class TensorMapStandIn(NamedTuple):
    """The result of ``TensorMap.tiled`` for an array in a body.

    ``numbers`` are cuda.h's numbers of the element type, interleave, swizzle, promotion and fill.
    """

    array: StandIn
    box: tuple[Any, ...]
    steps: tuple[Any, ...]
    numbers: tuple[int, ...]

    def _shown(self) -> str:
        return f"a tensor map of {self.array._root.name}"


def checked_box(array: StandIn, box: Any, steps: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the box and the steps of a tensor map, one number for each dimension."""
    rank = array.ndim
    if not 1 <= rank <= 5:
        raise ValueError(f"array must have 1 to 5 dimensions (got {rank})")
    steps = (1,) * rank if steps is None else tuple(steps)
    box = tuple(box)
    if len(box) != rank or len(steps) != rank:
        raise ValueError(
            f"box and element_strides must have one entry for each of the array's {rank} "
            f"dimensions (got {len(box)} and {len(steps)})"
        )
    return box, steps
