"""A program's plan, evaluated in Python: on numbers, or on stand-ins for them.

The extension runs programs. This module answers questions about a program: which branch a call
takes, and which shapes it returns if sizes are a framework's symbols.
"""

from __future__ import annotations

import operator
import struct
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._function.arrays.views import is_dense
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.record import Register
from culaunch._function.symbolic.needs import does_raise
from culaunch._function.tracing.kinds import arrays_in
from culaunch._launch.arrays.array import array_info
from culaunch._launch.devices.driver import current_driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from culaunch._function.programs.decode import DecodedTree
    from culaunch._function.programs.record import Instruction
    from culaunch._function.tracing.kinds import Kind


class Array(NamedTuple):
    """The facts about an array argument that a plan reads."""

    shape: tuple[Any, ...]
    strides: tuple[Any, ...]  # in elements
    is_dense: Callable[[], Any]
    address: int  # no program needs more than this modulo 256


class Inputs(NamedTuple):
    """The values that a plan reads from a call, real or symbolic."""

    numbers: Sequence[Any]
    arrays: Sequence[Array]
    device: int
    queried: int  # the device that attributes are read from

    def attribute(self, number: int) -> int:
        """Return an attribute of the device."""
        return current_driver().attribute(number, self.queried)


def inputs_of_call(kind: Kind, arguments: tuple[Any, ...]) -> Inputs:
    """Return the inputs of real arguments."""
    arrays = [array_info(one) for one in arrays_in(kind, arguments)]
    device = arrays[0].device[1] if arrays else current_driver().current_device()
    return Inputs(
        # A bool is an int in Python, but a separate type of value in a program.
        [
            value if type(value) is bool else _NUMBERS.get(entry, _unchanged)(value)
            for entry, value in zip(kind, arguments, strict=True)
        ],
        [
            Array(one.shape, one.strides, partial(is_dense, one.shape, one.strides), one.address)
            for one in arrays
        ],
        device,
        device,
    )


def _unchanged(value: Any) -> Any:
    return value


_NUMBERS: dict[Any, Callable[[Any], Any]] = {int: operator.index, float: float}


class UnknownBranchError(Exception):
    """A guard leads to a branch that the program does not have."""

    def __init__(self, block: int, outcome: bool) -> None:
        super().__init__(block, outcome)
        self.block = block
        self.outcome = outcome


class Run:
    """One run of a plan: from guard to guard to the effects.

    A register is computed on demand.

    Attributes
    ----------
    effects : tuple
        The effects at the end of the run.

    Raises
    ------
    UnknownBranchError
        If the way on is not in the program.
    """

    def __init__(self, tree: DecodedTree, inputs: Inputs) -> None:
        self._definitions = tree.definitions
        self._inputs = inputs
        self._values: dict[int, Any] = {}
        node = tree.root
        while True:
            # Among instructions that may raise, only the body's checks matter here. In a call, the
            # extension checks whether numbers fit.
            for step in node.steps:
                if step.op.name == "CHECK":
                    self._check(step)
            if node.leaf is not None:
                self.effects = node.leaf.effects
                return
            assert node.guard is not None
            outcome = bool(self.value(node.guard.condition))
            # The extension checks that guards lead only to later nodes, so this loop ends.
            following = node.branches.get(outcome)
            if following is None:
                raise UnknownBranchError(tree.blocks.index(node), outcome)
            node = following

    def value(self, register: int) -> Any:
        """Return the value of a register."""
        # Definitions form long chains, so use an explicit stack instead of recursion.
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
        """Return the values of registers."""
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
        # All operands are known, because `value` computed them first.
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
    "ARG_I": lambda inputs, parameter: inputs.numbers[parameter],
    "ARG_F": lambda inputs, parameter: inputs.numbers[parameter],
    "DIM": lambda inputs, array, axis: inputs.arrays[array].shape[axis],
    "STRIDE": lambda inputs, array, axis: inputs.arrays[array].strides[axis],
    "CONTIGUOUS": lambda inputs, array: inputs.arrays[array].is_dense(),
    "ADDRESS": lambda inputs, array: inputs.arrays[array].address % 256,
    "PLACE": lambda inputs, array: inputs.arrays[array].address,
    "DEVICE": lambda inputs: inputs.device,
    "DEVICE_ATTRIBUTE": lambda inputs, number: inputs.attribute(number),
}
