"""The definition of an instruction: its decoder, and all other facts that the emulator needs.

Each decoder has one of three decorators, which take the other facts. `computes` is for an
instruction that computes a result from registers, `decodes` for one that does more, and
`ends_block` for one that may continue elsewhere. Their parameters have no defaults, so none can be
forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from culaunch._emulator.decode.undefined_bits import BitFlow
from culaunch._emulator.machine.state import End, Op
from culaunch._emulator.ptx.syntax import Immediate, Instruction, Operand

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.ptx.syntax import Label


@dataclass(frozen=True)
class Definition:
    """An instruction of PTX in all its forms; most facts depend on the form."""

    results: Callable[[Instruction], int]
    """Returns the number of leading operands that it writes; it reads the others."""
    effects: bool
    """Whether it accesses memory or other lanes. If so, a guarded form runs only for the lanes
    whose guard is true. If not, it runs for all lanes, and the guard selects the result."""
    waits: Test
    """Tells whether a thread may repeat a form until another thread has acted. A loop with this
    kind of form lets other threads run in between."""
    undefined: Callable[[Instruction], BitFlow] | None
    """Returns how undefined bits of the operands propagate: a `Flow`, or `Moves`. An end of a block
    has none: it depends on its `uses`."""
    decode: DecodeFunction | None = None
    """Makes an operation from it."""
    end: DecodeEnd | None = None
    """Makes the end of a block from it."""
    ends: Test = lambda _: False
    """Tells whether a form ends a block."""
    alone: Test = lambda _: False
    """Tells whether a form must be a block of its own. When a group splits to run it, the parts
    keep the registers that are live at the start of the block, which must not be earlier."""
    changes: int | None = None
    """The operand that it writes a part of, if the operand is a parameter of a function."""
    updates: Test = lambda _: False
    """Tells whether a form reads its first operand as well as writing it."""
    reads_carry: bool = False
    """Whether it reads the condition code."""
    returns: bool = False
    """Whether it reads the results of the function."""
    warp_mask: Mask = lambda _: None
    """Returns the operand with the lanes that wait for each other before it runs, or None."""


class Targets(NamedTuple):
    """The blocks at which a thread can go on after a block."""

    following: int
    block_of: dict[int, int]

    def at(self, label: Label) -> int:
        """Return the block that starts at a label; functions return past the last one."""
        return self.block_of.get(label.target, len(self.block_of))


DecodeFunction: TypeAlias = Callable[["Decoder", Instruction], Op]
DecodeEnd: TypeAlias = Callable[["Decoder", Instruction, Targets], End]
Test: TypeAlias = Callable[[Instruction], bool]
FlowOf: TypeAlias = BitFlow | Callable[[Instruction], BitFlow]
Count: TypeAlias = int | Callable[[Instruction], int]
Mask: TypeAlias = Callable[[Instruction], "Operand | None"]
_T = TypeVar("_T")

# By the first word of the opcode. The modules of `ops` fill it when they are imported, which
# `kernel_code` does for all of them.
INSTRUCTIONS: dict[str, Definition] = {}


ALL_LANES = Immediate(0xFFFFFFFF)


def every_lane(_: Instruction) -> Operand:
    """Return the mask of an instruction for which all lanes of a warp wait for each other."""
    return ALL_LANES


def definition(instruction: Instruction) -> Definition:
    """Return the known facts about an instruction; one that is not emulated has no decoder."""
    return INSTRUCTIONS.get(instruction.name, _NOT_EMULATED)


def computes(
    *names: str, undefined: FlowOf, reads_carry: bool = False
) -> Callable[[DecodeFunction], DecodeFunction]:
    """Define instructions whose first operand is a function of the registers that they read."""
    return decodes(
        *names,
        # A pure computation cannot wait, end a block or access memory: these are all facts about
        # it.
        results=1,
        effects=False,
        waits=False,
        undefined=undefined,
        reads_carry=reads_carry,
    )


def decodes(
    *names: str,
    results: Count,
    effects: bool,
    waits: bool | Test,
    undefined: FlowOf,
    warp_mask: Mask = lambda _: None,
    changes: int | None = None,
    updates: bool | Test = False,
    reads_carry: bool = False,
    end: DecodeEnd | None = None,
    ends: bool | Test = False,
    alone: bool | Test = False,
) -> Callable[[DecodeFunction], DecodeFunction]:
    """Define instructions by their decoders; see `Definition`.

    With `end` those forms for which `ends` is true are the end of a block.
    """

    def register(decode: DecodeFunction) -> DecodeFunction:
        record = Definition(
            decode=decode,
            end=end,
            ends=_each(ends),
            alone=_each(alone),
            results=_each(results),
            changes=changes,
            updates=_each(updates),
            reads_carry=reads_carry,
            effects=effects,
            waits=_each(waits),
            undefined=_each(undefined),
            warp_mask=warp_mask,
        )
        INSTRUCTIONS.update(dict.fromkeys(names, record))
        return decode

    return register


def ends_block(
    *names: str, results: Count, waits: bool, alone: bool | Test, returns: bool = False
) -> Callable[[DecodeEnd], DecodeEnd]:
    """Define instructions that always end a block; see `Definition`."""

    def register(end: DecodeEnd) -> DecodeEnd:
        record = Definition(
            end=end,
            ends=_each(True),
            alone=_each(alone),
            results=_each(results),
            returns=returns,
            # Under a guard the end is a `Conditional`, which splits the group; nothing may run for
            # the others.
            effects=True,
            waits=_each(waits),
            # The `uses` of an end list its inputs, and `Watch.check_end` examines them.
            undefined=None,
        )
        INSTRUCTIONS.update(dict.fromkeys(names, record))
        return end

    return register


def _each(answer: _T | Callable[[Instruction], _T]) -> Callable[[Instruction], _T]:
    """Return a function that returns the answer for each form."""
    return answer if callable(answer) else lambda _: answer


# It writes its first operand, as most instructions do. Reaching it is a fault, so this only decides
# which registers are kept until then.
_NOT_EMULATED = Definition(results=_each(1), effects=False, waits=_each(False), undefined=None)
