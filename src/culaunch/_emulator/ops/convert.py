"""cvt, cvta, isspacep and mov."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator import numerics
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import MOVES, Flow
from culaunch._emulator.memory.shared import name_rank, named_rank
from culaunch._emulator.memory.windows import BASES, WINDOW_SHIFT
from culaunch._emulator.numerics.rounding import ROUNDINGS
from culaunch._emulator.ptx.syntax import Instruction, Register, Vector
from culaunch._emulator.types import (
    Lanes,
    is_float,
    is_integer,
    is_type,
    lane_dtype,
    size_of,
    unsigned,
)

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.decode.undefined_bits import BitFlow
    from culaunch._emulator.machine.state import Group, Op


def _cvt_flow(instruction: Instruction) -> BitFlow:
    """Describe how bits move between integers.

    The upper ones are dropped, or copies of the sign.
    """
    types = [word for word in instruction.mods if is_type(word)]
    plain = len(types) == 2 == len(instruction.mods) and all(map(is_integer, types))
    return MOVES if plain else Flow.COMPUTES


@computes("cvt", undefined=_cvt_flow)
def _cvt(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    if mods[0] == "pack":
        return _cvt_pack(decoder, instruction)
    kinds = [word for word in mods if is_type(word)]
    # The order of the words is fixed: rounding and flags, then the result's type, then the
    # operand's.
    to, source = kinds
    options: dict[str, Any] = {}
    for word in mods:
        if word in ROUNDINGS:
            options["rounding"] = word
        elif word in ("ftz", "sat", "relu", "satfinite"):
            options[word] = True
        elif word not in kinds:
            raise Unsupported(f"the modifier .{word}")
    put = decoder.write(operands[0], to)
    first = decoder.read(operands[1], source)
    if len(operands) == 3:
        # Two operands make one packed result: the first its upper half.
        second = decoder.read(operands[2], source)
        return lambda g: put(g, numerics.cvt_pair(to, first(g), second(g), **options))
    # Between integers NumPy's own conversion does it: it extends by the operand's sign and cuts.
    if not is_float(to) and not is_float(source) and "sat" not in mods:
        wide, narrow = lane_dtype(source), unsigned(to)
        return lambda g: put(g, first(g).view(wide).astype(narrow))
    numerics.cvt(to, source, np.zeros(1, unsigned(source)), **options)  # refuses unknown forms
    return lambda g: put(g, numerics.cvt(to, source, first(g), **options))


def _cvt_pack(decoder: Decoder, instruction: Instruction) -> Op:
    operands = instruction.operands
    to = next(word for word in instruction.mods if is_type(word))
    put = decoder.write(operands[0], "b32")
    readers = [decoder.read(operand, "s32") for operand in operands[1:]]
    return lambda g: put(g, numerics.cvt_pack(to, *[read(g) for read in readers]))


@computes("cvta", undefined=Flow.COMPUTES)
def _cvta(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    kind = decoder.type(instruction)
    space = next(word.partition("::")[0] for word in mods if word.partition("::")[0] in BASES)
    # The generic address of a shared or local variable is its offset in the space's window.
    base = np.uint64(BASES[space])
    put = decoder.write(operands[0], kind)
    address = decoder.read(operands[1], kind)
    if not base:
        return lambda g: put(g, address(g))
    if "to" in mods:
        return lambda g: put(g, address(g) - base)
    return lambda g: put(g, address(g) + base)


@computes("isspacep", undefined=Flow.COMPUTES)
def _isspacep(decoder: Decoder, instruction: Instruction) -> Op:
    space = instruction.mods[0].partition("::")[0]
    window = np.uint64(BASES[space] >> WINDOW_SHIFT)
    put = decoder.write(instruction.operands[0], "pred")
    address = decoder.read(instruction.operands[1], "u64")
    if space == "const":
        # Constants are ordinary host memory here, so a generic address of one is global.
        return lambda g: put(g, np.zeros(1, bool))
    return lambda g: put(g, address(g) >> np.uint64(WINDOW_SHIFT) == window)


@computes("mapa", "getctarank", undefined=Flow.COMPUTES)
def _mapa(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    address = decoder.read(instruction.operands[1], kind)
    if instruction.name == "getctarank":
        put = decoder.write(instruction.operands[0], "u32")

        def rank_of(group: Group) -> None:
            own = group.block_index % group.chunk.launch.cluster.size
            named = named_rank(address(group).astype(np.uint32))
            put(group, np.where(named < 0, own, named).astype(np.uint32))

        return rank_of
    put = decoder.write(instruction.operands[0], kind)
    rank = decoder.read(instruction.operands[2], "u32")
    return lambda group: put(group, name_rank(address(group), rank(group)))


@computes("mov", undefined=MOVES)
def _mov(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    target, source = instruction.operands
    if isinstance(target, Vector) and isinstance(source, Vector):
        pairs = list(zip(target.items, source.items, strict=True))
        copies = [(decoder.write(t, kind), decoder.read(s, kind)) for t, s in pairs]

        def copy(group: Group) -> None:
            # All are read first: ``mov {a, b}, {b, a}`` exchanges two registers.
            values = [read(group) for _, read in copies]
            for (put, _), value in zip(copies, values, strict=True):
                put(group, value)

        return copy
    if kind == "b128":
        return _mov_b128(decoder, instruction)
    if isinstance(source, Vector):
        return _pack(decoder, instruction, kind)
    if isinstance(target, Vector):
        return _unpack(decoder, instruction, kind)
    put, read = decoder.write(target, kind), decoder.read(source, kind)
    return lambda g: put(g, read(g))


def _pack(decoder: Decoder, instruction: Instruction, kind: str) -> Op:
    target, source = instruction.operands
    items = decoder.vector(source)
    part = f"b{8 * size_of(kind) // len(items)}"
    wide = unsigned(kind)
    shifts = [wide.type(8 * size_of(part) * i) for i in range(len(items))]
    put = decoder.write(target, kind)
    readers = [decoder.read(item, part) for item in items]

    def run(group: Group) -> None:
        # The first item is the lowest part.
        out: Lanes = readers[0](group).astype(wide)
        for read, shift in zip(readers[1:], shifts[1:], strict=True):
            out = out | read(group).astype(wide) << shift
        put(group, out)

    return run


def _unpack(decoder: Decoder, instruction: Instruction, kind: str) -> Op:
    target, source = instruction.operands
    items = decoder.vector(target)
    part = f"b{8 * size_of(kind) // len(items)}"
    narrow, wide = unsigned(part), unsigned(kind)
    read = decoder.read(source, kind)
    puts = [(decoder.write(t, part), wide.type(8 * size_of(part) * i)) for i, t in enumerate(items)]

    def run(group: Group) -> None:
        whole = read(group)
        for put, shift in puts:
            put(group, (whole >> shift).astype(narrow))

    return run


def _mov_b128(decoder: Decoder, instruction: Instruction) -> Op:
    target, source = instruction.operands
    if isinstance(source, Vector) and isinstance(target, Register):
        low, high = (decoder.read(item, "b64") for item in source.items)
        slot = target.slot

        def pack(group: Group) -> None:
            group.regs[slot] = np.stack(np.broadcast_arrays(low(group), high(group)), axis=1)

        return pack
    if isinstance(target, Vector) and isinstance(source, Register):
        puts = [decoder.write(item, "b64") for item in target.items]
        slot = source.slot

        def unpack(group: Group) -> None:
            for i, put in enumerate(puts):
                put(group, group.regs[slot][:, i])

        return unpack
    if isinstance(target, Register) and isinstance(source, Register):
        to, origin = target.slot, source.slot
        return lambda g: g.regs.__setitem__(to, g.regs[origin])
    raise Unsupported
