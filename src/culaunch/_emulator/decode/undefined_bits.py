"""How undefined bits of its operands go through an instruction, in the words that its record uses.

The rules themselves are in `culaunch._emulator.undefined`, a room above the instructions.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias


class Flow(enum.Enum):
    """How an instruction propagates undefined bits, unless it only moves them."""

    COMPUTES = enum.auto()
    """One undefined bit of an operand makes every bit of the results undefined."""
    BITWISE = enum.auto()
    """A bit of the result depends only on the same bit of the operands."""
    SELECTS = enum.auto()
    """The last operand chooses one of the two before it."""
    COMPARES = enum.auto()
    """Defined bits may decide, whatever the undefined ones are."""
    VOTES = enum.auto()
    """The result depends on the predicates of all lanes of the warp, and not on every one."""
    MIXES_LANES = enum.auto()
    """The results of every lane of a warp depend on the operands of every lane."""
    MULTIPLIES = enum.auto()
    """A matrix product: a row and a column of the factors decide an element of it."""
    LOADS = enum.auto()
    """Undefined bytes in memory become undefined bytes of the result."""
    LOADS_MATRIX = enum.auto()
    """Undefined bytes in memory become undefined elements of a fragment, in several lanes."""
    STORES = enum.auto()
    """The second operand goes to memory."""
    STORES_MATRIX = enum.auto()
    """The elements of a fragment go to memory, from several lanes."""
    UPDATES = enum.auto()
    """Memory changes by the operands that follow the address."""
    MUST_BE_DEFINED = enum.auto()
    """An undefined operand is an error."""
    IGNORES = enum.auto()
    """The operands decide nothing that a kernel can see."""


@dataclass(frozen=True)
class Moves:
    """Bits of operands come out elsewhere, unchanged."""

    controls: tuple[int, ...] = ()
    """The operands that say where to; the others after the results are moved. One undefined bit of
    a control makes every bit of the results undefined."""
    across_lanes: bool = False
    """Whether bits come from other lanes."""


# Plain copies, the most frequent case.
MOVES = Moves()
BitFlow: TypeAlias = Flow | Moves
