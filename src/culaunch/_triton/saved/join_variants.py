"""Joins several sets of one kernel: their variants, with distinct names for their images."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from culaunch._triton.saved.tuned_table import TunedTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._triton.saved.set import SavedSet
    from culaunch._triton.saved.variant import SavedVariant


def merge_sets(sets: Sequence[SavedSet]) -> SavedSet:
    """Return the set of all variants, in order. If two tables have an entry, the first one wins.

    Raise ValueError if they are of different kernels, were tuned by different arguments, set
    different arguments to zero before a launch, or have different heuristics or grids.
    """
    first, *others = sets
    for other in others:
        if other.name != first.name or _facts(first) != _facts(other):
            raise ValueError(f"{other.name} is not the kernel {first.name}: save it separately")
        if set(other.zeroes) != set(first.zeroes):
            raise ValueError(
                f"one set of {first.name} sets ({', '.join(first.zeroes)}) to zero before each "
                f"launch, and another ({', '.join(other.zeroes)}): compile both the same way"
            )
        if set(other.blocks) != set(first.blocks):
            raise ValueError(
                f"one set of {first.name} sets the blocks of ({', '.join(first.blocks)}) before "
                f"each launch, and another of ({', '.join(other.blocks)}): compile both the same "
                "way"
            )
        # Compare by text, because equal expressions of two sets have equal text.
        for what, own, given in (
            ("the grid", first.grid, other.grid),
            ("the heuristics", first.computed, other.computed),
        ):
            if repr(own) != repr(given):
                raise ValueError(
                    f"{what} of one set of {first.name} differ from those of another: compile both "
                    "the same way"
                )
    variants, members = join_variants(sets)
    tables = [one.table for one in sets if one.table is not None]
    table = functools.reduce(TunedTable.merge, tables) if tables else None
    return replace(first, variants=tuple(variants), read=members.__getitem__, table=table)


def _facts(kernels: SavedSet) -> list[tuple[str, bool, bool]]:
    return [(own.name, own.is_constexpr, own.is_heuristic) for own in kernels.parameters]


def join_variants(sets: Sequence[SavedSet]) -> tuple[list[SavedVariant], dict[str, bytes]]:
    """Return all variants, in order, and their images by name. The first set's names stay."""
    members: dict[str, bytes] = {}
    variants = []
    for number, one in enumerate(sets):
        # Image names are unique only within a set. Two variants of one set that share an image
        # still share it afterwards.
        renamed = {}
        for variant in one.variants:
            for name in (variant.image, variant.ptx):
                if name and name not in renamed:
                    renamed[name] = name if number == 0 else _fresh(name, members)
                    members[renamed[name]] = one.read(name)
            variants.append(
                replace(
                    variant,
                    image=renamed.get(variant.image or ""),
                    ptx=renamed.get(variant.ptx or ""),
                )
            )
    return variants, members


def _fresh(name: str, taken: dict[str, bytes]) -> str:
    number = 0
    folder, _, rest = name.rpartition("/")
    while (made := f"{folder}/{number}-{rest}") in taken:
        number += 1
    return made
