"""Loads from every state space, and what accesses of all kinds have in common."""

# All decoders, and all ends of a block, have one signature each.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes, decodes
from culaunch._emulator.decode.undefined_bits import MOVES, Flow
from culaunch._emulator.decode.updates import precedes_update
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load
from culaunch._emulator.memory.how import BLOCK, CLUSTER, GRID, PLAIN, RELAXED, How
from culaunch._emulator.ptx.syntax import Address, Instruction, Operand, Register
from culaunch._emulator.types import is_type, lane_dtype, size_of

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.decode.undefined_bits import BitFlow
    from culaunch._emulator.machine.state import Group, Op


def space_of(instruction: Instruction) -> str:
    """Return the state space that an instruction names, or an empty string for generic."""
    for word in instruction.mods:
        # "param::func" and "shared::cta" are spaces with a qualifier.
        space = word.partition("::")[0]
        if space in LOCATORS:
            return space
    return ""


# The order, caching and aliasing of an access do not matter, because memory is in order here.
_ORDERS = ("weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "mmio")
_STRONG = frozenset(_ORDERS[1:])
_WAITING = frozenset(("volatile", "acquire", "relaxed", "mmio"))
_SCOPE_OF = {"cta": BLOCK, "cluster": CLUSTER, "gpu": GRID, "sys": GRID}
# membar calls .gpu .gl.
_FENCES = {**_SCOPE_OF, "gl": GRID}
_CACHES = ("nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified", "noftz")
_L1 = ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
_L2 = ("evict_first", "evict_last", "evict_normal", "cache_hint", "64B", "128B", "256B")
_HINTS = frozenset(
    (
        *_ORDERS,
        *_SCOPE_OF,
        *_CACHES,
        *("v2", "v4", "v8"),
        *(f"L1::{word}" for word in _L1),
        *(f"L2::{word}" for word in _L2),
    )
)


def check_hints(instruction: Instruction, more: frozenset[str] = frozenset()) -> None:
    """Refuse a modifier of an access that is not a known hint, a space or a type."""
    for word in instruction.mods:
        known = word in _HINTS or word in more or is_type(word)
        if not known and word.partition("::")[0] not in LOCATORS:
            raise Unsupported(f"the modifier .{word}")


def _waits_for_another(instruction: Instruction) -> bool:
    """Tell whether a load may see a concurrent write of another thread."""
    return not _WAITING.isdisjoint(instruction.mods)


def access_flow(instruction: Instruction) -> BitFlow:
    """Return the effect of an access; for a parameter of a function, it moves registers."""
    is_store = instruction.name == "st"
    if param_slot(instruction.operands[0 if is_store else 1]) is not None:
        return MOVES
    return Flow.STORES if is_store else Flow.LOADS


@decodes("ld", results=1, effects=True, waits=_waits_for_another, undefined=access_flow)
@decodes("ldu", results=1, effects=True, waits=False, undefined=access_flow)
def _ld(decoder: Decoder, instruction: Instruction) -> Op:
    check_hints(instruction)
    kind = decoder.type(instruction)
    targets = decoder.vector(instruction.operands[0])
    place = instruction.operands[1]
    slot = param_slot(place)
    if slot is not None:
        return _ld_slot(decoder, place, targets, slot, kind)
    locate = LOCATORS[space_of(instruction)]
    address = decoder.address(place)
    size = size_of(kind)
    if kind == "b128":
        return _ld_b128(decoder, instruction, targets)
    count, how = len(targets), _how_read(decoder, instruction)
    puts = [decoder.write(target, kind) for target in targets]
    # The most frequent instruction of all: no loop for its one register.
    if count == 1:
        put = puts[0]

        def run_one(group: Group) -> None:
            put(group, load(group, locate(group, address(group), size, "read"), size, 1, how)[0])

        return run_one

    def run(group: Group) -> None:
        pieces = locate(group, address(group), size * count, "read")
        for put, value in zip(puts, load(group, pieces, size, count, how), strict=True):
            put(group, value)

    return run


def _how_read(decoder: Decoder, instruction: Instruction) -> How:
    """Return how a load takes part in the memory model."""
    how = how_of(instruction)
    return RELAXED if not how.strong and precedes_update(decoder.code, instruction) else how


def how_of(instruction: Instruction, default: How = PLAIN) -> How:
    """Return how an access takes part in the memory model; `default` is for one without a word."""
    mods = instruction.mods
    words = _STRONG.intersection(mods)
    if not words:
        order = default
    elif words & {"volatile", "mmio"}:
        return RELAXED
    else:
        order = RELAXED
    if not order.strong:
        return order
    return order._replace(
        scope=next((_SCOPE_OF[word] for word in mods if word in _SCOPE_OF), GRID),
        acquires=not words.isdisjoint(("acquire", "acq_rel", "sc")),
        releases=not words.isdisjoint(("release", "acq_rel", "sc")),
    )


def param_slot(place: Operand) -> int | None:
    """Return the slot of the parameter at an address; None for real memory."""
    base = place.base if isinstance(place, Address) else None
    return base.slot if isinstance(base, Register) and base.type == "param" else None


def _ld_slot(
    decoder: Decoder, place: Any, targets: tuple[Operand, ...], slot: int, kind: str
) -> Op:
    size, dtype = size_of(kind), f"u{lane_dtype(kind).itemsize}"
    puts = [decoder.write(target, kind) for target in targets]
    offset = place.offset

    def run(group: Group) -> None:
        words = group.regs[slot]
        for i, put in enumerate(puts):
            at = offset + i * size
            part = np.ascontiguousarray(words[:, at : at + size])
            put(group, part.view(dtype)[:, 0])

    return run


def _ld_b128(decoder: Decoder, instruction: Instruction, targets: tuple[Operand, ...]) -> Op:
    locate, address = LOCATORS[space_of(instruction)], decoder.address(instruction.operands[1])
    target = targets[0]
    if len(targets) > 1 or not isinstance(target, Register):
        raise Unsupported
    slot, how = target.slot, how_of(instruction)

    def run(group: Group) -> None:
        pieces = locate(group, address(group), 16, "read")
        group.regs[slot] = np.stack(load(group, pieces, 8, 2, how), axis=1)

    return run


@decodes(
    "applypriority",
    "discard",
    "griddepcontrol",
    "pmevent",
    "prefetch",
    "prefetchu",
    "setmaxnreg",
    results=0,
    effects=False,
    waits=False,
    undefined=Flow.IGNORES,
)
@decodes("nanosleep", results=0, effects=False, waits=True, undefined=Flow.IGNORES)
def _nothing(decoder: Decoder, instruction: Instruction) -> Op:
    # Accesses happen at once and in order, so there is nothing to wait for.
    return lambda _: None


@decodes("fence", "membar", results=0, effects=False, waits=False, undefined=Flow.IGNORES)
def _fence(decoder: Decoder, instruction: Instruction) -> Op:
    if "proxy" in instruction.mods:
        return _proxy_fence(instruction)
    scope = next((_FENCES[word] for word in reversed(instruction.mods) if word in _FENCES), GRID)

    def run(group: Group) -> None:
        # Accesses happen at once and in order: only the check of races needs to know.
        if group.chunk.races is not None:
            group.chunk.races.order.fence(group.lanes, scope)

    return run


def _proxy_fence(instruction: Instruction) -> Op:
    """Decode a fence between two kinds of access, such as those of threads and of bulk copies."""
    # The check of races follows only the writes to shared memory that bulk copies read.
    words = [word.partition("::")[0] for word in instruction.mods]
    if "async" not in words or "global" in words:
        return lambda _: None

    def run(group: Group) -> None:
        if group.chunk.races is not None:
            group.chunk.races.proxy.fence(group.lanes)

    return run


@computes("createpolicy", undefined=Flow.IGNORES)
def _createpolicy(decoder: Decoder, instruction: Instruction) -> Op:
    # Any number will do: every user of a policy ignores it.
    put = decoder.write(instruction.operands[0], "b64")
    return lambda group: put(group, np.zeros(1, np.uint64))
