"""The plan of a program, evaluated in Python: on numbers, or on what stands for them.

The extension runs programs. This is for what asks about one: which branch a call takes, and which
shapes it gives where sizes are a framework's symbols.
"""

from __future__ import annotations

import math
import operator
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from culaunch._function import opcodes as oc
from culaunch._function.needs import does_raise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Inputs(Protocol):
    """The values that a plan reads from a call."""

    def number(self, parameter: int) -> Any:
        """Return a number argument."""

    def dim(self, array: int, axis: int) -> Any:
        """Return a dimension of an array argument."""

    def stride(self, array: int, axis: int) -> Any:
        """Return a stride in elements."""

    def is_contiguous(self, array: int) -> Any:
        """Tell whether an array is in C order."""

    def address(self, array: int) -> Any:
        """Return an address, modulo 256."""

    def device(self) -> int:
        """Return the ordinal of the device."""

    def attribute(self, number: int) -> int:
        """Return an attribute of the device."""


class Step(NamedTuple):
    """An instruction: its operation, and the words after it."""

    op: oc.Op
    words: tuple[int, ...]


class Block:
    """Instructions, and the guard or the effects after them."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.guard: tuple[int, int, int] | None = None
        self.effects: list[tuple[int, tuple[int, ...]]] = []


class UnknownBranchError(Exception):
    """A guard leads to where the program does not go."""

    def __init__(self, block: int, outcome: bool) -> None:
        super().__init__(block, outcome)
        self.block = block
        self.outcome = outcome


class Plan:
    """The blocks of a program that the extension has checked.

    Parameters
    ----------
    words : bytes
        Of the program.
    texts : tuple[str, ...]
    """

    def __init__(self, words: bytes, texts: tuple[str, ...]) -> None:
        self.texts = texts
        # Version, registers, arrays given and made, the number of blocks and the size of each, and
        # then the blocks: docs/dev/functions.md. The extension has checked all of it.
        numbers = struct.unpack(f"<{len(words) // 8}q", words)
        count = numbers[4]
        self.arrays = numbers[2]
        self.blocks: list[Block] = []
        # A register -> the instruction that defines it: each is written in one place.
        self.definitions: dict[int, Step] = {}
        at = 5 + count
        for size in numbers[5:at]:
            self.blocks.append(self._block(numbers[at : at + size]))
            at += size

    def run(self, inputs: Inputs) -> Run:
        """Go from guard to guard to the effects.

        Raises
        ------
        UnknownBranchError
            Where the way on is not in the program.
        """
        run = Run(self, inputs)
        run.go()
        return run

    def _block(self, words: tuple[int, ...]) -> Block:
        block = Block()
        records = _records(words)
        for number, operands in records:
            if number == oc.GUARD:
                condition, if_true, if_false = operands
                block.guard = (condition, if_true, if_false)
                break
            if number == oc.EFFECTS:
                block.effects = list(records)
                break
            step = Step(oc.BY_NUMBER[number], operands)
            block.steps.append(step)
            if step.op.result:
                self.definitions[operands[0]] = step
        return block


class Run:
    """One run of a plan. A register is computed when something asks for it.

    Attributes
    ----------
    effects : list
        Those that the run led to: number, operands.
    """

    def __init__(self, plan: Plan, inputs: Inputs) -> None:
        self.plan = plan
        self.inputs = inputs
        self.effects: list[tuple[int, tuple[int, ...]]] = []
        self._values: dict[int, Any] = {}

    def go(self) -> None:
        """Follow the guards, and raise where a check fails."""
        number = 0
        while True:
            block = self.plan.blocks[number]
            # Among instructions that may raise, only the checks of the body matter here. The
            # extension checks at the call whether numbers fit.
            for step in block.steps:
                if step.op.name == "CHECK":
                    self._check(step.words)
            if block.guard is None:
                self.effects = block.effects
                return
            condition, if_true, if_false = block.guard
            outcome = bool(self.value(condition))
            # Blocks lead only to higher numbers, which the extension checks: this ends.
            following = if_true if outcome else if_false
            if following < 0:
                raise UnknownBranchError(number, outcome)
            number = following

    def value(self, register: int) -> Any:
        """Return what is in a register."""
        # Definitions reach far back, one through the other: a stack of our own, not Python's.
        waiting = [register]
        while waiting:
            wanted = waiting[-1]
            if wanted in self._values:
                waiting.pop()
                continue
            step = self.plan.definitions[wanted]
            missing = [one for one in _read(step) if one not in self._values]
            if missing:
                waiting += missing
                continue
            self._values[wanted] = self._result(step)
            waiting.pop()
        return self._values[register]

    def values(self, registers: tuple[int, ...]) -> tuple[Any, ...]:
        """Return what is in registers."""
        return tuple(self.value(one) for one in registers)

    def _check(self, words: tuple[int, ...]) -> None:
        condition, text, exception, _, *shown = words
        if not self.value(condition):
            values = [self.value(one) for one in shown]
            raise oc.EXCEPTIONS[exception](self.plan.texts[text].format(*values))

    def _result(self, step: Step) -> Any:
        name, words = step.op.name, step.words[1:]
        if name in ("CONST_I", "CONST_B"):
            return bool(words[0]) if name == "CONST_B" else words[0]
        if name == "CONST_F":
            return struct.unpack("<d", struct.pack("<q", words[0]))[0]
        read = _READS.get(name)
        if read is not None:
            return read(self.inputs, *words)
        # All operands are there: `value` computed them first.
        values = [self._values[one] for one in _read(step)]
        if name == "MATH":
            return oc.math_call(oc.MATH_FUNCTIONS[words[0]])(*values)
        if name == "RAISES":
            operation, exception, function = words[:3]
            is_math = oc.BY_NUMBER[operation].name == "MATH"
            compute = oc.math_call(oc.MATH_FUNCTIONS[function]) if is_math else operator.pow
            return does_raise(compute, values, oc.EXCEPTIONS[exception])
        return _OPERATIONS[name](*values)


def _read(step: Step) -> list[int]:
    """Return the registers that an instruction reads."""
    letters = step.op.operands
    return [
        word
        for letter, word in zip(letters, step.words, strict=False)
        if letter in "ifb" or (letter == "g" and word >= 0)
    ]


def _records(words: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    at = 0
    while at < len(words):
        length = words[at] >> 32
        yield words[at] & 0xFFFFFFFF, words[at + 1 : at + length]
        at += length


def _next_power_of_2(x: Any) -> Any:
    return 1 << (x - 1).bit_length() if x > 1 else 1


def _select(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


_READS: dict[str, Callable[..., Any]] = {
    "ARG_I": lambda inputs, parameter: inputs.number(parameter),
    "ARG_F": lambda inputs, parameter: inputs.number(parameter),
    "DIM": lambda inputs, array, axis: inputs.dim(array, axis),
    "STRIDE": lambda inputs, array, axis: inputs.stride(array, axis),
    "CONTIGUOUS": lambda inputs, array: inputs.is_contiguous(array),
    "ADDRESS": lambda inputs, array: inputs.address(array),
    "DEVICE": lambda inputs: inputs.device(),
    "DEVICE_ATTRIBUTE": lambda inputs, number: inputs.attribute(number),
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt,
    "GE": operator.ge,
}  # fmt: skip
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "FLOORDIV": operator.floordiv,
    "MOD": operator.mod, "POW": operator.pow, "NEG": operator.neg, "ABS": abs, "MIN": min,
    "MAX": max, "SHL": operator.lshift, "SHR": operator.rshift, "AND": operator.and_,
    "OR": operator.or_, "XOR": operator.xor, "INVERT": operator.invert,
    "CEILDIV": lambda x, y: -(-x // y), "NEXT_POW2": _next_power_of_2,
    "TRUEDIV": operator.truediv, "BIT_LENGTH": lambda x: x.bit_length(),
    "NOT": operator.not_, "AND_B": lambda x, y: x and y, "OR_B": lambda x, y: x or y,
    "XOR_B": lambda x, y: bool(x) != bool(y), "ISNAN": math.isnan, "ISINF": math.isinf,
    "ISFINITE": math.isfinite, "I2F": float, "FLOOR": math.floor, "CEIL": math.ceil,
    "TRUNC": math.trunc, "ROUND": round, "B2I": int,
    **dict.fromkeys(("SELECT_I", "SELECT_F", "SELECT_B"), _select),
    **{prefix + name: made for prefix in ("", "F", "IF") for name, made in _COMPARISONS.items()},
}  # fmt: skip
_OPERATIONS |= {
    f"F{name}": _OPERATIONS[name]
    for name in ("ADD", "SUB", "MUL", "FLOORDIV", "MOD", "POW", "NEG", "ABS", "MIN", "MAX")
}
_OPERATIONS["FDIV"] = operator.truediv
