"""Turn the instructions of a function into blocks of bound operations."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator._fault import NOT_SUPPORTED, Fault
from culaunch._emulator._ops._registry import DECODERS, EFFECTS, Unsupported
from culaunch._emulator._ptx._syntax import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from culaunch._emulator._simt._group import Group
from culaunch._emulator._simt._liveness import reads_and_writes
from culaunch._emulator._simt._special import special_register
from culaunch._emulator._types import Lanes, is_signed, is_type, lane_dtype, size_of, unsigned

if TYPE_CHECKING:
    from culaunch._emulator._program import Program
    from culaunch._emulator._simt._code import Code, Op

__all__ = ["Decoder", "Reader", "Writer"]

Reader = Callable[[Group], Lanes]
Writer = Callable[[Group, Lanes], None]


class Decoder:
    """Decodes the instructions of one function; the decoders of `_ops` ask it for operands.

    A reader gives the bits of an operand as unsigned integers exactly as wide as the type asked
    for (booleans for a predicate); a writer takes the same.
    """

    def __init__(self, program: Program, code: Code) -> None:
        self.program = program
        self.code = code
        self.slots = code.function.slots

    def decode(self, instruction: Instruction) -> Op:
        """Return the operation of an instruction that is not a branch."""
        try:
            builder = DECODERS.get(instruction.name)
            if builder is None:
                raise Unsupported
            op = builder(self, instruction)
        except Exception as error:  # noqa: BLE001 - which form a decoder stumbles over is not known
            return self.refuse(instruction, error)
        if instruction.guard is None:
            return op
        return self._guarded(instruction, op)

    def refuse(self, instruction: Instruction, error: Exception) -> Op:
        """Return an operation that says that `instruction` is not emulated, when it is reached.

        An `error` that is not `Unsupported` is a form that the decoder does not know, which it
        stumbled over, or a defect of the decoder: the message has it, and it is the fault's cause.
        """
        what = f"the instruction {instruction.opcode} is not emulated"
        if isinstance(error, Unsupported):
            message = f"{what}: {error}" if str(error) else what
        else:
            message = f"{what} in this form ({type(error).__name__} in its decoder: {error})"

        def run(group: Group) -> None:
            raise Fault(NOT_SUPPORTED, message, lane=group.lane_at(0)) from error

        return run

    def type(self, instruction: Instruction) -> str:
        """Return the type of an instruction: the last of its modifiers that is one."""
        for word in reversed(instruction.mods):
            if is_type(word):
                return word
        raise Unsupported(f"{instruction.opcode} has no type")

    def read(self, operand: Operand, kind: str) -> Reader:
        """Return a reader of `operand` as type `kind`."""
        if isinstance(operand, Register):
            return self._read_register(operand, kind)
        if isinstance(operand, Negated):
            inner = self.read(operand.operand, kind)
            return lambda group: ~inner(group)
        if isinstance(operand, Special):
            return self._read_special(operand, kind)
        if isinstance(operand, Symbol):
            local = self.code.function.variables.get(operand.name)
            if local is not None and local.space == "local":
                return _local_address(local.offset + operand.offset, unsigned(kind))
        value = self.constant(operand, kind)
        return lambda _: value

    def constant(self, operand: Operand, kind: str) -> Lanes:
        """Return the value of an operand that is known now."""
        if isinstance(operand, Immediate):
            return _immediate(operand, kind)
        if isinstance(operand, Symbol):
            address = self.program.address_of(operand.name, self.code.function) + operand.offset
            return _integer(address, unsigned(kind))
        raise Unsupported(f"operand {operand!r} where a constant is needed")

    def write(self, operand: Operand, kind: str) -> Writer:
        """Return a writer of `operand`, given values of type `kind`."""
        if isinstance(operand, Sink):
            return lambda _group, _value: None
        if not isinstance(operand, Register):
            raise Unsupported(f"a result cannot go to {operand!r}")
        self._require_same_kind(operand, kind)
        slot = operand.slot
        have, want = self.code.zeros[slot].dtype, lane_dtype(kind)
        if kind == "pred" or have.itemsize == want.itemsize:

            def put(group: Group, value: Lanes) -> None:
                group.regs[slot] = value

            return put
        if is_signed(kind):
            return lambda group, value: group.regs.__setitem__(slot, value.view(want).astype(have))
        return lambda group, value: group.regs.__setitem__(slot, value.astype(have))

    def address(self, operand: Operand) -> Reader:
        """Return a reader of the address that ``[base + offset]`` means."""
        if not isinstance(operand, Address):
            raise Unsupported("an address is needed")
        base, offset = operand.base, operand.offset
        if isinstance(base, Register):
            slot = base.slot
            if not offset:
                return lambda group: group.regs[slot]
            step = _integer(offset, self.code.zeros[slot].dtype)
            return lambda group: group.regs[slot] + step
        if isinstance(base, Symbol):
            return self.read(Symbol(base.name, base.offset + offset), "u64")
        value = self.constant(base, "u64") + np.uint64(offset & (2**64 - 1))
        return lambda _: value

    def vector(self, operand: Operand) -> tuple[Operand, ...]:
        """Return the items of an operand in braces, or the operand itself as the only one."""
        return operand.items if isinstance(operand, Vector) else (operand,)

    def argument(self, operand: Operand) -> Reader:
        """Return a reader of an argument of a call: a register or a parameter, whole."""
        if isinstance(operand, Register):
            slot = operand.slot
            return lambda group: group.regs[slot]
        if isinstance(operand, Immediate):
            return self.read(operand, "b64" if operand.float_size == 8 else "b32")
        return self.read(operand, "b64")

    def is_register(self, operand: Operand, kind: str) -> bool:
        """Tell whether `operand` is a register declared with type `kind`."""
        return isinstance(operand, Register) and operand.type == kind

    def _require_same_kind(self, operand: Register, kind: str) -> None:
        if (operand.type == "pred") != (kind == "pred"):
            raise Unsupported(f"a register of type .{operand.type} where a .{kind} is needed")

    def _read_register(self, operand: Register, kind: str) -> Reader:
        slot = operand.slot
        if operand.type == "param":
            raise Unsupported("the address of a device function's parameter")
        self._require_same_kind(operand, kind)
        have = self.code.zeros[slot].dtype
        if kind == "pred":
            return lambda group: group.regs[slot]
        want = unsigned(kind)
        if have == want:
            return lambda group: group.regs[slot]
        return lambda group: group.regs[slot].astype(want)

    def _read_special(self, operand: Special, kind: str) -> Reader:
        found = special_register(operand.name)
        if found is None:
            raise Unsupported(f"the special register %{operand.name}")
        own, read = found
        want = unsigned(kind)
        if want == unsigned(own):
            return read
        return lambda group: read(group).astype(want)

    def _guarded(self, instruction: Instruction, op: Op) -> Op:
        assert instruction.guard is not None
        guard = self.read(instruction.guard, "pred")
        plain = Instruction(
            instruction.name, instruction.mods, instruction.operands, instruction.line
        )
        reads, writes = reads_and_writes(plain, self.code.carry)
        # A narrowed group has only these registers; a parameter is changed in place, so read.
        slots = tuple({*reads, *writes})
        effects = instruction.name in EFFECTS

        def run(group: Group) -> None:
            chosen = guard(group)
            if chosen.shape[0] == 1:
                if chosen[0]:
                    op(group)
                return
            if effects:
                index = np.flatnonzero(chosen)
                if index.shape[0] == group.n:
                    op(group)
                elif index.shape[0]:
                    part = group.narrow(index, slots)
                    op(part)
                    for slot in writes:
                        old = group.regs[slot]
                        new: Any = np.empty((group.n, *old.shape[1:]), old.dtype)
                        new[...] = old
                        new[index] = part.regs[slot]
                        group.regs[slot] = new
                return
            before = [group.regs[slot] for slot in writes]
            op(group)
            for slot, old in zip(writes, before, strict=True):
                group.regs[slot] = np.where(chosen, group.regs[slot], old)

        return run


def _local_address(offset: int, dtype: np.dtype[Any]) -> Reader:
    # A frame's variables are at the same place in all lanes that are in it together.
    return lambda group: np.array([group.local_base + offset], dtype)


def _immediate(operand: Immediate, kind: str) -> Lanes:
    bits = operand.bits
    if kind == "pred":
        return np.array([bool(bits)])
    if operand.float_size and kind in ("f32", "f64") and operand.float_size != size_of(kind):
        # 0f... where f64 is wanted, or a decimal literal where f32 is.
        source, target = ("<f", "<d") if operand.float_size == 4 else ("<d", "<f")
        value = struct.unpack(source, bits.to_bytes(operand.float_size, "little"))[0]
        bits = int.from_bytes(struct.pack(target, value), "little")
    return _integer(bits, unsigned(kind))


def _integer(value: int, dtype: np.dtype[Any]) -> Lanes:
    return np.array([value & ((1 << (8 * dtype.itemsize)) - 1)], dtype)
