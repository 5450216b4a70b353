"""cp.async: copies of a few bytes for each thread; groups of all asynchronous copies."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load, store
from culaunch._emulator.memory.how import ASYNC
from culaunch._emulator.ops.bulk_copies import bulk_copy
from culaunch._emulator.ops.mbarrier import arrive_at
from culaunch._emulator.ops.memory import space_of
from culaunch._emulator.ptx.syntax import Immediate, Instruction, Register

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.types import Lanes

_GROUPS = frozenset(("commit_group", "wait_group", "wait_all"))


@decodes("cp", results=0, effects=True, waits=False, undefined=Flow.MUST_BE_DEFINED)
def _cp(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    if not _GROUPS.isdisjoint(mods):
        return _commit_or_wait(instruction)
    if "bulk" in mods:
        return bulk_copy(decoder, instruction)
    if mods[0] != "async":
        raise Unsupported
    if "mbarrier" in mods:
        arrive = None
        if "noinc" in mods:
            arrive = arrive_at(decoder, operands[0], space_of(instruction) or "", None, drop=False)
        return _arrive_after_copies(arrive)
    target, source = decoder.address(operands[0]), decoder.address(operands[1])
    # The size is a constant in PTX, since it is part of the machine code; only the number of bytes
    # that are read may vary, with zeros for the rest.
    whole = operands[2]
    if not isinstance(whole, Immediate):
        raise Unsupported
    size = whole.bits
    if size not in (4, 8, 16) or ("cg" in mods and size != 16):
        raise Unsupported(f"a copy of {size} bytes")
    read_size = None
    if len(operands) > 3:
        extra = operands[3]
        if isinstance(extra, Register) and extra.type == "pred":
            ignore = decoder.read(extra, "pred")
            # With a predicate (ignore-src), lanes where it is true do not read the source.
            read_size = lambda g: np.where(ignore(g), 0, size)  # noqa: E731
        # A 64-bit operand is a cache policy, which decides nothing here.
        elif not (isinstance(extra, Register) and extra.type in ("b64", "u64")):
            amount = decoder.read(extra, "u32")
            read_size = lambda g: np.minimum(amount(g), np.uint32(size))  # noqa: E731
    fetch, put = LOCATORS["global"], LOCATORS["shared"]

    def run(group: Group) -> None:
        to, origin = target(group), source(group)
        wanted = None if read_size is None else read_size(group)
        # A usual copy is complete, and moves words like any load. `_read_some` handles the edges of
        # a tile.
        if wanted is None or (wanted == size).all():
            words = load(group, fetch(group, origin, size, "read"), 4, size // 4)
        else:
            words = _read_some(group, origin, np.broadcast_to(wanted, (group.n,)), size)
        store(group, put(group, to, size, "write"), 4, words, ASYNC)

    return run


def _commit_or_wait(instruction: Instruction) -> Op:
    """Decode a form for cp.async or cp.async.bulk.

    Copies happen at once, which is one of the orders that the hardware may choose: only the check
    of races commits them and waits for them.
    """
    mods, newest = instruction.mods, None
    is_bulk, only_reads = "bulk" in mods, "read" in mods
    if "wait_group" in mods:
        number = instruction.operands[0]
        if not isinstance(number, Immediate):
            raise Unsupported
        newest = number.bits

    def run(group: Group) -> None:
        races = group.chunk.races
        if races is None:
            return
        copies = races.bulk if is_bulk else races.copies
        if "commit_group" in mods:
            copies.commit(group.lanes)
        else:
            races.wait(copies, group.lanes, newest, only_reads=only_reads)

    return run


def _arrive_after_copies(arrive: Op | None) -> Op:
    """Arrive at an mbarrier when the thread's copies have ended, which is now.

    Without `arrive`, the arrival is first added to the pending count, so both cancel.
    """

    def run(group: Group) -> None:
        races = group.chunk.races
        if races is not None:
            races.wait(races.copies, group.lanes, None)
        if arrive is not None:
            arrive(group)

    return run


def _read_some(group: Group, origin: Lanes, wanted: Lanes, size: int) -> list[Lanes]:
    """Read the first bytes of each lane's copy; the rest are zeros."""
    out = np.zeros((group.n, size), np.uint8)
    origin = np.broadcast_to(origin, (group.n,))
    # Lanes by how much they read: the bytes behind that may be outside every allocation, and must
    # not be touched.
    for amount in np.unique(wanted).tolist():
        if not amount:
            continue
        lanes = np.flatnonzero(wanted == amount)
        part = group.narrow(lanes)
        word = 4 if amount % 4 == 0 else 1
        for at in range(0, amount, word):
            pieces = LOCATORS["global"](part, origin[lanes] + np.uint64(at), word, "read")
            value = load(part, pieces, word, 1)[0]
            out[lanes, at : at + word] = (
                np.ascontiguousarray(value).view(np.uint8).reshape(-1, word)
            )
    words = out.view(np.uint32)
    return [words[:, i] for i in range(size // 4)]
