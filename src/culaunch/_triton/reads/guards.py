"""The conditions under which a call needs no Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._triton.reads.reads import Guard


@dataclass
class Guards:
    """The conditions for the decorators to choose as before, in the form of ``_set_guards``."""

    entries: list[Guard] = field(default_factory=list)
    hooks: list[list[Any]] = field(default_factory=list)
    """Lists of hooks, which are empty. A new hook is not a change of the kernel."""
    lists: list[tuple[list[Any], int, object]] = field(default_factory=list)
    """Lists, each with an index and the item there."""
    cells: list[tuple[Any, object]] = field(default_factory=list)
    """Cells with their contents."""
    quick: list[Guard] = field(default_factory=list)
    """The values that native code compares. They may change without a relevant change."""
    exact: list[Guard] = field(default_factory=list)
    """The values to compare after that."""

    def add(self, other: Guards) -> None:
        """Add the guards of others."""
        for name, guarded in vars(other).items():
            getattr(self, name).extend(guarded)

    def attribute(self, holder: Any, name: str) -> None:
        """Guard an attribute of an object."""
        # The absence of an attribute is guarded as well, because setting it would hide the class's.
        self.entries.append((vars(holder), name, name in vars(holder), vars(holder).get(name)))

    def contents(self, entries: dict[Any, Any], *, all_of_it: bool = True) -> None:
        """Guard entries of a dict.

        Unless the whole dict is guarded, it may have others in any order.
        """
        self.entries += [(entries, name, True, value) for name, value in entries.items()]
        if all_of_it:
            self.entries.append((entries, None, True, tuple(entries)))

    def hold(self) -> bool:
        """Check in Python whether nothing has changed. Hooks are ignored."""
        return (
            all(_is_as_it_was(*entry) for entry in (*self.entries, *self.exact))
            and all(
                len(one) == count and (first is None or one[0] is first)
                for one, count, first in self.lists
            )
            and all(_holds(cell, value) for cell, value in self.cells)
        )


def _is_as_it_was(one: dict[Any, Any], name: Any, is_there: bool, value: object) -> bool:
    if name is None:  # the dict's names, in order
        return tuple(one) == value
    return (name in one) is is_there and (not is_there or one[name] is value)


def _holds(cell: Any, value: object) -> bool:
    try:
        return cell.cell_contents is value
    except ValueError:  # the cell is empty
        return False
