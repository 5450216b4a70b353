"""A program's plan, evaluated in Python: on numbers, or on what stands for them.

The extension runs programs. This is for what asks about one: which branch a call takes, and which
shapes it gives where sizes are a framework's symbols.
"""

from __future__ import annotations

import operator
import struct
from typing import TYPE_CHECKING, Any, Protocol

from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.record import Register
from culaunch._function.symbolic.needs import does_raise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culaunch._function.programs.decode import DecodedTree
    from culaunch._function.programs.record import Instruction


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


class UnknownBranchError(Exception):
    """A guard leads to where the program does not go."""

    def __init__(self, block: int, outcome: bool) -> None:
        super().__init__(block, outcome)
        self.block = block
        self.outcome = outcome


class Run:
    """One run of a plan: from guard to guard to the effects.

    A register is computed when something asks for it.

    Attributes
    ----------
    effects : tuple
        Those that the run led to.

    Raises
    ------
    UnknownBranchError
        Where the way on is not in the program.
    """

    def __init__(self, tree: DecodedTree, inputs: Inputs) -> None:
        self._definitions = tree.definitions
        self._inputs = inputs
        self._values: dict[int, Any] = {}
        node = tree.root
        while True:
            # Among instructions that may raise, only the checks of the body matter here. The
            # extension checks at the call whether numbers fit.
            for step in node.steps:
                if step.op.name == "CHECK":
                    self._check(step)
            if node.leaf is not None:
                self.effects = node.leaf.effects
                return
            assert node.guard is not None
            outcome = bool(self.value(node.guard.condition))
            # Guards lead only to later nodes, which the extension checks: this ends.
            following = node.branches.get(outcome)
            if following is None:
                raise UnknownBranchError(tree.blocks.index(node), outcome)
            node = following

    def value(self, register: int) -> Any:
        """Return what is in a register."""
        # Definitions reach far back, one through the other: a stack of our own, not Python's.
        waiting = [register]
        while waiting:
            wanted = waiting[-1]
            if wanted in self._values:
                waiting.pop()
                continue
            step = self._definitions[wanted]
            missing = [one for one in _read(step) if one not in self._values]
            if missing:
                waiting += missing
                continue
            self._values[wanted] = self._result(step)
            waiting.pop()
        return self._values[register]

    def values(self, registers: Iterable[int]) -> tuple[Any, ...]:
        """Return what is in registers."""
        return tuple(self.value(one) for one in registers)

    def _check(self, step: Instruction) -> None:
        condition, exception, *shown = step.operands
        if not self.value(condition):
            raise oc.EXCEPTIONS[exception](str(step.text).format(*self.values(shown)))

    def _result(self, step: Instruction) -> Any:
        name, operands = step.op.name, step.operands
        if name in ("CONST_I", "CONST_B"):
            return bool(operands[0]) if name == "CONST_B" else operands[0]
        if name == "CONST_F":
            return struct.unpack("<d", struct.pack("<q", operands[0]))[0]
        read = _READS.get(name)
        if read is not None:
            return read(self._inputs, *operands)
        # All operands are there: `value` computed them first.
        values = [self._values[one] for one in _read(step)]
        if name == "MATH":
            return oc.math_call(oc.MATH_FUNCTIONS[operands[0]])(*values)
        if name == "RAISES":
            operation, exception, function = operands[:3]
            is_math = oc.BY_NUMBER[operation].name == "MATH"
            compute = oc.math_call(oc.MATH_FUNCTIONS[function]) if is_math else operator.pow
            return does_raise(compute, values, oc.EXCEPTIONS[exception])
        return oc.COMPUTE[name](*values)


def _read(step: Instruction) -> list[Register]:
    """Return the registers that an instruction reads."""
    return [one for one in step.operands if type(one) is Register]


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
