"""atom and red."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator import numerics
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.atomic import Update, update
from culaunch._emulator.memory.bytes import Piece, take
from culaunch._emulator.memory.how import RELAXED, How
from culaunch._emulator.ops.memory import check_hints, how_of, space_of
from culaunch._emulator.types import Lanes, is_float, lane_dtype, size_of, unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder, Reader
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction

OPERATIONS = frozenset(("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"))


@decodes("atom", results=1, effects=True, waits=True, undefined=Flow.UPDATES)
@decodes("red", results=0, effects=True, waits=False, undefined=Flow.UPDATES)
def _atom(decoder: Decoder, instruction: Instruction) -> Op:
    check_hints(instruction, OPERATIONS)
    kind = decoder.type(instruction)
    name = next(word for word in instruction.mods if word in OPERATIONS)
    operands = list(instruction.operands)
    targets = decoder.vector(operands.pop(0)) if instruction.name == "atom" else ()
    address = decoder.address(operands[0])
    if kind == "b128":
        raise Unsupported
    values = [[decoder.read(v, kind) for v in decoder.vector(operand)] for operand in operands[1:]]
    wanted = 2 if name == "cas" else 1
    if len(values) < wanted:
        raise Unsupported(f"{len(operands)} operands")
    values = values[:wanted]  # A cache policy may follow.
    puts = [decoder.write(target, kind) for target in targets]
    operation = atomic_update(name, kind)
    flushing = atomic_update(name, kind, ftz=True) if kind == "f32" and name == "add" else operation
    if len(values[0]) > 1:
        return _vector_op(instruction, address, values[0], puts, operation, kind)
    single = [value[0] for value in values]
    put = puts[0] if puts else None
    locate, size = LOCATORS[space_of(instruction)], size_of(kind)
    how = how_of(instruction, RELAXED)

    def run(group: Group) -> None:
        pieces = locate(group, address(group), size, "atomic access")
        chosen = [value(group) for value in single]
        old = run_atomic(group, pieces, chosen, size, operation, flushing, how)
        if put is not None:
            put(group, old)

    return run


def run_atomic(
    group: Group,
    pieces: list[Piece],
    operands: list[Lanes],
    size: int,
    operation: Update,
    flushing: Update,
    how: How = RELAXED,
) -> Lanes:
    """Update the words that `pieces` locate, lane after lane; return the old values."""
    old = np.zeros(group.n, f"u{size}")
    for piece in pieces:
        lanes = np.arange(group.n) if piece.lanes is None else piece.lanes
        # All lanes may have one address: then it is one value, which is given to each of them.
        at = np.broadcast_to(piece.at // size, lanes.shape)
        if piece.shadow is not None:
            piece.shadow.on_atomic(group, piece, size, how, replaces=operation.replaces)
        chosen = [take(value, piece.lanes) for value in operands]
        # The hardware flushes subnormals in f32 additions to global memory only.
        effect = flushing if piece.data.is_global else operation
        old[lanes] = update(piece.data.by_size[size], at, chosen, effect)
    return old


def atomic_update(name: str, kind: str, *, ftz: bool = False) -> Update:
    """Return the effect of an operation of atom or red on a word of a type."""
    dtype = lane_dtype(kind)
    out = unsigned(kind)
    if is_float(kind) and name in ("add", "min", "max"):
        function = getattr(numerics, {"min": "minimum", "max": "maximum"}.get(name, name))
        in_order = None
        if name == "add" and dtype.kind == "f" and not ftz:
            # A running sum in the type itself rounds after every step, just as one lane after the
            # other does. With flushing in between this does not work, so it runs step by step.
            in_order = (np.add, dtype)
        if ftz:
            return Update(lambda old, b: function(kind, old, b, ftz=True))
        return Update(lambda old, b: function(kind, old, b), in_order)
    if name in _UFUNCS:
        ufunc = _UFUNCS[name]
        if dtype.kind == "i" and name in ("min", "max"):
            # The words are unsigned: signed ones are compared as such, and go back as bits.
            def extremum(old: Lanes, b: Lanes) -> Lanes:
                chosen: Lanes = ufunc(old.view(dtype), b.view(dtype))
                return chosen.view(out)

            return Update(extremum, (ufunc, dtype))
        return Update(ufunc, (ufunc, out))
    if name == "exch":
        return Update(
            lambda old, b: b + np.zeros_like(old), in_order=_exchange_in_order, replaces=True
        )
    if name == "cas":
        return Update(_compare_and_swap, in_order=_swap_in_order)
    one, zero = out.type(1), out.type(0)
    if name == "inc":
        # PTX ISA, "atom": inc wraps to zero after the operand, dec goes from zero (or from above)
        # to it.
        return Update(lambda old, b: np.where(old >= b, zero, old + one))
    return Update(lambda old, b: np.where((old == 0) | (old > b), b, old - one))


def _compare_and_swap(old: Lanes, compare: Lanes, value: Lanes) -> Lanes:
    return np.where(np.equal(old, compare), value, old)


def _exchange_in_order(word: Any, value: Lanes) -> tuple[Lanes, Any]:
    return np.concatenate([np.array([word], value.dtype), value[:-1]]), value[-1]


def _swap_in_order(word: Any, compare: Lanes, value: Lanes) -> tuple[Lanes, Any]:
    """Go from one lane that changes the word to the next: of many that meet, few do."""
    old = np.empty_like(value)
    start, count = 0, value.shape[0]
    while start < count:
        changes = (compare[start:] == word) & (value[start:] != word)
        first = int(changes.argmax())
        if not changes[first]:
            break
        old[start : start + first + 1] = word
        word = value[start + first]
        start += first + 1
    old[start:] = word
    return old, word


_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}


def _vector_op(
    instruction: Instruction,
    address: Reader,
    values: list[Reader],
    puts: list[Callable[[Group, Lanes], None]],
    operation: Update,
    kind: str,
) -> Op:
    """Decode the vector forms: each element is updated on its own."""
    size, how = size_of(kind), how_of(instruction, RELAXED)
    locate = LOCATORS[space_of(instruction)]

    def run(group: Group) -> None:
        pieces = locate(group, address(group), size * len(values), "atomic access")
        for i, value in enumerate(values):
            # The elements are adjacent. Each is atomic by itself, but the vector as a whole is not.
            shifted = [p._replace(at=p.at + i * size) for p in pieces]
            old = run_atomic(group, shifted, [value(group)], size, operation, operation, how)
            if puts:
                puts[i](group, old)

    return run
