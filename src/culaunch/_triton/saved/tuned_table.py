"""An autotuner's results, as a table that is saved with the variants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.ratios import ratio_between
from culaunch._triton.variants.checks import check_arch, check_element, check_identifier
from culaunch._triton.variants.constants import (
    checked,
    decode,
    encode,
    read_settings,
    same_constant,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_NAME = 200  # characters of a device's name


@dataclass(frozen=True)
class TunedTable:
    """Configurations by key."""

    key: tuple[str, ...]
    """The arguments that the choice depends on."""
    entries: tuple[TunedEntry, ...]

    @property
    def has_places(self) -> bool:
        """Whether an entry says where it was measured."""
        return any(one.arch or one.device for one in self.entries)

    def merge(self, other: TunedTable) -> TunedTable:
        """Return the table of both; if both have an entry for a key, this one's.

        Raise ValueError if they are tables by other arguments.
        """
        if other.key != self.key:
            raise ValueError(
                f"one set was tuned by ({', '.join(self.key)}) and another by "
                f"({', '.join(other.key)}): they cannot share a table"
            )
        # Compare by text, because NaN equals nothing, and True equals 1.
        known = {one.place for one in self.entries}
        added = [one for one in other.entries if one.place not in known]
        return TunedTable(self.key, (*self.entries, *added))

    def of_device(self, capability: int, name: str = "") -> TunedTable:
        """Return the part that was measured on a device with this name.

        If there is none, return the measurements on its architecture, then those from unknown
        devices, then those on the nearest architecture. An older architecture is preferred to a
        newer one.
        """

        def far(entry: TunedEntry) -> tuple[int, int]:
            own = entry.capability
            if entry.device and entry.device == name:
                return 0, 0
            if own in (capability, 0):
                return (1, 0) if own else (2, 0)
            return (3 if own < capability else 4, abs(own - capability))

        nearest = min(map(far, self.entries))
        return TunedTable(self.key, tuple(one for one in self.entries if far(one) == nearest))

    def look_up(self, values: list[Any], dtypes: list[str]) -> TunedEntry:
        """Return the entry for these values, or the nearest one.

        Every configuration gives a correct result. So a size that was not tuned uses the entry
        whose size is nearest by ratio, with the same element types if possible.
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
        """Return its form in a manifest."""
        return {
            "key": list(self.key),
            "entries": [_write_entry(one) for one in self.entries],
        }

    @classmethod
    def from_manifest(cls, manifest: Any) -> TunedTable:
        """Read the form in a manifest; ValueError, TypeError or KeyError if it is invalid."""
        entries = tuple(_read_entry(one) for one in checked(manifest["entries"], list))
        if not entries:
            raise ValueError("a tuning table has no entries")
        return cls(tuple(map(check_identifier, checked(manifest["key"], list))), entries)


@dataclass(frozen=True)
class TunedEntry:
    """The configuration for one key."""

    values: tuple[Any, ...]
    """The values of the key's arguments."""
    dtypes: tuple[str, ...]
    """The element types of the tensors, in order."""
    # The configuration.
    constants: dict[str, Any]
    options: dict[str, Any]
    arch: str = ""
    """The architecture that it was measured on, such as ``"sm_90"``; "" if that is not known."""
    device: str = ""
    """The name of the device that it was measured on; "" if that is not known."""

    @property
    def place(self) -> str:
        """The lookup key as text."""
        return repr((self.arch, self.device, self.values, self.dtypes))

    @property
    def capability(self) -> int:
        """10 major + minor of the architecture; 0 if it is not known."""
        return int(self.arch[3:]) if self.arch else 0

    @property
    def settings(self) -> dict[str, Any]:
        """Constants and options in one."""
        return {**self.constants, **self.options}


def _write_entry(entry: TunedEntry) -> dict[str, Any]:
    written = {
        "values": [encode(value) for value in entry.values],
        "dtypes": list(entry.dtypes),
        "constants": {name: encode(value) for name, value in entry.constants.items()},
        "options": {name: encode(value) for name, value in entry.options.items()},
    }
    where = {"arch": entry.arch, "device": entry.device}
    return {**written, **{name: text for name, text in where.items() if text}}


def _read_entry(entry: Any) -> TunedEntry:
    arch = entry.get("arch", "")
    if arch != "" and (not check_arch(arch).startswith("sm_") or not arch[3:].isdigit()):
        raise ValueError(f"{arch!r:.60} is not an architecture to measure on")
    device = checked(entry.get("device", ""), str)
    if len(device) > _LONGEST_NAME or not device.isprintable():
        raise ValueError(f"{device!r:.60} is not the name of a device")
    return TunedEntry(
        tuple(decode(value) for value in checked(entry["values"], list)),
        tuple(map(check_element, checked(entry["dtypes"], list))),
        read_settings(entry["constants"]),
        read_settings(entry["options"]),
        arch,
        device,
    )


def types_apart(saved: Sequence[str], given: Sequence[str]) -> int:
    """Return the distance between lists of element types: 1 for another order, 2 for other types.

    A call by keywords that was tuned has them in its own order.
    """
    if list(saved) == list(given):
        return 0
    return 1 if sorted(saved) == sorted(given) else 2


def _distance(entry: TunedEntry, values: list[Any], dtypes: list[str]) -> float:
    # The order of the weights: other element types are farthest, then other values of a name, then
    # other numbers.
    total = 5e5 * types_apart(entry.dtypes, dtypes)
    for saved, given in zip(entry.values, values, strict=False):
        ratio = ratio_between(saved, given)
        if ratio is not None:
            total += ratio
        elif not same_constant(saved, given):
            total += 1e3
    return total
