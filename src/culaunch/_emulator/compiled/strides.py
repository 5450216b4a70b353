"""How a register differs between threads that are neighbors along x.

Threads that run side by side share their scalar work. A register is uniform among them (its
stride is 0), grows by a constant from thread to thread (an index, an address), or varies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.liveness import reads_and_writes
from culaunch._emulator.ops.memory import space_of
from culaunch._emulator.ptx.syntax import (
    Address,
    Immediate,
    Negated,
    Pair,
    Register,
    Special,
    Vector,
)

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Code
    from culaunch._emulator.ptx.syntax import Instruction, Operand

_WORDS = frozenset(("u32", "s32", "b32", "u64", "s64", "b64"))
_UNIFORM = tuple(f"{name}.{axis}" for name in ("ctaid", "nctaid", "ntid", "tid") for axis in "xyz")
# Larger ones would overflow the checks of the C code.
_MOST = 1 << 20


class Strides:
    """The stride of each register; None if it varies."""

    def __init__(self, code: Code) -> None:
        self._code = code
        # Registers start as zeros.
        self._known: dict[int, int | None] = dict.fromkeys(code.blocks[0].live_in, 0)
        instructions = [one for block in code.blocks for one in block.instructions]
        before = None
        while before != self._known:
            before = dict(self._known)
            for instruction in instructions:
                self._follow(instruction)

    def __getitem__(self, slot: int) -> int | None:
        return self._known.get(slot, 0)

    def is_uniform(self, operand: Operand | None) -> bool:
        """Tell whether an operand (or no operand) is the same in all threads."""
        return operand is None or self.of(operand) == 0

    def of(self, operand: Operand) -> int | None:
        """Return the stride of an operand."""
        if isinstance(operand, Register):
            return self[operand.slot]
        if isinstance(operand, Special):
            return 1 if operand.name == "tid.x" else 0 if operand.name in _UNIFORM else None
        if isinstance(operand, Address):
            return self.of(operand.base)
        parts: tuple[Operand, ...] = ()
        if isinstance(operand, Negated):
            parts = (operand.operand,)
        elif isinstance(operand, Pair):
            parts = (operand.first, operand.second)
        elif isinstance(operand, Vector):
            parts = operand.items
        return 0 if all(self.of(part) == 0 for part in parts) else None

    def result(self, instruction: Instruction) -> int | None:
        """Return the stride of an instruction's results."""
        known = definition(instruction)
        if not self.is_uniform(instruction.guard) or (
            known.effects and not self._loads(instruction)
        ):
            return None
        count = known.results(instruction)
        read = instruction.operands[count:]
        if known.updates(instruction) or known.reads_carry:
            read = instruction.operands
        slots = reads_and_writes(instruction, self._code.carry)[0]
        if all(self[slot] == 0 for slot in slots) and all(map(self.is_uniform, read)):
            return 0
        stride = self._affine(instruction) if count == 1 else None
        return stride if stride is not None and abs(stride) < _MOST else None

    def _follow(self, instruction: Instruction) -> None:
        reads, writes = reads_and_writes(instruction, self._code.carry)
        if not writes or any(slot not in self._known for slot in reads):
            return
        # The results of one instruction are alike, so one loop or no loop computes them all.
        found = {self.result(instruction), *(self._known[s] for s in writes if s in self._known)}
        self._known.update(dict.fromkeys(writes, found.pop() if len(found) == 1 else None))

    def _loads(self, instruction: Instruction) -> bool:
        # Each thread has local memory of its own.
        space = space_of(instruction)
        private = space == "local" or (space == "" and self._code.local_bytes)
        return instruction.name in ("ld", "ldu") and not private

    def _affine(self, instruction: Instruction) -> int | None:
        name, mods, operands = instruction.name, instruction.mods, instruction.operands[1:]
        kinds = [word for word in mods if word not in ("lo", "wide", "to")]
        if name == "cvta":
            return self.of(operands[0])
        if not set(kinds) <= _WORDS or any(
            isinstance(operand, Vector | Address) for operand in instruction.operands
        ):
            return None
        have = [self.of(operand) for operand in operands]
        if widened(instruction) is None and name == "cvt":
            return None
        if name in ("mov", "cvt"):
            return have[0]
        if name in ("add", "sub"):
            return _sum(have[0], have[1], -1 if name == "sub" else 1)
        factor = _number(operands[1], kinds[0], "wide" in mods) if len(operands) > 1 else None
        if name == "shl" and factor is not None and 0 <= factor < 20:
            return _sum(0, have[0], 1 << factor)
        if name in ("mul", "mad") and {"lo", "wide"} & set(mods):
            if have[:2] == [0, 0]:
                have[0], factor = 0, 1
            if factor is not None:
                return _sum(have[2] if name == "mad" else 0, have[0], factor)
        return None


def widened(instruction: Instruction) -> tuple[Register, str] | None:
    """Return the register of 32 bits that an instruction extends to 64, and its type.

    The result has a stride only while the register does not wrap around.
    """
    name, mods, operands = instruction.name, instruction.mods, instruction.operands
    extends = mods in (("u64", "u32"), ("s64", "s32")) if name == "cvt" else mods[:1] == ("wide",)
    if name not in ("cvt", "mul", "mad") or not extends or mods[1] not in ("u32", "s32"):
        return None
    return (operands[1], mods[1]) if isinstance(operands[1], Register) else None


def _sum(a: int | None, b: int | None, factor: int) -> int | None:
    return None if a is None or b is None else a + b * factor


def _number(operand: Operand, kind: str, wide: bool) -> int | None:
    if not isinstance(operand, Immediate) or operand.float_size:
        return None
    width = int(kind[1:])
    bits = operand.bits & ((1 << width) - 1)
    if bits >> (width - 1) and not (wide and kind[0] == "u"):
        bits -= 1 << width
    return bits if abs(bits) < _MOST else None
