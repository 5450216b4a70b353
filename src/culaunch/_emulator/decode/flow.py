"""Cut a function into basic blocks and decode them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.arithmetic_checks import check_arithmetic
from culaunch._emulator.decode.decoder import Decoder, Unsupported
from culaunch._emulator.decode.instruction import Targets, definition
from culaunch._emulator.decode.liveness import find_live
from culaunch._emulator.decode.operation import decode, refuse
from culaunch._emulator.machine.ends import Conditional, Jump, NotEmulated, Return
from culaunch._emulator.machine.state import Block, Code, End
from culaunch._emulator.machine.warp_sync import lane_bits
from culaunch._emulator.ptx.syntax import (
    Function,
    Immediate,
    Instruction,
    Label,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Symbols
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.ptx.syntax import Operand
    from culaunch._emulator.types import Lanes

_ALL = 0xFFFFFFFF


def build_code(symbols: Symbols, function: Function, base: int) -> Code:
    """Decode `function`; the program counters of its blocks start at `base`."""
    code = Code(function, base)
    decoder = Decoder(symbols, code)
    # Blocks come in the order of the text. The scheduler assumes that the place with the lowest
    # program counter is one where the paths of a branch have not joined yet. It relies on compilers
    # to write the join after the branch.
    starts = _leaders(function)
    index_of = {start: i for i, start in enumerate(starts)}
    instructions = function.instructions
    for i, start in enumerate(starts):
        stop = starts[i + 1] if i + 1 < len(starts) else len(instructions)
        code.blocks.append(Block(i, instructions[start:stop]))
    # Falling off the end is a return.
    code.blocks.append(Block(len(starts), [], end=Return()))
    for block in code.blocks[:-1]:
        _decode_block(decoder, block, index_of)
    # Both need the ends of all blocks, and so come last.
    _mark_waits(code)
    find_live(code)
    return code


def _leaders(function: Function) -> list[int]:
    """Return the indices of the instructions that start blocks, in order."""
    starts = {0}
    for i, instruction in enumerate(function.instructions):
        # Blocks begin at labels, after an end, and where the lanes of a warp wait. A block runs as
        # a whole: nothing jumps into it, and only its last instruction leaves it.
        starts |= {op.target for op in instruction.operands if isinstance(op, Label)}
        known = definition(instruction)
        alone = known.alone(instruction)
        if alone or known.ends(instruction):
            starts.add(i + 1)
        if alone or known.warp_mask(instruction) is not None:
            starts.add(i)
    return sorted(start for start in starts if start < len(function.instructions))


def _decode_block(decoder: Decoder, block: Block, index_of: dict[int, int]) -> None:
    first, last = block.instructions[0], block.instructions[-1]
    following = block.index + 1
    body = block.instructions
    known = definition(last)
    # A block that ends because a label follows simply continues.
    end: End = Jump(following)
    if known.end is not None and known.ends(last):
        try:
            end = known.end(decoder, last, Targets(following, index_of))
        except Exception as error:  # noqa: BLE001 - as in `decode`
            end = NotEmulated(refuse(decoder, last, error))
        body = body[:-1]
        # If its guard is false, a thread continues at the next block.
        if last.guard is not None:
            end = Conditional(decoder.read(last.guard, "pred"), end, following)
    block.end = end
    block.ops = [check_arithmetic(decoder, one, decode(decoder, one)) for one in body]
    # The lanes of a warp wait before the first instruction runs, so the mask is read by itself: it
    # is an operand of the instruction, bound once more.
    mask = definition(first).warp_mask(first)
    if mask is not None:
        try:
            block.sync = _sync_mask(decoder, first, mask)
            block.names_lanes = not (isinstance(mask, Immediate) and mask.bits & _ALL == _ALL)
        except Unsupported as error:
            # No thread waits then. The instruction itself reports the problem when a thread reaches
            # it.
            block.ops[:1] = [refuse(decoder, first, error)]


def _sync_mask(
    decoder: Decoder, instruction: Instruction, mask: Operand
) -> Callable[[Group], Lanes]:
    named = decoder.read(mask, "b32")
    if instruction.guard is None:
        return named
    # A lane whose guard is false waits only for itself.
    guard = decoder.read(instruction.guard, "pred")
    return lambda group: np.where(guard(group), named(group), lane_bits(group))


def _mark_waits(code: Code) -> None:
    """Find the loops in which a thread may wait for a write of another thread.

    A jump back marks a loop. Its body lies between the target and that block, because compilers lay
    out loops in one piece. A superfluous block costs turns, but not the result.
    """
    waiting = [any(definition(i).waits(i) for i in block.instructions) for block in code.blocks]
    for block in code.blocks:
        back = [target for target in block.end.successors if target <= block.index]
        if back and any(waiting[min(back) : block.index + 1]):
            block.waits = True
