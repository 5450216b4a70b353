"""How instructions that access memory propagate undefined bits."""

# All rules have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.liveness import read_slots
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.machine.shadow import Shadow
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.undefined_bytes import UndefinedBytes
from culaunch._emulator.ops.memory import space_of
from culaunch._emulator.ptx.syntax import Address, Register
from culaunch._emulator.types import Lanes, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.machine.taint import Taints
    from culaunch._emulator.memory.bytes import Piece
    from culaunch._emulator.ptx.syntax import Operand
    from culaunch._emulator.undefined.context import Context
    from culaunch._emulator.undefined.plan import Plan, Rule


def _store(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Mark the written bytes; report a write to global memory without any fully defined byte.

    Some of its bytes may be undefined: a copied structure has padding.
    """
    kind = plan.decoder.type(plan.instruction)
    place, value = plan.instruction.operands[:2]
    sources = plan.decoder.vector(value)
    if kind == "b128":
        # A register of 128 bits is a row of two words.
        words = [
            _bits(context, group, plan, source, kind)[:, i] for source in sources for i in (0, 1)
        ]
    else:
        words = [_bits(context, group, plan, source, kind) for source in sources]
    _write(context, group, plan, active, place, words)
    return {}


def _atomic(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    operands = plan.instruction.operands
    # atom has a result before the address, red does not.
    first = next(i for i, operand in enumerate(operands) if isinstance(operand, Address))
    kind = plan.decoder.type(plan.instruction)
    values = [plan.decoder.vector(operand) for operand in operands[first + 1 :]]
    if not values:
        return {}
    words = []
    for i in range(len(values[0])):
        bits = _bits(context, group, plan, values[0][i], kind)
        for more in values[1:]:
            if len(more) > i:
                # Compare-and-swap writes one operand if another matches, so the result in memory
                # depends on both.
                bits = bits | _bits(context, group, plan, more[i], kind)
        words.append(bits)
    _write(context, group, plan, active, operands[first], words)
    return {}


def _matrix_load(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Report an undefined stride, which makes every address undefined."""
    found = context.lanes(group, read_slots(plan.instruction.operands[2:]))
    if found is not None:
        context.use(group, found, f"the stride of {plan.instruction.opcode}", active)
    return {}


def _matrix_store(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Run the store again with the undefined bits, on the map of them."""
    _matrix_load(context, group, plan, active)
    sources = frozenset(read_slots(plan.instruction.operands[1:2]))
    found = context.lanes(group, sources)
    shared = group.chunk.shared
    if found is None:
        return {}
    address = plan.decoder.address(plan.instruction.operands[0])(group)
    pieces = LOCATORS[space_of(plan.instruction)](group, address, 2, "write")
    # Without a map there is nowhere to mark: in global memory a use is reported at once, as for
    # `_store`.
    if shared.shadow is None or any(piece.data is not shared.data for piece in pieces):
        whole = np.ones(group.n, bool)
        for slot in sources:
            taint = group.undefined.get(slot)
            whole &= False if taint is None else _every_byte(taint.bits)
        use = f"the value written by {plan.instruction.opcode}"
        context.use(group, (whole, found[1]), use, active)
        return {}

    # The same store, applied to the undefined bits and their map, marks the written places.
    copy = context.with_bits(group, sources)
    context.after.append(lambda: plan.run_on_map(copy))
    return {}


def _nothing(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    """Keep the results: the read itself finds undefined bytes in memory."""
    return {}


def _operands(context: Context, group: Group, plan: Plan, active: Lanes | None) -> Taints:
    found = context.lanes(group, plan.reads)
    if found is not None:
        context.use(group, found, f"an operand of {plan.instruction.opcode}", active)
    return {}


MEMORY_RULES: dict[Flow, Rule] = {
    Flow.LOADS: _nothing,
    Flow.LOADS_MATRIX: _matrix_load,
    Flow.STORES: _store,
    Flow.STORES_MATRIX: _matrix_store,
    Flow.UPDATES: _atomic,
    Flow.MUST_BE_DEFINED: _operands,
}


def _bits(context: Context, group: Group, plan: Plan, source: Operand, kind: str) -> Lanes:
    """Return the undefined bits of an operand that is written."""
    if not isinstance(source, Register) or source.slot not in group.undefined:
        return np.zeros((group.n, 2) if kind == "b128" else group.n, f"u{min(size_of(kind), 8)}")
    if kind == "b128":
        return group.undefined[source.slot].bits
    return plan.decoder.read(source, kind)(context.with_bits(group, (source.slot,)))


def _every_byte(bits: Lanes) -> Lanes:
    """Tell, for each lane, whether every byte of its word has an undefined bit."""
    each = np.ascontiguousarray(bits).view(np.uint8).reshape(bits.shape[0], -1)
    return np.asarray(each.all(axis=1))


def _write(
    context: Context,
    group: Group,
    plan: Plan,
    active: Lanes | None,
    place: Operand,
    words: list[Lanes],
) -> None:
    size = words[0].dtype.itemsize
    index = np.arange(group.n) if active is None else np.flatnonzero(active)
    found = context.lanes(group, plan.reads)
    if not index.shape[0] or found is None:
        return
    # Lanes with a false guard may have invalid addresses, so do not look them up.
    part = group if active is None else group.narrow(index, tuple(plan.reads))
    address = plan.decoder.address(place)(part)
    pieces = LOCATORS[space_of(plan.instruction)](part, address, size * len(words), "write")
    for piece in pieces:
        lanes = index if piece.lanes is None else index[piece.lanes]
        at = np.broadcast_to(piece.at, lanes.shape)
        chosen = [word[lanes] for word in words]
        memory = _undefined_bytes(group, piece)
        if memory is not None:
            context.after.append(_marker(memory, at, chosen, found[1][lanes]))
            continue
        whole = np.zeros(group.n, bool)
        some = np.logical_or.reduce([word != 0 for word in chosen])
        # Data that another thread has just written has no padding.
        whole[lanes] = np.logical_and.reduce([_every_byte(word) for word in chosen]) | (
            some & context.origins.racing(found[1][lanes])
        )
        use = f"the value written by {plan.instruction.opcode}"
        context.use(group, (whole, found[1]), use, None)


def _marker(
    memory: UndefinedBytes, at: Lanes, words: list[Lanes], origin: Lanes
) -> Callable[[], None]:
    def mark() -> None:
        for k, word in enumerate(words):
            memory.store(at + k * word.dtype.itemsize, word, origin)

    return mark


def _undefined_bytes(group: Group, piece: Piece) -> UndefinedBytes | None:
    """Return the map of a piece's memory; None for global memory."""
    chunk = group.chunk
    for scratch in (chunk.shared, chunk.local):
        if piece.data is not scratch.data:
            continue
        # Local memory gets a map when an undefined value is first stored there. Until then it
        # counts as defined, because compilers spill registers that are never set.
        if scratch.shadow is None:
            scratch.shadow = Shadow()
        if scratch.shadow.undefined is None:
            scratch.shadow.undefined = UndefinedBytes(scratch, undefined=False)
        found: UndefinedBytes = scratch.shadow.undefined
        return found
    return None
