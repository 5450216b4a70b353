"""cp.async and mbarrier."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.atomic import Update
from culaunch._emulator.memory.bytes import load, store
from culaunch._emulator.ops.atomics import run_atomic
from culaunch._emulator.ops.memory import space_of
from culaunch._emulator.ptx.syntax import Address, Immediate, Instruction, Operand, Register

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.races import Races
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.types import Lanes

# An mbarrier's word, ours to lay out: arrivals pending, arrivals expected, phase.
_PENDING = np.uint64((1 << 20) - 1)
_EXPECTED_SHIFT = np.uint64(20)
_PHASE_SHIFT = np.uint64(62)
_ONE = np.uint64(1)


@decodes("cp", results=0, effects=True, waits=False, undefined=Flow.MUST_BE_DEFINED)
def _cp(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    if mods[0] != "async" or "bulk" in mods or "reduce" in mods:
        raise Unsupported
    if "commit_group" in mods or "wait_group" in mods or "wait_all" in mods:
        # Copies happen at once, which is one of the orders that the hardware may choose.
        return _commit_or_wait(instruction)
    if "mbarrier" in mods:
        arrive = None
        if "noinc" in mods:
            arrive = _arrive(decoder, operands[0], space_of(instruction) or "", None, drop=False)
        return _arrive_after_copies(arrive)
    target, source = decoder.address(operands[0]), decoder.address(operands[1])
    # The size is a constant in PTX, since it is part of the machine code; what may vary is how much
    # of it is read, with zeros for the rest.
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
            # With a predicate (ignore-src) the source is not read at all where it is true.
            read_size = lambda g: np.where(ignore(g), 0, size)  # noqa: E731
        # A 64-bit operand is a cache policy, which decides nothing here.
        elif not (isinstance(extra, Register) and extra.type in ("b64", "u64")):
            amount = decoder.read(extra, "u32")
            read_size = lambda g: np.minimum(amount(g), np.uint32(size))  # noqa: E731
    fetch, put = LOCATORS["global"], LOCATORS["shared"]

    def run(group: Group) -> None:
        to, origin = target(group), source(group)
        wanted = None if read_size is None else read_size(group)
        # The usual copy is whole, and goes by words like any load; `_read_some` is for the edges of
        # a tile.
        if wanted is None or (wanted == size).all():
            words = load(group, fetch(group, origin, size, "read"), 4, size // 4)
        else:
            words = _read_some(group, origin, np.broadcast_to(wanted, (group.n,)), size)
        store(group, put(group, to, size, "write"), 4, words, "async")

    return run


def _commit_or_wait(instruction: Instruction) -> Op:
    commit, newest = "commit_group" in instruction.mods, None
    if "wait_group" in instruction.mods:
        number = instruction.operands[0]
        if not isinstance(number, Immediate):
            raise Unsupported
        newest = number.bits

    def run(group: Group) -> None:
        races = _races(group)
        if races is None:
            return
        if commit:
            races.copies.commit(group.lanes)
        else:
            races.wait(group.lanes, newest)

    return run


def _arrive_after_copies(arrive: Op | None) -> Op:
    """Arrive at an mbarrier when the copies of the thread are there, which is now.

    Without `arrive` the arrival was first added to what is pending: together, nothing.
    """

    def run(group: Group) -> None:
        races = _races(group)
        if races is not None:
            races.wait(group.lanes, None)
        if arrive is not None:
            arrive(group)

    return run


def _races(group: Group) -> Races | None:
    shadow = group.chunk.shared.shadow
    return None if shadow is None else shadow.races


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


def _results(instruction: Instruction) -> int:
    # An arrival may leave its result out: then an address is the first operand.
    return 0 if instruction.mods[0] in ("init", "inval") else 1


def _waits(instruction: Instruction) -> bool:
    return not {"try_wait", "test_wait"}.isdisjoint(instruction.mods)


@decodes("mbarrier", results=_results, effects=True, waits=_waits, undefined=Flow.MUST_BE_DEFINED)
def _mbarrier(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, list(instruction.operands)
    # Transactions are counted by copies of whole tiles (cp.async.bulk), which are not emulated
    # either.
    if "expect_tx" in mods or "complete_tx" in mods:
        raise Unsupported
    name, space = mods[0], space_of(instruction)
    if name == "init":
        return _init(decoder, operands, space)
    # The word may be used for something else now; to the emulator it is memory as any other.
    if name == "inval":
        return lambda _: None
    if name in ("arrive", "arrive_drop"):
        target = None if isinstance(operands[0], Address) else operands.pop(0)
        count = operands[1] if len(operands) > 1 else None
        return _arrive(decoder, operands[0], space, target, drop="drop" in name, count=count)
    if name in ("test_wait", "try_wait"):
        return _test_wait(decoder, operands, space, parity="parity" in mods)
    if name == "pending_count":
        put, state = decoder.write(operands[0], "b32"), decoder.read(operands[1], "b64")
        return lambda g: put(g, (state(g) & _PENDING).astype(np.uint32))
    raise Unsupported


def _init(decoder: Decoder, operands: list[Operand], space: str) -> Op:
    address, count = decoder.address(operands[0]), decoder.read(operands[1], "u32")

    def run(group: Group) -> None:
        number = count(group).astype(np.uint64)
        word = number | number << _EXPECTED_SHIFT
        store(group, LOCATORS[space](group, address(group), 8, "write"), 8, [word])

    return run


def _arrive(
    decoder: Decoder,
    place: Operand,
    space: str,
    target: Operand | None,
    *,
    drop: bool,
    count: Operand | None = None,
) -> Op:
    put = None if target is None else decoder.write(target, "b64")
    number = decoder.read(count or Immediate(1), "u32")

    def step(old: Lanes, arrivals: Lanes) -> Lanes:
        # When the last pending arrival comes, the phase turns and the count begins anew. Threads
        # that dropped out are not expected in later phases.
        expected = old >> _EXPECTED_SHIFT & _PENDING
        phase = old >> _PHASE_SHIFT
        left = (old & _PENDING) - arrivals
        expected = expected - arrivals if drop else expected
        done = left == 0
        phase = np.where(done, phase ^ _ONE, phase)
        left = np.where(done, expected, left)
        return left | expected << _EXPECTED_SHIFT | phase << _PHASE_SHIFT

    # Arrivals of many lanes at one barrier are an atomic update like others: each finds what the
    # one before it left.
    operation = Update(step)
    locate, address = LOCATORS[space], decoder.address(place)

    def run(group: Group) -> None:
        arrivals = number(group).astype(np.uint64)
        pieces = locate(group, address(group), 8, "atomic access")
        old = run_atomic(group, pieces, [arrivals], 8, operation, operation)
        if put is not None:
            put(group, old)
        shadow = group.chunk.shared.shadow
        if shadow is not None:
            # A phase that completes orders what its threads did, as a barrier of the block does.
            complete = np.broadcast_to(group.block_index, old.shape)[old & _PENDING == arrivals]
            done = np.zeros(group.chunk.blocks, bool)
            done[complete] = True
            shadow.on_barrier(done)

    return run


def _test_wait(decoder: Decoder, operands: list[Operand], space: str, *, parity: bool) -> Op:
    put, address = decoder.write(operands[0], "pred"), decoder.address(operands[1])
    given = decoder.read(operands[2], "u32" if parity else "b64")

    def run(group: Group) -> None:
        pieces = LOCATORS[space](group, address(group), 8, "read")
        word = load(group, pieces, 8, 1, "strong")[0]
        phase = word >> _PHASE_SHIFT & _ONE
        token = given(group).astype(np.uint64)
        # A thread waits for the end of the phase that it names: with the token of its arrival, or
        # by the phase's parity alone. The test is true once the barrier is in another one.
        waited = token & _ONE if parity else token >> _PHASE_SHIFT & _ONE
        put(group, phase != waited)

    return run
