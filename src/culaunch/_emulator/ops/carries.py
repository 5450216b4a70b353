"""Integer arithmetic of more words than one: the flag that carries from each to the next."""

# NumPy types the operators of arrays of any dtype as Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.decode.instruction import computes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.ops.integer import high_product
from culaunch._emulator.types import unsigned

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction


@computes("addc", "subc", "madc", undefined=Flow.COMPUTES, reads_carry=True)
def _with_carry(decoder: Decoder, instruction: Instruction) -> Op:
    kind = decoder.type(instruction)
    operands, mods = instruction.operands, instruction.mods
    put = decoder.write(operands[0], kind)
    readers = [decoder.read(operand, kind) for operand in operands[1:]]
    dtype = unsigned(kind)
    carry, sets = decoder.code.carry, "cc" in mods

    def run(group: Group) -> None:
        incoming = group.regs[carry].astype(dtype)
        values = [read(group) for read in readers]
        if instruction.name == "subc":
            # The adder's view, as `carry_out` explains: a - b is a + ~b + 1, and the carry stands
            # for the 1.
            values[1] = ~values[1]
        elif instruction.name == "madc":
            product = (
                high_product(values[0], values[1], kind) if "hi" in mods else values[0] * values[1]
            )
            values = [product, values[2]]
        partial = values[0] + values[1]
        total = partial + incoming
        # Either of the two additions may carry, never both.
        outgoing = (partial < values[0]) | (total < partial)
        put(group, total)
        if sets:
            group.regs[carry] = outgoing

    return run


def carry_out(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode add.cc and sub.cc.

    CC.CF is the carry out of an adder, and a subtraction adds the complement: after it the flag
    says that nothing was borrowed, and subc borrows where it is 0. The ISA speaks of a borrow,
    which is the same as long as sub.cc and subc are used together. Compilers also mix sub.cc with
    addc and madc (every 128-bit division does), and there a GPU has the adder's carry.
    """
    kind = decoder.type(instruction)
    operands = instruction.operands
    put = decoder.write(operands[0], kind)
    first, second = decoder.read(operands[1], kind), decoder.read(operands[2], kind)
    carry = decoder.code.carry

    def run(group: Group) -> None:
        a, b = first(group), second(group)
        if instruction.name == "add":
            total = a + b
            group.regs[carry] = total < a
        else:
            total = a - b
            group.regs[carry] = a >= b
        put(group, total)

    return run
