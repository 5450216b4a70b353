"""Integer arithmetic."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.types import Lanes, is_signed, lane_dtype, size_of, unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction

_WIDER = {"2": "4", "4": "8"}


def integer_arithmetic(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode add, sub, mul, mad, div, min, max, abs and neg of integers."""
    kind = decoder.type(instruction)
    name, mods = instruction.name, instruction.mods
    if kind in ("u16x2", "s16x2"):
        raise Unsupported
    if name in ("mul", "mad"):
        return _multiply(decoder, instruction, kind)
    function = _FUNCTIONS[name]
    if len(instruction.operands) != (2 if name in ("abs", "neg") else 3):
        raise Unsupported("this number of operands")
    if "sat" in mods:
        function = {"add": _add_saturated, "sub": _sub_saturated}[name]
    if "relu" in mods:
        plain = function
        function = lambda a, b: np.maximum(plain(a, b), 0)  # noqa: E731
    return elementwise(
        decoder, instruction, kind, function, signed=name not in ("add", "sub") or "sat" in mods
    )


def elementwise(
    decoder: Decoder,
    instruction: Instruction,
    kind: str,
    function: Callable[..., Lanes],
    *,
    signed: bool = True,
    result: str = "",
) -> Op:
    """Decode an instruction whose result depends on its operands, lane by lane.

    With `signed`, operands of a signed type are given to `function` as signed integers; its
    result may be of either sign.
    """
    result = result or kind
    put = decoder.write(instruction.operands[0], result)
    out = unsigned(result)
    readers = [decoder.read(operand, kind) for operand in instruction.operands[1:]]
    if signed and is_signed(kind):
        dtype = lane_dtype(kind)
        if len(readers) == 2:
            first, second = readers
            return lambda g: put(g, function(first(g).view(dtype), second(g).view(dtype)).view(out))
        return lambda g: put(g, function(*[read(g).view(dtype) for read in readers]).view(out))
    if len(readers) == 2:
        first, second = readers
        return lambda g: put(g, function(first(g), second(g)))
    return lambda g: put(g, function(*[read(g) for read in readers]))


def wide_product(a: Lanes, b: Lanes, kind: str) -> Lanes:
    """Return the whole product of two integers of type `kind`, as unsigned of twice the width."""
    dtype = lane_dtype(kind)
    wide = np.dtype(dtype.kind + str(2 * dtype.itemsize))
    product: Lanes = a.view(dtype).astype(wide) * b.view(dtype).astype(wide)
    return product.view(f"u{wide.itemsize}")


def high_product(a: Lanes, b: Lanes, kind: str) -> Lanes:
    """Return the upper half of the product of two integers of type `kind`."""
    size = size_of(kind)
    if size < 8:
        return (wide_product(a, b, kind) >> np.array(8 * size, f"u{2 * size}")).astype(f"u{size}")
    # NumPy has no 128 bits: the product is made of those of the halves, whose carries the middle
    # terms hold.
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & mask)
    high: Lanes = a_high * b_high + (middle >> half) + (other >> half)
    if is_signed(kind):
        # The unsigned product counts a negative factor 2**64 too high.
        high = high - np.where(a >> np.uint64(63), b, np.uint64(0))
        high = high - np.where(b >> np.uint64(63), a, np.uint64(0))
    return high


def _multiply(decoder: Decoder, instruction: Instruction, kind: str) -> Op:
    mods, operands = instruction.mods, instruction.operands
    if "wide" in mods:
        result = kind[0] + str(2 * int(kind[1:]))
        product: Callable[[Lanes, Lanes], Lanes] = lambda a, b: wide_product(a, b, kind)  # noqa: E731
    elif "hi" in mods:
        result = kind
        product = lambda a, b: high_product(a, b, kind)  # noqa: E731
    else:
        result = kind
        product = np.multiply
    put = decoder.write(operands[0], result)
    first, second = decoder.read(operands[1], kind), decoder.read(operands[2], kind)
    if instruction.name == "mul":
        return lambda g: put(g, product(first(g), second(g)))
    third = decoder.read(operands[3], result)
    if "sat" in mods:
        return lambda g: put(
            g,
            _add_saturated(product(first(g), second(g)).view("i4"), third(g).view("i4")).view("u4"),
        )
    if "cc" in mods:
        carry = decoder.code.carry

        def run(group: Group) -> None:
            addend = third(group)
            # A sum that is smaller than an addend has wrapped around.
            total = product(first(group), second(group)) + addend
            group.regs[carry] = total < addend
            put(group, total)

        return run
    return lambda g: put(g, product(first(g), second(g)) + third(g))


