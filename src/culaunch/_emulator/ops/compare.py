"""Comparison and selection: setp, set, selp, slct, and logic on predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.numerics import compare
from culaunch._emulator.numerics.compare import COMPARISONS, UNSIGNED
from culaunch._emulator.ptx.syntax import Instruction, Pair
from culaunch._emulator.types import Lanes, is_float, is_type, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder, Reader
    from culaunch._emulator.machine.state import Group, Op

_COMBINE: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
# lo, ls, hi and hs are the unsigned names, with the same meaning.
_PLAIN: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    **COMPARISONS,
    **{word: COMPARISONS[meaning] for word, meaning in UNSIGNED.items()},
}


@computes("setp", undefined=Flow.COMPARES)
def _setp(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    target = instruction.operands[0]
    test = _comparison(decoder, instruction, kind)
    if kind in ("f16x2", "bf16x2"):
        if not isinstance(target, Pair):
            raise Unsupported
        low, high = (decoder.write(t, "pred") for t in (target.first, target.second))

        def run_packed(group: Group) -> None:
            both = test(group)
            low(group, both[:, 0])
            high(group, both[:, 1])

        return run_packed
    combine = next((_COMBINE[word] for word in instruction.mods if word in _COMBINE), None)
    # ``p|q``: the second predicate gets the opposite, combined with the same condition.
    first = target.first if isinstance(target, Pair) else target
    put = decoder.write(first, "pred")
    also = decoder.write(target.second, "pred") if isinstance(target, Pair) else None
    # Nearly every setp has this form, so skip the branches of the general form.
    if combine is None and also is None:
        return lambda g: put(g, test(g))
    other = decoder.read(instruction.operands[3], "pred") if combine else None

    def run(group: Group) -> None:
        result = test(group)
        opposite = ~result
        if combine is not None and other is not None:
            condition = other(group)
            result, opposite = combine(result, condition), combine(opposite, condition)
        put(group, result)
        if also is not None:
            also(group, opposite)

    return run


@computes("set", undefined=Flow.COMPUTES)
def _set(decoder: Decoder, instruction: Instruction) -> Op:
    result, kind = (word for word in instruction.mods if is_type(word))
    if kind in ("f16x2", "bf16x2") or result in ("f16x2", "bf16x2"):
        return _set_packed(decoder, instruction, result, kind)
    test = _comparison(decoder, instruction, kind)
    combine = next((_COMBINE[word] for word in instruction.mods if word in _COMBINE), None)
    put = decoder.write(instruction.operands[0], result)
    other = decoder.read(instruction.operands[3], "pred") if combine else None
    # True is 1.0 as a float, and all bits set as an integer.
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(result)
    dtype = np.dtype(f"u{size_of(result)}").type
    true = dtype(one if one is not None else (1 << (8 * size_of(result))) - 1)

    def run(group: Group) -> None:
        found = test(group)
        if combine is not None and other is not None:
            found = combine(found, other(group))
        put(group, np.where(found, true, dtype(0)))

    return run


def _set_packed(decoder: Decoder, instruction: Instruction, result: str, kind: str) -> Op:
    test = _comparison(decoder, instruction, kind)
    put = decoder.write(instruction.operands[0], "b32")
    one = np.uint32({"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(result, 0xFFFF))

    def run(group: Group) -> None:
        both = test(group).astype(np.uint32)
        put(group, both[:, 0] * one | both[:, 1] * one << np.uint32(16))

    return run


@computes("selp", undefined=Flow.SELECTS)
def _selp(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    put = decoder.write(instruction.operands[0], kind)
    first, second = (decoder.read(operand, kind) for operand in instruction.operands[1:3])
    condition = decoder.read(instruction.operands[3], "pred")
    return lambda g: put(g, np.where(condition(g), first(g), second(g)))


@computes("slct", undefined=Flow.COMPUTES)
def _slct(decoder: Decoder, instruction: Instruction) -> Op:
    kind, selector = (word for word in instruction.mods if is_type(word))
    put = decoder.write(instruction.operands[0], kind)
    first, second = (decoder.read(operand, kind) for operand in instruction.operands[1:3])
    third = decoder.read(instruction.operands[3], selector)
    ftz = "ftz" in instruction.mods

    def run(group: Group) -> None:
        zero = np.zeros(1, np.uint32)
        chosen = compare("ge", selector, third(group), zero, ftz=ftz)
        put(group, np.where(chosen, first(group), second(group)))

    return run


def _comparison(decoder: Decoder, instruction: Instruction, kind: str) -> Reader:
    operator = instruction.mods[0]
    first, second = (decoder.read(operand, kind) for operand in instruction.operands[1:3])
    ftz = "ftz" in instruction.mods
    if is_float(kind):
        return lambda g: compare(operator, kind, first(g), second(g), ftz=ftz)
    function = _PLAIN[operator]
    # Only signed numbers have another order than their bits.
    if kind[0] == "s" and operator not in ("eq", "ne"):
        dtype = f"i{size_of(kind)}"
        return lambda g: function(first(g).view(dtype), second(g).view(dtype))
    return lambda g: function(first(g), second(g))
