"""The configurations of a set, and a tuned table made of the best of them for some calls."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._triton.tuned_table import TunedEntry, TunedTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._triton.saved_set import SavedSet


def configs_of(saved: SavedSet) -> list[dict[str, Any]]:
    """Return the constants and options in which variants differ, each combination once."""
    settings = [{**one.constants, **one.options} for one in saved.variants]
    first = settings[0]
    # A setting that all variants share is no choice, and one that some do not have is.
    differing = [
        name
        for name in dict.fromkeys(chain.from_iterable(settings))
        if any(name not in one or name not in first or one[name] != first[name] for one in settings)
    ]
    found: list[dict[str, Any]] = []
    for one in settings:
        config = {name: one[name] for name in differing if name in one}
        # Not a set: the values of settings need not be hashable.
        if config not in found:
            found.append(config)
    return found


def table_of(
    saved: SavedSet,
    key: Sequence[str],
    choices: Sequence[tuple[Sequence[Any], list[str], dict[str, Any]]],
    arch: str,
) -> TunedTable:
    """Make the table of an architecture: of arguments, element types and a configuration each.

    Raises
    ------
    ValueError
        If a key is no parameter, a configuration none of the set's, or there is no choice.
    """
    names = [one.name for one in saved.parameters]
    for name in key:
        if name not in names:
            raise ValueError(
                f"key must have parameters of {saved.name} (got {spell(name)}; it has "
                f"{', '.join(names)})"
            )
    if not choices:
        raise ValueError("choices must have at least one call with its configuration (got none)")
    options = set().union(*(one.options for one in saved.variants))
    configs = configs_of(saved)
    entries = []
    for arguments, dtypes, config in choices:
        if config not in configs:
            raise ValueError(
                f"no variant of {saved.name} has the configuration {spell(config)}: its "
                f"configurations are {spell(configs)}"
            )
        given = dict(zip(names, arguments, strict=False))
        constants = {name: value for name, value in config.items() if name not in options}
        chosen = {name: value for name, value in config.items() if name in options}
        values = tuple(given.get(name) for name in key)
        entries.append(TunedEntry(values, tuple(dtypes), constants, chosen, arch))
    return TunedTable(tuple(key), tuple(entries))
