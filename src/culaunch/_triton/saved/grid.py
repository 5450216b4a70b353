"""``SavedGrid``: the grid that is saved with a set."""

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
    """One to three numbers, computed from the arguments: a grid function for Triton.

    Parameters
    ----------
    name : str
        The kernel's, for messages.
    sizes : sequence of Expression
    constants : mapping
        The constants that all variants share.
    """

    def __init__(
        self, name: str, sizes: Sequence[Expression], constants: Mapping[str, Any]
    ) -> None:
        self._name = name
        self.sizes = tuple(sizes)
        # Insert the common values once. Each call then reads less, and more calls need no Python.
        self._open = tuple(partly(one, known_values(constants)) for one in sizes)

    def __call__(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the grid for arguments by name.

        Raise ValueError if an argument is missing or is not a number, or a size is not a valid int.
        """
        made = []
        for one in self.sizes:
            try:
                size = evaluate(one, values, element_type)
            except ExpressionError as error:
                raise ValueError(f"the grid {self} of {self._name}: {error}") from None
            # `isinstance` accepts a bool as an int, and a float is whole only by accident.
            if type(size) is not int:
                raise ValueError(
                    f"the grid {self} of {self._name}: {one} is {size!r:.60}, not an int"
                )
            if not 0 <= size <= MOST_BLOCKS:
                raise ValueError(
                    f"the grid {self} of {self._name}: {one} is {size}, but it must be from 0 to "
                    "2^31 - 1"
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
    """Return the element type of an array among a call's arguments, in the form of expressions.

    Raise ExpressionError if it has none.
    """
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        raise ExpressionError(f"a {type(value).__qualname__} has no dtype")
    return SavedType(type_name(dtype))
