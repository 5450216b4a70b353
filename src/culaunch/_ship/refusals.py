"""The errors of a library's function for calls that it cannot run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.values import spell
from culaunch._function.tracing.kinds import described
from culaunch._launch.arrays.array import array_info

if TYPE_CHECKING:
    from culaunch._function.tracing.kinds import Kind
    from culaunch._ship.entry import SavedEntry, SavedKind
    from culaunch._ship.evaluate import UnknownBranchError


class Refusals:
    """The errors of one function.

    Parameters
    ----------
    source : str
        The library.
    entry : SavedEntry
    """

    def __init__(self, source: str, entry: SavedEntry) -> None:
        self._source = source
        self._entry = entry
        self._names = [name for name, _ in entry.parameters]

    def raise_kind(self, kind: Kind) -> NoReturn:
        """Raise for a kind of arguments that is not saved."""
        # The mistake that is most often made, said by itself.
        for index, want in self._entry.wanted.items():
            if kind[index] is None and not want.is_optional:
                raise TypeError(
                    f"{self._entry.name}: argument {self._names[index]} must not be None"
                )
        known = "\n".join(f"    {self.described(one.kind)}" for one in self._entry.kinds)
        raise TypeError(
            f"{self._entry.name} has no program for ({self.described(kind)}): the library "
            f"{self._source} has it for\n{known or '    nothing'}\n"
            "Save it with this kind, too: function.specialize(...), then save"
        )

    def raise_branch(self, saved: SavedKind, error: UnknownBranchError, shown: str) -> NoReturn:
        """Raise for a path that is not saved."""
        place, text = saved.guards.get(error.block, ("an unknown place", "a condition"))
        raise ValueError(
            f"{self._entry.name}: only one side of the branch at {place} was saved: `{text}` is "
            f"{error.outcome} for {shown}. Save both sides with "
            "function.specialize(..., both_sides=True), or call it with arguments like these "
            "before you save it"
        ) from None

    def described(self, kind: Kind) -> str:
        """Return a kind in words."""
        return ", ".join(
            f"{name}: {described(entry)}" for name, entry in zip(self._names, kind, strict=True)
        )

    def shown(self, kind: Kind, arguments: tuple[Any, ...]) -> str:
        """Return what of the arguments of a call decides its path."""
        parts = []
        for name, entry, value in zip(self._names, kind, arguments, strict=True):
            if type(entry) is tuple and entry[0] == "array":
                text = f"shape {array_info(value).shape}"
            elif type(entry) is tuple and entry[0] in ("list", "tuple"):
                text = f"shapes {', '.join(str(array_info(one).shape) for one in value)}"
            else:
                text = spell(value)
            parts.append(f"{name}: {text}")
        return ", ".join(parts)
