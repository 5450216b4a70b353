"""The undefined bits of a register."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from culaunch._emulator.types import Lanes


class Taint(NamedTuple):
    """Bits that are undefined, for each lane of a group, and where they come from.

    `bits` has the register's dtype and always one element for each lane; `origin` has a number
    of `Origins` for each lane, which means nothing if no bit is set.
    """

    bits: Lanes
    origin: Lanes

    @property
    def lanes(self) -> Lanes:
        """A flag for each lane that has an undefined bit."""
        bits: Lanes = self.bits != 0
        # A register of several words, or a parameter, is undefined in a lane if any word of it is.
        if bits.ndim > 1:
            bits = np.asarray(bits.any(axis=1))
        return bits


# By slot; a register that is not here is defined. Never changed in place.
Taints: TypeAlias = "dict[int, Taint]"
NONE: Taints = {}


def narrow(taints: Taints, index: Lanes, slots: Collection[int]) -> Taints:
    """Return the taints of some lanes in some registers."""
    # Registers that are defined in all these lanes leave the dict: an empty one lets a group run at
    # full speed again.
    kept = {}
    for slot in taints.keys() & set(slots):
        bits = taints[slot].bits[index]
        if bits.any():
            kept[slot] = Taint(bits, taints[slot].origin[index])
    return kept or NONE


def merge(parts: list[Taints], sizes: list[int], order: Lanes, slots: Collection[int]) -> Taints:
    """Join the taints of groups, as their registers are joined."""
    merged = {}
    for slot in set().union(*parts) & set(slots):
        # A part in which the register is defined contributes zeros of the same shape.
        like = next(part[slot] for part in parts if slot in part).bits
        bits, origins = [], []
        for part, size in zip(parts, sizes, strict=True):
            taint = part.get(slot)
            if taint is None:
                bits.append(np.zeros((size, *like.shape[1:]), like.dtype))
                origins.append(np.zeros(size, np.int64))
            else:
                bits.append(taint.bits)
                origins.append(taint.origin)
        merged[slot] = Taint(np.concatenate(bits)[order], np.concatenate(origins)[order])
    return merged or NONE
