"""The variants of several sets, with their images under names that differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._triton.saved_variant import SavedVariant


def join_variants(sets: Sequence[Variants]) -> tuple[list[SavedVariant], dict[str, bytes]]:
    """Return all variants, in order, and their images by name; the first set's keep theirs."""
    members: dict[str, bytes] = {}
    variants = []
    for number, one in enumerate(sets):
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


class Variants(Protocol):
    """Variants, and what reads their images: a set, loaded or saved."""

    variants: tuple[SavedVariant, ...]

    def read(self, member: str) -> bytes:
        """Return an image by its name."""
        raise NotImplementedError
