"""``SavedGrid``: a grid that a set brings with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.calls.object_kinds import type_name
from culaunch._triton.expressions import (
    SHAPES,
    ExpressionError,
    evaluate,
    known_values,
    names_of,
    partly,
)
from culaunch._triton.variants.constants import SavedType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culaunch._triton.expressions import Expression

MOST_BLOCKS = 2**31 - 1  # along one dimension


class SavedGrid:
    """One to three numbers, worked out from the arguments: a grid function as Triton takes it.

    Parameters
    ----------
    name : str
        The kernel's, for messages.
    sizes : sequence of Expression
    constants : mapping
        What is the same for all variants.
    """

    def __init__(
        self, name: str, sizes: Sequence[Expression], constants: Mapping[str, Any]
    ) -> None:
        self._name = name
        self.sizes = tuple(sizes)
        # Insert the values that all variants share once. Then less of each call is read, and more
        # calls need no Python.
        self._open = tuple(partly(one, known_values(constants)) for one in sizes)

    def __call__(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the grid for arguments by name.

        Raises
        ------
        ValueError
            If an argument is missing or is no number, or a size comes out as no int, or as one
            that no grid has.
        """
        made = []
        for one in self.sizes:
            try:
                size = evaluate(one, values, element_type)
            except ExpressionError as error:
                raise ValueError(f"the grid {self} of {self._name}: {error}") from None
            # A bool is an int to `isinstance`, and a float that is whole is one only by accident.
            if type(size) is not int:
                raise ValueError(f"the grid {self} of {self._name}: {one} is {size!r:.60}, no int")
            if not 0 <= size <= MOST_BLOCKS:
                raise ValueError(
                    f"the grid {self} of {self._name}: {one} is {size}; 0 to 2^31 - 1 are possible"
                )
            made.append(size)
        return tuple(made)

    @property
    def __code__(self) -> object:
        """The identity of a grid for the native half."""
        return self.sizes

    def reads(self) -> tuple[set[str], set[str]] | None:
        """Return the further arguments whose values it reads, and those that it compares with None.

        Return None if it needs more.
        """
        if any(names_of(one, "dtype", "is_array", *SHAPES) for one in self._open):
            return None
        values, nones = (
            set().union(*(names_of(one, op) for one in self._open)) for op in ("value", "is_none")
        )
        return values, nones

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedGrid) and repr(other.sizes) == repr(self.sizes)

    def __hash__(self) -> int:
        return hash(repr(self.sizes))

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.sizes))})"

    def __repr__(self) -> str:
        return f"<grid {self} of {self._name}>"


def element_type(value: Any) -> SavedType:
    """Return the element type of an array among a call's arguments, as expressions have it.

    Raises
    ------
    ExpressionError
        If it has none.
    """
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        raise ExpressionError(f"a {type(value).__qualname__} has no dtype")
    return SavedType(type_name(dtype))
