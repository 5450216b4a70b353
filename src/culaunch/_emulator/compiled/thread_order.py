"""Whether a kernel may depend on the order of its threads, or its blocks on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.decode.liveness import reads_and_writes
from culaunch._emulator.ptx.syntax import Register
from culaunch._emulator.types import is_float

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Code
    from culaunch._emulator.ptx.syntax import Instruction

# Of integers: these give the same word in any order.
_COMMUTE = frozenset(("add", "min", "max", "and", "or", "xor"))
_COMMUNICATE = frozenset(("atom", "red", "fence", "membar"))
_STRONG = frozenset(("volatile", "relaxed", "acquire", "release", "mmio"))
SHARED = frozenset(("shared", "shared::cta"))


def ordered_access(code: Code, besides: frozenset[str] = frozenset()) -> str:
    """Return the opcode of an access whose effect may depend on the order of threads, or "".

    Accesses whose instruction names one of the spaces `besides` do not count.

    Programs without a race have two kinds of them. Atomics may not commute, or their old value is
    read. In code from before Volta, the lanes of a warp exchange values by volatile accesses. The
    NumPy engine runs lanes together, and the compiled engine runs one after the other.
    """
    instructions = [one for block in code.blocks for one in block.instructions]
    read = {slot for one in instructions for slot in reads_and_writes(one, code.carry)[0]}
    for one in instructions:
        if not besides.isdisjoint(one.mods):
            continue
        if "volatile" in one.mods or (one.name in ("atom", "red") and not _commutes(one, read)):
            return one.opcode
    return ""


def communicating_access(code: Code) -> str:
    """Return the opcode of an access by which blocks may communicate, or "".

    A program without a race has no other way, and accesses to shared memory stay in a block.
    """
    for block in code.blocks:
        for one in block.instructions:
            strong = one.name in _COMMUNICATE or not _STRONG.isdisjoint(one.mods)
            if strong and SHARED.isdisjoint(one.mods):
                return one.opcode
    return ""


def reads_textures(code: Code) -> bool:
    """Tell whether a kernel reads textures."""
    return any(one.name == "tex" for block in code.blocks for one in block.instructions)


def _commutes(instruction: Instruction, read: set[int]) -> bool:
    mods = instruction.mods
    if not _COMMUTE & set(mods) or any(is_float(word) for word in mods):
        return False
    target = instruction.operands[0] if instruction.name == "atom" else None
    return not isinstance(target, Register) or target.slot not in read
