"""Plain loads of a word that the same function then updates by an atomic operation."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from culaunch._emulator.ptx.syntax import Address, Immediate, Register

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Code
    from culaunch._emulator.ptx.syntax import Instruction, Operand

# The place of an address: a register and a distance in bytes.
Place = tuple[int, int]
_known: weakref.WeakKeyDictionary[Code, tuple[dict[int, Instruction], dict[Place, int]]] = (
    weakref.WeakKeyDictionary()
)


def precedes_update(code: Code, load: Instruction) -> bool:
    """Tell whether an atomic operation on the word of a load follows it in the text.

    A loop of compare-and-swap begins with a plain load, also where a compiler makes one from an
    atomic operation on 16 bits. Another thread may update the word between both: an older value
    costs a round. The same is true of a test before an atomic maximum.
    """
    if code not in _known:
        _known[code] = _find_updates(code)
    definitions, updates = _known[code]
    place = _place(load.operands[1], definitions) if updates else None
    return place is not None and updates.get(place, -1) > load.line


def _find_updates(code: Code) -> tuple[dict[int, Instruction], dict[Place, int]]:
    instructions = code.function.instructions
    atomics = [one for one in instructions if one.name in ("atom", "red")]
    if not atomics:
        return {}, {}
    definitions: dict[int, Instruction] = {}
    several = set()
    for one in instructions:
        target = one.operands[0] if one.operands else None
        if isinstance(target, Register) and one.name not in ("st", "red"):
            if target.slot in definitions:
                several.add(target.slot)
            definitions[target.slot] = one
    for slot in several:
        del definitions[slot]
    updates = {}
    for one in atomics:
        operand = one.operands[1 if one.name == "atom" else 0]
        place = _place(operand, definitions)
        if place is not None:
            updates[place] = one.line
    return definitions, updates


def _place(operand: Operand, definitions: dict[int, Instruction]) -> Place | None:
    """Follow an address to the register that it is computed from with constants only."""
    base, offset = (operand.base, operand.offset) if isinstance(operand, Address) else (operand, 0)
    if not isinstance(base, Register):
        return None
    while True:
        made = definitions.get(base.slot)
        source = made.operands[1] if made is not None and made.guard is None else None
        if made is None or not isinstance(source, Register):
            return base.slot, offset
        if made.name == "add" and isinstance(made.operands[2], Immediate):
            step = made.operands[2].bits
            offset += step - (step >> 63 << 64)
        elif made.name not in ("mov", "cvta"):
            return base.slot, offset
        base = source
