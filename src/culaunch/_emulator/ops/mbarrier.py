"""mbarrier: a barrier in shared memory, which counts arrivals and the bytes of copies."""

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
from culaunch._emulator.memory.how import CLUSTER, RELAXED, How
from culaunch._emulator.ops.atomics import run_atomic
from culaunch._emulator.ops.memory import space_of
from culaunch._emulator.ptx.syntax import Address, Immediate, Instruction, Operand

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.types import Lanes

# The word's layout is ours: arrivals pending, arrivals expected, bytes expected minus bytes arrived
# (bytes may arrive first: two's complement), phase.
_COUNT = np.uint64((1 << 20) - 1)
_EXPECTED_SHIFT = np.uint64(20)
_BYTES_SHIFT = np.uint64(40)
_BYTES = np.uint64((1 << 22) - 1)
_PHASE_SHIFT = np.uint64(62)
_ONE = np.uint64(1)
_NONE = np.zeros(1, np.uint64)
_RELEASE = RELAXED._replace(scope=CLUSTER, releases=True)


def _results(instruction: Instruction) -> int:
    # An arrival may leave its result out: then an address is the first operand.
    without = instruction.mods[0] in ("init", "inval", "expect_tx", "complete_tx")
    return 0 if without else 1


def _waits(instruction: Instruction) -> bool:
    return not {"try_wait", "test_wait"}.isdisjoint(instruction.mods)


