"""Finds the parameters of a kernel that a grid function reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.reads.of_code import reads_of
from culaunch._triton.reads.purity import Unknown

if TYPE_CHECKING:
    from culaunch._triton.reads.reads import Guard


def read_grid(
    grid: Any, parameters: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[object, ...], list[Guard]] | None:
    """Read a grid's code.

    Returns
    -------
    (tuple of int, tuple of int, tuple, list of Guard) or None
        The indices of the parameters whose values it reads, and of those that it compares with
        None. Then the contents of its closed-over variables, and the globals that it uses. None
        means that the grid must be called.
    """
    numbers = {name: i for i, name in enumerate(parameters)}
    try:
        reads = reads_of(grid)
    except Unknown:
        return None
    # Native code compares values, and tests for None. For anything else, it calls the grid
    # function.
    if reads.types or reads.dtypes or reads.shapes or not reads.names <= numbers.keys():
        return None
    # Native code reads the grid function's own closed-over variables. A helper may have others.
    own = grid.__closure__ or ()
    if not all(any(cell is one for one in own) for cell, _ in reads.cells):
        return None
    held = tuple(cell.cell_contents for cell in own)
    values, nones = (
        tuple(sorted(numbers[name] for name in names)) for names in (reads.values, reads.nones)
    )
    return values, nones, held, reads.guards