def _divide(a: Lanes, b: Lanes) -> Lanes:
    if a.dtype.kind == "u":
        # Division by zero has all bits set on the hardware.
        return np.where(b == 0, ~a.dtype.type(0), a // np.maximum(b, a.dtype.type(1)))
    bits = f"u{a.dtype.itemsize}"
    # Divide magnitudes: C and PTX truncate toward zero, but NumPy rounds down. The smallest
    # number's magnitude is right as an unsigned number.
    quotient = _divide(np.abs(a).view(bits), np.abs(b).view(bits))
    negative = (a ^ b) < 0
    signed = np.where(negative, np.negative(quotient), quotient).view(a.dtype)
    return np.where(b == 0, a.dtype.type(-1), signed)


def _remainder(a: Lanes, b: Lanes) -> Lanes:
    return a - _divide(a, b) * b


def _add_saturated(a: Lanes, b: Lanes) -> Lanes:
    total = a + b
    # The sum overflowed if its sign differs from the signs of both operands.
    overflow = ((a ^ total) & (b ^ total)) < 0
    return np.where(overflow, _limit(a), total)


def _sub_saturated(a: Lanes, b: Lanes) -> Lanes:
    total = a - b
    # Only operands with different signs can overflow, and they do if the sign changes.
    overflow = ((a ^ b) & (a ^ total)) < 0
    return np.where(overflow, _limit(a), total)


def _limit(a: Lanes) -> Lanes:
    info = np.iinfo(a.dtype)
    return np.where(a < 0, a.dtype.type(info.min), a.dtype.type(info.max))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "div": _divide,
    "abs": np.abs,
    "neg": np.negative,
}


@computes("rem", undefined=Flow.COMPUTES)
def _rem(decoder: Decoder, instruction: Instruction) -> Op:
    return elementwise(decoder, instruction, decoder.type(instruction), _remainder)


@computes("sad", undefined=Flow.COMPUTES)
def _sad(decoder: Decoder, instruction: Instruction) -> Op:
    def sad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        return c + np.where(a < b, b - a, a - b)

    return elementwise(decoder, instruction, decoder.type(instruction), sad)


@computes("mul24", "mad24", undefined=Flow.COMPUTES)
def _mul24(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    wide = np.dtype("i8" if is_signed(kind) else "u8")
    shift = wide.type(16 if "hi" in instruction.mods else 0)

    def run(a: Lanes, b: Lanes, *c: Lanes) -> Lanes:
        # The product has 48 bits: .lo is its lower 32, .hi its upper (bits 16 to 47).
        product = _low24(a).astype(wide) * _low24(b).astype(wide)
        low = (product >> shift).astype(a.dtype)
        return low + c[0] if c else low

    return elementwise(decoder, instruction, kind, run)


def _low24(a: Lanes) -> Lanes:
    # A signed operand gets its sign from bit 23 this way.
    return (a << a.dtype.type(8)) >> a.dtype.type(8)


@computes("dp4a", "dp2a", undefined=Flow.COMPUTES)
def _dot(decoder: Decoder, instruction: Instruction) -> Op:
    kinds = [word for word in instruction.mods if word in ("s32", "u32")]
    operands = instruction.operands
    put = decoder.write(operands[0], "u32")
    a, b, c = (decoder.read(operand, "u32") for operand in operands[1:])
    a_byte = "i1" if kinds[0] == "s32" else "u1"
    b_byte = "i1" if kinds[1] == "s32" else "u1"
    high = "hi" in instruction.mods

    def run(group: Group) -> None:
        if instruction.name == "dp4a":
            left = packed_elements(a(group), a_byte)
            right = packed_elements(b(group), b_byte)
        else:
            left = packed_elements(a(group), a_byte.replace("1", "2"))
            right = packed_elements(b(group), b_byte)[:, 2 * high : 2 * high + 2]
        put(group, (left * right).sum(axis=1).astype(np.uint32) + c(group))

    return run


def packed_elements(value: Lanes, dtype: str) -> Lanes:
    """Return the small integers in each lane's word, as 64-bit integers."""
    # In 64 bits no sum of four products overflows; the addition of c wraps in 32.
    whole = value if value.flags.c_contiguous else value.copy()
    return whole.view(dtype).reshape(value.shape[0], -1).astype(np.int64)