@decodes("mbarrier", results=_results, effects=True, waits=_waits, undefined=Flow.MUST_BE_DEFINED)
def _mbarrier(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, list(instruction.operands)
    name, space = mods[0], space_of(instruction)
    if name == "init":
        return _init(decoder, operands, space)
    # The word may now have another use. The emulator treats it like any memory.
    if name == "inval":
        return lambda _: None
    if name in ("expect_tx", "complete_tx"):
        return _count_bytes(decoder, operands, space, completes=name == "complete_tx")
    if name in ("arrive", "arrive_drop"):
        target = None if isinstance(operands[0], Address) else operands.pop(0)
        extra = operands[1] if len(operands) > 1 else None
        counts_bytes = "expect_tx" in mods
        return arrive_at(
            decoder,
            operands[0],
            space,
            target,
            drop="drop" in name,
            count=None if counts_bytes else extra,
            expected=extra if counts_bytes else None,
        )
    if name in ("test_wait", "try_wait"):
        return _test_wait(decoder, operands, space, parity="parity" in mods)
    if name == "pending_count":
        put, state = decoder.write(operands[0], "b32"), decoder.read(operands[1], "b64")
        return lambda g: put(g, (state(g) & _COUNT).astype(np.uint32))
    raise Unsupported


def _init(decoder: Decoder, operands: list[Operand], space: str) -> Op:
    address, count = decoder.address(operands[0]), decoder.read(operands[1], "u32")

    def run(group: Group) -> None:
        number = count(group).astype(np.uint64)
        word = number | number << _EXPECTED_SHIFT
        store(group, LOCATORS[space](group, address(group), 8, "write"), 8, [word])

    return run


def arrive_at(
    decoder: Decoder,
    place: Operand,
    space: str,
    target: Operand | None,
    *,
    drop: bool,
    count: Operand | None = None,
    expected: Operand | None = None,
) -> Op:
    """Decode an arrival. With `expected`, it also waits for this many bytes."""
    put = None if target is None else decoder.write(target, "b64")
    number = decoder.read(count or Immediate(1), "u32")
    more = None if expected is None else decoder.read(expected, "u32")
    address = decoder.address(place)
    operation = _DROP if drop else _ARRIVE

    def run(group: Group) -> None:
        arrivals = number(group).astype(np.uint64)
        size = _NONE if more is None else more(group).astype(np.uint64)
        old = _update(group, address(group), space, arrivals, size, operation, _RELEASE)
        if put is not None:
            put(group, old)

    return run


def complete_bytes(group: Group, address: Lanes, space: str, size: Lanes) -> None:
    """Record at each lane's mbarrier that `size` bytes have arrived."""
    _complete(group, address, space, _NONE, _BYTES + _ONE - size)


def complete_arrival(group: Group, address: Lanes, space: str) -> None:
    """Arrive at each lane's mbarrier for asynchronous instructions that have ended."""
    _complete(group, address, space, np.ones(1, np.uint64), _NONE)


def _complete(group: Group, address: Lanes, space: str, arrivals: Lanes, size: Lanes) -> None:
    _update(group, address, space, arrivals, size, _ARRIVE)
    if group.chunk.races is not None:
        group.chunk.races.complete(LOCATORS[space](group, address, 8, "atomic access"))


def _count_bytes(decoder: Decoder, operands: list[Operand], space: str, *, completes: bool) -> Op:
    address, size = decoder.address(operands[0]), decoder.read(operands[1], "u32")

    def run(group: Group) -> None:
        if completes:
            complete_bytes(group, address(group), space, size(group).astype(np.uint64))
        else:
            _update(group, address(group), space, _NONE, size(group).astype(np.uint64), _ARRIVE)

    return run


def _after(old: Lanes, arrivals: Lanes, size: Lanes, *, drop: bool) -> Lanes:
    """Return the word after some arrivals, when `size` more bytes are expected."""
    # When the last pending arrival and the last byte have come, the phase flips and the count
    # starts again. Threads that dropped out are not expected in later phases.
    expected = old >> _EXPECTED_SHIFT & _COUNT
    phase = old >> _PHASE_SHIFT
    left = (old & _COUNT) - arrivals
    missing = (old >> _BYTES_SHIFT) + size & _BYTES
    expected = expected - arrivals if drop else expected
    done = (left == 0) & (missing == 0)
    phase = np.where(done, phase ^ _ONE, phase)
    left = np.where(done, expected, left)
    return left | expected << _EXPECTED_SHIFT | missing << _BYTES_SHIFT | phase << _PHASE_SHIFT


def _arrived(old: Lanes, arrivals: Lanes, size: Lanes) -> Lanes:
    return _after(old, arrivals, size, drop=False)


def _dropped(old: Lanes, arrivals: Lanes, size: Lanes) -> Lanes:
    return _after(old, arrivals, size, drop=True)


# Several lanes' arrivals at one barrier are an atomic update: each sees the previous result.
_ARRIVE, _DROP = Update(_arrived), Update(_dropped)


def _update(
    group: Group,
    address: Lanes,
    space: str,
    arrivals: Lanes,
    size: Lanes,
    operation: Update,
    how: How = RELAXED,
) -> Lanes:
    pieces = LOCATORS[space](group, address, 8, "atomic access")
    old = run_atomic(group, pieces, [arrivals, size], 8, operation, operation, how)
    shadow = group.chunk.shared.shadow
    if shadow is not None:
        turned = (operation.function(old, arrivals, size) ^ old) >> _PHASE_SHIFT & _ONE
        if turned.any():
            shadow.on_barrier()
    return old


def _test_wait(decoder: Decoder, operands: list[Operand], space: str, *, parity: bool) -> Op:
    put, address = decoder.write(operands[0], "pred"), decoder.address(operands[1])
    given = decoder.read(operands[2], "u32" if parity else "b64")

    def run(group: Group) -> None:
        pieces = LOCATORS[space](group, address(group), 8, "read")
        word = load(group, pieces, 8, 1, RELAXED)[0]
        phase = word >> _PHASE_SHIFT & _ONE
        token = given(group).astype(np.uint64)
        # A thread waits for the end of the phase that it names, either with the token of its
        # arrival or only with the phase's parity. The test is true once the barrier is in another
        # phase.
        waited = token & _ONE if parity else token >> _PHASE_SHIFT & _ONE
        passed = phase != waited
        put(group, passed)
        # The end of a phase orders the accesses of the threads that arrived before those of the
        # threads that wait.
        if group.chunk.races is not None:
            group.chunk.races.wait_mbarrier(group, pieces, passed, CLUSTER)

    return run
