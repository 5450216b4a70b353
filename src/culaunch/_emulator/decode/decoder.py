"""Bind the operands of a function's instructions to functions that read and write them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from culaunch._emulator.machine.special import special_register
from culaunch._emulator.machine.state import Group
from culaunch._emulator.memory.shared import RANK_SHIFT, name_rank
from culaunch._emulator.ptx.syntax import (
    Address,
    Immediate,
    Negated,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from culaunch._emulator.types import Lanes, is_signed, is_type, lane_dtype, size_of, unsigned

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Code
    from culaunch._emulator.options import CodeChecks
    from culaunch._emulator.ptx.syntax import Function, Instruction, Module

_ADDRESS_BYTES = 4
Reader = Callable[[Group], Lanes]
Writer = Callable[[Group, Lanes], None]


class Decoder:
    """Binds operands of one function; the decoders of instructions ask it for them.

    A reader gives the bits of an operand as unsigned integers exactly as wide as the type asked
    for (booleans for a predicate); a writer takes the same.
    """

    def __init__(self, symbols: Symbols, code: Code) -> None:
        self.symbols = symbols
        self.code = code

    def type(self, instruction: Instruction) -> str:
        """Return the type of an instruction: the last of its modifiers that is one."""
        # The last one is the type of the operands; cvt, set and the like name the result's type
        # before it.
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
            clusters = self.symbols.checks.clusters and size_of(kind) >= _ADDRESS_BYTES
            if clusters and self.symbols.is_shared(operand.name, self.code.function):
                offset = self.constant(operand, kind)
                # An offset that is too large stays as it is, and a fault reports it.
                if not offset[0] >> offset.dtype.type(RANK_SHIFT):
                    return _own_address(offset)
            # A symbol that depends on the frame is computed at run time. Every other symbol is a
            # number by now.
            local = self.code.function.variables.get(operand.name)
            if local is not None and local.space == "local":
                return _local_address(local.offset + operand.offset, unsigned(kind))
        # One array for all groups and all runs, because values that were read are never changed.
        value = self.constant(operand, kind)
        return lambda _: value

    def constant(self, operand: Operand, kind: str) -> Lanes:
        """Return the value of an operand that is known now."""
        if isinstance(operand, Immediate):
            return _immediate(operand, kind)
        if isinstance(operand, Symbol):
            address = self.symbols.address_of(operand.name, self.code.function) + operand.offset
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
        # The register's own type decides the stored width, the instruction's type the computed one.
        have, want = self.code.zeros[slot].dtype, lane_dtype(kind)
        # PTX lets a register be wider than the written value, which is extended, with the sign if
        # the type has one.
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
            # Unsigned arithmetic wraps around, as addresses do: a negative offset is added as its
            # complement.
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
        # Braces of a call may contain a constant, which has no type. A float determines its size,
        # and an integer gets the widest parameter's. The callee's parameter truncates it.
        if isinstance(operand, Immediate):
            return self.read(operand, "b64" if operand.float_size == 8 else "b32")
        return self.read(operand, "b64")

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
        # A register wider than the type is truncated to its low bits. Usually nothing is to be
        # done, and then this costs nothing: it runs for every operand of every instruction.
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


class Symbols(Protocol):
    """The meaning of a function's names in the kernel that runs it.

    `checks` are those that its code includes, and `syntax` is the module.
    """

    checks: CodeChecks
    syntax: Module

    def is_shared(self, name: str, function: Function) -> bool:
        """Tell whether a symbol used in `function` is a shared variable."""
        raise NotImplementedError

    def address_of(self, name: str, function: Function) -> int:
        """Return the address of a symbol used in `function`, in its own state space."""
        raise NotImplementedError

    def code(self, name: str) -> Code:
        """Return the decoded function called `name`."""
        raise NotImplementedError

    def function(self, name: str) -> Function:
        """Return the function called `name` as it was parsed."""
        raise NotImplementedError

    def has_body(self, name: str) -> bool:
        """Tell whether the module defines the function `name`."""
        raise NotImplementedError

    def function_at(self, address: int) -> Callable[[], Code] | None:
        """Return a callable that finds the function with the address `address`."""


class Unsupported(Exception):  # noqa: N818
    """An instruction, or a form of one, that is not emulated."""


def _own_address(offset: Lanes) -> Reader:
    def read(group: Group) -> Lanes:
        return name_rank(offset, group.block_index % group.chunk.launch.cluster.size)

    return read


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
