"""Arithmetic that has integer and floating-point forms, and the purely floating-point ones."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator import numerics
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.numerics.rounding import ROUNDINGS
from culaunch._emulator.ops.carries import carry_out
from culaunch._emulator.ops.integer import integer_arithmetic
from culaunch._emulator.types import Lanes, is_float, unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Op
    from culaunch._emulator.ptx.syntax import Instruction, Operand


# The last operand and the result may be f32, and the others f16 or bf16: add.f32.bf16.
_MIXED = ("add", "sub", "fma")


@computes("add", "sub", "mul", "mad", "div", "min", "max", "abs", "neg", undefined=Flow.COMPUTES)
def _arithmetic(decoder: Decoder, instruction: Instruction) -> Op:
    if "cc" in instruction.mods and instruction.name in ("add", "sub"):
        return carry_out(decoder, instruction)
    # PTX uses one name for both operations, and the type distinguishes them.
    if is_float(decoder.type(instruction)):
        return _float(decoder, instruction)
    return integer_arithmetic(decoder, instruction)


@computes(
    "fma", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", undefined=Flow.COMPUTES
)
def _float(decoder: Decoder, instruction: Instruction) -> Op:
    name, mods = instruction.name, instruction.mods
    kind = decoder.type(instruction)
    if name == "div" and ("approx" in mods or "full" in mods):
        return _divide_approximately(decoder, instruction)
    *sources, last = instruction.operands[1:]
    narrow = ""
    if name in _MIXED and "f32" in mods[: mods.index(kind)]:
        kind, narrow = "f32", kind
    function = _function(name, mods, len(sources) + 1)
    options: dict[str, Any] = {}
    for word in mods:
        if word in ROUNDINGS:
            options["rounding"] = word
        elif word in ("ftz", "sat", "relu"):
            options[word] = True
        elif word == "NaN":
            options["nan"] = True
        elif word == "xorsign":
            options["xorsign_abs"] = True
        elif word not in ("approx", "abs", kind, narrow):
            raise Unsupported(f"the modifier .{word}")
    # Better now, as an instruction that is not emulated, than as an exception in the middle of a
    # launch.
    _try_out(function, kind, len(sources) + 1, tuple(sorted(options.items())))
    put = decoder.write(instruction.operands[0], kind)
    readers = [_read(decoder, one, kind, narrow) for one in sources] + [decoder.read(last, kind)]
    # The usual number of operands, without a list for each execution.
    if len(readers) == 2:
        first, second = readers
        return lambda g: put(g, function(kind, first(g), second(g), **options))
    return lambda g: put(g, function(kind, *[read(g) for read in readers], **options))


def _read(decoder: Decoder, operand: Operand, kind: str, narrow: str) -> Callable[..., Lanes]:
    """Read an operand, which may have a narrower type: its values are exact."""
    if not narrow:
        return decoder.read(operand, kind)
    value = decoder.read(operand, narrow)
    return lambda group: numerics.cvt(kind, narrow, value(group))


@functools.cache
def _try_out(
    function: Callable[..., Lanes], kind: str, operands: int, options: tuple[tuple[str, Any], ...]
) -> None:
    """Find out now, on zeros, whether the numerics know this form."""
    function(kind, *[np.zeros(1, unsigned(kind))] * operands, **dict(options))


def _divide_approximately(decoder: Decoder, instruction: Instruction) -> Op:
    divide = numerics.div_full if "full" in instruction.mods else numerics.div_approx
    ftz = "ftz" in instruction.mods
    put = decoder.write(instruction.operands[0], "f32")
    first, second = (decoder.read(operand, "f32") for operand in instruction.operands[1:])
    return lambda g: put(g, divide(first(g), second(g), ftz=ftz))


def _function(name: str, mods: tuple[str, ...], operands: int) -> Callable[..., Lanes]:
    # For floats, mad is another name of fma, which also rounds once.
    if name == "mad":
        name = "fma"
    if "approx" in mods:
        name = {"rcp": "rcp_approx", "sqrt": "sqrt_approx"}.get(name, name)
    # PTX has no other form of it.
    if name == "rsqrt":
        name = "rsqrt_approx"
    name = {"min": "minimum", "max": "maximum", "abs": "absolute", "neg": "negate"}.get(name, name)
    found: Callable[..., Lanes] | None = getattr(numerics, name, None)
    if found is None:
        raise Unsupported
    if operands == 3 and name in ("minimum", "maximum"):
        return functools.partial(_of_three, found)
    return found


def _of_three(
    function: Callable[..., Lanes], kind: str, a: Lanes, b: Lanes, c: Lanes, **options: bool
) -> Lanes:
    if kind != "f32":
        raise ValueError(f"three operands must be of f32 (got {kind})")
    return function(kind, function(kind, a, b, **options), c, **options)


@computes("copysign", undefined=Flow.COMPUTES)
def _copysign(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    put = decoder.write(instruction.operands[0], kind)
    first, second = (decoder.read(operand, kind) for operand in instruction.operands[1:])
    return lambda g: put(g, numerics.copysign(kind, first(g), second(g)))


@computes("testp", undefined=Flow.COMPUTES)
def _testp(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    put = decoder.write(instruction.operands[0], "pred")
    value = decoder.read(instruction.operands[1], kind)
    test = instruction.mods[0]
    return lambda g: put(g, numerics.testp(kind, test, value(g)))
