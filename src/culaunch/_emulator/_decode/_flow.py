"""Cut a function into basic blocks and decode them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator._decode._decoder import Decoder, Unsupported
from culaunch._emulator._decode._liveness import find_live, read_slots
from culaunch._emulator._decode._operation import decode, refuse
from culaunch._emulator._ops import _builtins
from culaunch._emulator._ops._barrier import decode_barrier, is_barrier
from culaunch._emulator._ops._warp import warp_mask
from culaunch._emulator._ptx._syntax import (
    Function,
    Immediate,
    Instruction,
    Label,
    Register,
    Symbol,
    Vector,
)
from culaunch._emulator._simt._calls import Argument, Call, IndirectCall
from culaunch._emulator._simt._ends import Conditional, Exit, Jump, Refusal, Return, Switch
from culaunch._emulator._simt._state import Block, Code, End
from culaunch._emulator._simt._warp_sync import lane_bits

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator._decode._decoder import Symbols
    from culaunch._emulator._ptx._syntax import Operand
    from culaunch._emulator._simt._state import Group
    from culaunch._emulator._types import Lanes

__all__ = ["build_code"]

_ALL = 0xFFFFFFFF
_ENDS = {"bra", "brx", "ret", "exit", "call"}
_WAITING_LOADS = {"volatile", "acquire", "relaxed", "mmio"}


def build_code(program: Symbols, function: Function, base: int) -> Code:
    """Decode `function`; its program counters start at `base`."""
    code = Code(function, base)
    decoder = Decoder(program, code)
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
    _mark_waits(code)
    find_live(code)
    return code


def _leaders(function: Function) -> list[int]:
    """Return the indices of the instructions that start blocks, in order."""
    starts = {0}
    for i, instruction in enumerate(function.instructions):
        starts |= {op.target for op in instruction.operands if isinstance(op, Label)}
        ends = instruction.name in _ENDS or is_barrier(instruction)
        if ends or _is_warp_barrier(instruction):
            starts.add(i + 1)
        guarded = ends and instruction.guard is not None and instruction.name != "bra"
        # An indirect call splits the group before it runs: it must find its own registers.
        if guarded or instruction.name == "call" or is_barrier(instruction):
            starts.add(i)
        if warp_mask(instruction) is not None:
            starts.add(i)
    return sorted(start for start in starts if start < len(function.instructions))


def _decode_block(decoder: Decoder, block: Block, index_of: dict[int, int]) -> None:
    first, last = block.instructions[0], block.instructions[-1]
    following = block.index + 1
    body = block.instructions
    end: End | None
    try:
        end = _decode_end(decoder, last, following, index_of)
    except Exception as error:  # noqa: BLE001 - as in Decoder.decode
        end = Refusal(refuse(last, error))
    if end is None:
        end = Jump(following)
    else:
        body = body[:-1]
        if last.guard is not None:
            end = Conditional(decoder.read(last.guard, "pred"), end, following)
    block.end = end
    block.ops = [decode(decoder, instruction) for instruction in body]
    mask = warp_mask(first)
    if mask is not None:
        try:
            block.sync = _sync_mask(decoder, first, mask)
            block.names_lanes = not (isinstance(mask, Immediate) and mask.bits & _ALL == _ALL)
        except Unsupported as error:
            block.ops[:1] = [refuse(first, error)]


def _sync_mask(
    decoder: Decoder, instruction: Instruction, mask: Operand
) -> Callable[[Group], Lanes]:
    named = decoder.read(mask, "b32")
    if instruction.guard is None:
        return named
    # A lane whose guard is false waits for none but itself.
    guard = decoder.read(instruction.guard, "pred")
    return lambda group: np.where(guard(group), named(group), lane_bits(group))


def _decode_end(
    decoder: Decoder, instruction: Instruction, following: int, index_of: dict[int, int]
) -> End | None:
    name, operands = instruction.name, instruction.operands
    past = following if not index_of else len(index_of)
    if name == "bra":
        label = operands[0]
        assert isinstance(label, Label)
        return Jump(index_of.get(label.target, past))
    if name == "brx":
        targets = [op.target for op in operands[1:] if isinstance(op, Label)]
        index = decoder.read(operands[0], "u32")
        goes_to = tuple(index_of.get(target, past) for target in targets)
        return Switch(index, goes_to, read_slots(operands[:1]))
    if name == "exit":
        return Exit()
    if name == "ret":
        return Return()
    if is_barrier(instruction):
        return decode_barrier(decoder, instruction, following)
    if name == "call":
        return _decode_call(decoder, instruction, following)
    return None


def _decode_call(decoder: Decoder, instruction: Instruction, following: int) -> End:
    operands: list[Operand] = list(instruction.operands)
    results: tuple[int, ...] = ()
    first = operands[0]
    if isinstance(first, Vector):
        del operands[0]
        results = tuple(op.slot for op in first.items if isinstance(op, Register))
    target = operands[0]
    given = operands[1].items if len(operands) > 1 and isinstance(operands[1], Vector) else ()
    arguments = [
        Argument(decoder.argument(operand), operand.slot if isinstance(operand, Register) else -1)
        for operand in given
    ]
    program = decoder.symbols
    if isinstance(target, Symbol):
        builtin = _builtins.BUILTINS.get(target.name)
        if builtin is not None and not program.has_body(target.name):
            builtin_call = _builtins.BuiltinCall(builtin, arguments, results, following)
            builtin_call.uses = read_slots(given)
            return builtin_call
        name = target.name
        if not program.has_body(name):
            raise Unsupported(f"the function {name!r} is not defined")
        wanted = len(program.function(name).params)
        if len(arguments) != wanted:
            raise Unsupported(f"{name!r} has {wanted} parameters, and is given {len(arguments)}")
        return Call(lambda: program.code(name), arguments, results, following)
    call = IndirectCall(
        decoder.read(target, "u64"), program.function_at, arguments, results, following
    )
    call.uses = read_slots((target,))
    return call


def _is_warp_barrier(instruction: Instruction) -> bool:
    return instruction.name == "bar" and "warp" in instruction.mods


def _mark_waits(code: Code) -> None:
    """Find the loops in which a thread may wait for what another one writes."""
    waiting = [any(_may_wait(i) for i in block.instructions) for block in code.blocks]
    for block in code.blocks:
        back = [target for target in block.end.successors if target <= block.index]
        if back and any(waiting[min(back) : block.index + 1]):
            block.waits = True


def _may_wait(instruction: Instruction) -> bool:
    name, mods = instruction.name, instruction.mods
    if name == "ld":
        return not _WAITING_LOADS.isdisjoint(mods)
    return name in ("atom", "nanosleep", "call") or (
        name == "mbarrier" and not {"try_wait", "test_wait"}.isdisjoint(mods)
    )
