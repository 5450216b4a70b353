"""The grid of a compiled set: text, numbers or a function, as expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from culaunch._base.values import spell
from culaunch._triton.expressions import (
    Expression,
    constant,
    names_of,
    never_an_int,
    parse_expressions,
    traced_grid,
)
from culaunch._triton.reads.purity import Unknown
from culaunch._triton.saved.grid import MOST_BLOCKS


def grid_expressions(grid: Any, function: Any) -> tuple[Expression, ...] | None:
    """Return a grid as one to three expressions.

    Parameters
    ----------
    grid : str, callable, int, sequence or None
        A sequence has ints and strings.
    function : JITFunction

    Raises
    ------
    TypeError, ValueError
        If it is not one of these, or no expression can express it.
    """
    if grid is None:
        return None
    names = list(function.arg_names)
    if isinstance(grid, str):
        sizes = parse_expressions(grid, names)
    elif callable(grid):
        try:
            sizes = traced_grid(grid, names)
        except Unknown as unknown:
            raise ValueError(
                f"the grid of {function.__name__} cannot be saved: {unknown}. A grid may be text, "
                'such as grid="cdiv(n, BLOCK), 1, 1"'
            ) from None
    else:
        items = grid if isinstance(grid, Sequence) else [grid]
        sizes = tuple(made for one in items for made in _sizes(one, names))
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"a grid must have 1 to 3 numbers (got {len(sizes)})")
    for one in sizes:
        # An open value is checked in each call, when it is known.
        if one.is_constant and (type(one.value) is not int or not 0 <= one.value <= MOST_BLOCKS):
            raise ValueError(f"a grid must have ints from 0 to 2^31 - 1 (got {spell(one.value)})")
        if reason := never_an_int(one):
            raise ValueError(f"a grid must have ints from 0 to 2^31 - 1, but {one} {reason}")
    return sizes


def check_numbers(
    sizes: Sequence[Expression] | None, variants: Sequence[Mapping[str, Any]], name: str
) -> None:
    """Refuse a grid that computes with an argument that is an array in every variant.

    Parameters
    ----------
    sizes : sequence of Expression or None
    variants : sequence of mapping
        Triton's types of the arguments by name, of each.
    name : str
        The kernel's, for the message.

    Raises
    ------
    ValueError
        Naming the argument.
    """
    for size in sizes or ():
        for read in sorted(names_of(size, "value")):
            kinds = [str(one.get(read)) for one in variants]
            if all(kind.startswith(("*", "tensordesc<")) for kind in kinds):
                raise ValueError(
                    f"the grid of {name} computes with {read}, which is not a number but "
                    f"{kinds[0]}: {size}"
                )


def _sizes(one: Any, names: Sequence[str]) -> tuple[Expression, ...]:
    if isinstance(one, str):
        return parse_expressions(one, names)
    if type(one) is not int:
        raise TypeError(
            "grid must be a str, a function of the arguments, or a tuple of 1 to 3 ints and strs "
            f"(got {spell(one)})"
        )
    return (constant(one),)
