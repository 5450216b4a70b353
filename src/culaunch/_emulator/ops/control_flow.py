"""bra, brx, call, ret and exit: where a thread continues."""

# All decoders have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.values import counted
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import ends_block
from culaunch._emulator.decode.liveness import read_slots
from culaunch._emulator.machine.calls import Argument, Call, IndirectCall
from culaunch._emulator.machine.ends import Exit, Jump, Return, Switch
from culaunch._emulator.ops.builtins import BUILTINS, BuiltinCall
from culaunch._emulator.ptx.syntax import Label, Register, Symbol, Vector

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.decode.instruction import Targets
    from culaunch._emulator.machine.state import End
    from culaunch._emulator.ptx.syntax import Instruction, Operand


def _is_guarded(instruction: Instruction) -> bool:
    return instruction.guard is not None


@ends_block("bra", results=0, waits=False, alone=False)
def _bra(decoder: Decoder, instruction: Instruction, targets: Targets) -> End:
    label = instruction.operands[0]
    assert isinstance(label, Label)
    return Jump(targets.at(label))


@ends_block("brx", results=0, waits=False, alone=_is_guarded)
def _brx(decoder: Decoder, instruction: Instruction, targets: Targets) -> End:
    operands = instruction.operands
    goes_to = tuple(targets.at(op) for op in operands[1:] if isinstance(op, Label))
    return Switch(decoder.read(operands[0], "u32"), goes_to, read_slots(operands[:1]))


@ends_block("exit", results=0, waits=False, alone=_is_guarded, returns=True)
def _exit(decoder: Decoder, instruction: Instruction, targets: Targets) -> End:
    return Exit()


@ends_block("ret", results=0, waits=False, alone=_is_guarded, returns=True)
def _ret(decoder: Decoder, instruction: Instruction, targets: Targets) -> End:
    return Return()


def _has_results(instruction: Instruction) -> int:
    operands = instruction.operands
    return 1 if len(operands) > 1 and isinstance(operands[0], Vector) else 0


@ends_block("call", results=_has_results, waits=True, alone=True)
def _call(decoder: Decoder, instruction: Instruction, targets: Targets) -> End:
    following = targets.following
    operands: list[Operand] = list(instruction.operands)
    results: tuple[int, ...] = ()
    first = operands[0]
    if isinstance(first, Vector):
        del operands[0]
        # `_` among the results has no slot.
        results = tuple(op.slot for op in first.items if isinstance(op, Register))
    target = operands[0]
    given = operands[1].items if len(operands) > 1 and isinstance(operands[1], Vector) else ()
    arguments = [
        Argument(decoder.argument(operand), operand.slot if isinstance(operand, Register) else -1)
        for operand in given
    ]
    symbols = decoder.symbols
    if isinstance(target, Symbol):
        builtin = BUILTINS.get(target.name)
        # A module may define its own function with this name.
        if builtin is not None and not symbols.has_body(target.name):
            builtin_call = BuiltinCall(
                function=builtin, arguments=arguments, results=results, following=following
            )
            builtin_call.uses = read_slots(given)
            return builtin_call
        name = target.name
        if not symbols.has_body(name):
            raise Unsupported(f"the function {name!r} is not defined")
        # ptxas refuses it. The emulator reports it when the call is reached, like every unsupported
        # instruction.
        wanted = len(symbols.function(name).params)
        if len(arguments) != wanted:
            raise Unsupported(
                f"{name!r} has {counted(wanted, 'parameter')}, but the call passes {len(arguments)}"
            )
        return Call(
            callee=lambda: symbols.code(name),
            arguments=arguments,
            results=results,
            following=following,
        )
    # The callee's declaration determines its parameters, regardless of the call's prototype.
    address = decoder.read(target, "u64")
    call = IndirectCall(
        target=address,
        find=symbols.function_at,
        arguments=arguments,
        results=results,
        following=following,
    )
    call.uses = read_slots((target,))
    return call
