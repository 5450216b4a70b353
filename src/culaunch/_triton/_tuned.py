"""What an autotuner found, as a table that ships with the variants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from culaunch._triton._saved import decode, encode, same_constant


@dataclass(frozen=True)
class TunedEntry:
    """The configuration for one key: values of the key's arguments, and element types in order."""

    values: tuple[Any, ...]
    dtypes: tuple[str, ...]
    constants: dict[str, Any]
    options: dict[str, Any]


@dataclass(frozen=True)
class TunedTable:
    """Configurations by key.

    Attributes
    ----------
    key : tuple of str
        The arguments that the choice depends on.
    entries : tuple of TunedEntry
    """

    key: tuple[str, ...]
    entries: tuple[TunedEntry, ...]

    def look_up(self, values: list[Any], dtypes: list[str]) -> TunedEntry:
        """Give the entry of these values; where there is none, that of the nearest ones.

        Every configuration gives a right result, so that a size that was not tuned takes the one
        of the size nearest to it by ratio, of the same element types if there is any.
        """
        exact = [
            one
            for one in self.entries
            if len(one.values) == len(values)
            and all(map(same_constant, one.values, values))
            and list(one.dtypes) == dtypes
        ]
        if exact:
            return exact[0]
        return min(self.entries, key=lambda one: _distance(one, values, dtypes))

    def to_manifest(self) -> dict[str, Any]:
        """Give what a manifest says of it."""
        return {
            "key": list(self.key),
            "entries": [
                {
                    "values": [encode(value) for value in one.values],
                    "dtypes": list(one.dtypes),
                    "constants": {name: encode(value) for name, value in one.constants.items()},
                    "options": {name: encode(value) for name, value in one.options.items()},
                }
                for one in self.entries
            ],
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> TunedTable:
        """Read what a manifest says; ValueError, TypeError or KeyError where it is wrong."""
        entries = tuple(
            TunedEntry(
                tuple(decode(value) for value in one["values"]),
                tuple(str(name) for name in one["dtypes"]),
                {name: decode(value) for name, value in one["constants"].items()},
                {name: decode(value) for name, value in one["options"].items()},
            )
            for one in manifest["entries"]
        )
        if not entries:
            raise ValueError("a tuning table has no entries")
        return cls(tuple(str(name) for name in manifest["key"]), entries)


def _distance(entry: TunedEntry, values: list[Any], dtypes: list[str]) -> float:
    total = 0.0 if list(entry.dtypes) == dtypes else 1e6
    for saved, given in zip(entry.values, values, strict=False):
        numbers = type(saved) in (int, float) and type(given) in (int, float)
        if numbers and saved >= 0 and given >= 0:
            total += abs(math.log2(saved + 1) - math.log2(given + 1))
        elif not same_constant(saved, given):
            total += 1e3
    return total
