"""The errors of calls that a library's function cannot run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.values import spell
from culaunch._function.tracing.kinds import described
from culaunch._launch.arrays.array import array_info

if TYPE_CHECKING:
    from culaunch._function.tracing.kinds import Kind
    from culaunch._ship.functions.evaluate import UnknownBranchError
    from culaunch._ship.manifest.entry import SavedEntry, SavedKind


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
        # The most common mistake gets its own message.
        for index, want in self._entry.wanted.items():
            if kind[index] is None and not want.is_optional:
                raise TypeError(
                    f"{self._entry.name}: argument {self._names[index]} must not be None"
                )
        known = "\n".join(f"    {self.described(one.kind)}" for one in self._entry.kinds)
        raise TypeError(
            f"{self._entry.name} has no program for ({self.described(kind)}). The library "
            f"{self._source} has programs for\n{known or '    nothing'}\nTrace this kind, too, "
            "with function.specialize(...), and save again"
        )

    def raise_branch(self, saved: SavedKind, error: UnknownBranchError, shown: str) -> NoReturn:
        """Raise for a path that is not saved."""
        place, text = saved.guards.get(error.block, ("an unknown place", "a condition"))
        raise ValueError(
            f"{self._entry.name}: only one side of the branch at {place} was saved, and `{text}` "
            f"is {error.outcome} for {shown}. Save both sides with function.specialize(..., "
            "both_sides=True), or call it with arguments like these before you save it"
        ) from None

    def described(self, kind: Kind) -> str:
        """Return a kind in words."""
        return ", ".join(
            f"{name}: {described(entry)}" for name, entry in zip(self._names, kind, strict=True)
        )

    def shown(self, kind: Kind, arguments: tuple[Any, ...]) -> str:
        """Return the parts of a call's arguments that determine its path."""
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
