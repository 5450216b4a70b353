"""The configurations of a set, and a tuned table with the best of them for some calls."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from culaunch._base.values import counted, spell
from culaunch._triton.saved.tuned_table import TunedEntry, TunedTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from culaunch._triton.saved.set import SavedSet


def configs_of(saved: SavedSet) -> list[dict[str, Any]]:
    """Return the constants and options in which variants differ, each combination once."""
    # Callers do not choose values that the set computes.
    computed = {one.name for one in saved.computed}
    settings = [
        {name: one for name, one in {**variant.constants, **variant.options}.items()
         if name not in computed}
        for variant in saved.variants
    ]  # fmt: skip
    first = settings[0]
    # A setting common to all variants is not a choice. A setting of only some variants is one.
    differing = [
        name
        for name in dict.fromkeys(chain.from_iterable(settings))
        if any(name not in one or name not in first or one[name] != first[name] for one in settings)
    ]
    found: list[dict[str, Any]] = []
    for one in settings:
        config = {name: one[name] for name in differing if name in one}
        # Use a list, because settings may not be hashable.
        if config not in found:
            found.append(config)
    return found


def table_of(
    saved: SavedSet,
    key: Sequence[str],
    choices: Sequence[tuple[Sequence[Any], list[str], dict[str, Any]]],
    arch: str,
    device: str,
) -> TunedTable:
    """Make the table of a device: of arguments, element types and a configuration each.

    Raise ValueError if a key is not a parameter, a configuration is not in the set, or there is no
    choice.
    """
    _check_key(saved, key)
    names = [one.name for one in saved.parameters]
    if not choices:
        raise ValueError("choices must have at least one call with its configuration (got none)")
    entries = []
    for arguments, dtypes, config in choices:
        given = dict(zip(names, arguments, strict=False))
        values = tuple(given.get(name) for name in key)
        settings = _split(saved, config)
        entries.append(TunedEntry(values, tuple(dtypes), *settings, arch, device))
    return TunedTable(tuple(key), tuple(entries))


def table_of_kept(saved: SavedSet, key: Sequence[str], kept: KeptConfigs) -> TunedTable:
    """Make the table from stored tunings, by the names of their devices.

    Raise ValueError if a key is not a parameter, a configuration is not in the set, or no stored
    key has the length of this one.
    """
    _check_key(saved, key)
    entries = [
        # The element types of the arrays and the architecture were not stored.
        TunedEntry(tuple(values), (), *_split(saved, kept.find(*values, device=device)), "", device)
        for device, values in kept
        if len(values) == len(key)
    ]
    if not entries:
        raise ValueError(f"{kept!r} has no configuration for a key of {counted(len(key), 'value')}")
    return TunedTable(tuple(key), tuple(entries))


@runtime_checkable
class KeptConfigs(Protocol):
    """The part of :class:`culaunch.tuning.TunedConfigs` that a set uses."""

    def __iter__(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Go through devices and keys."""

    def find(self, *key: Any, device: str | None = None) -> dict[str, Any]:
        """Return a configuration."""


def _check_key(saved: SavedSet, key: Sequence[str]) -> None:
    names = [one.name for one in saved.parameters]
    for name in key:
        if name not in names:
            raise ValueError(
                f"key must have parameters of {saved.name} (got {spell(name)}; it has "
                f"{', '.join(names)})"
            )


def _split(saved: SavedSet, config: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the constants and the options of a configuration, which must belong to the set."""
    configs = configs_of(saved)
    if config not in configs:
        raise ValueError(
            f"no variant of {saved.name} has the configuration {spell(config)}: its "
            f"configurations are {spell(configs)}"
        )
    options = set().union(*(one.options for one in saved.variants))
    constants = {name: value for name, value in config.items() if name not in options}
    return constants, {name: value for name, value in config.items() if name in options}
