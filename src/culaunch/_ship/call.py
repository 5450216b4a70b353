"""The values that a plan reads from the arguments of a call."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from culaunch._function.arrays.views import is_dense
from culaunch._launch.arrays.array import array_info
from culaunch._launch.devices.driver import current_driver

if TYPE_CHECKING:
    from culaunch._function.tracing.kinds import Kind


class CallInputs:
    """The inputs of a plan, of real arguments."""

    def __init__(self, kind: Kind, arguments: tuple[Any, ...]) -> None:
        self._kind = kind
        self._arguments = arguments
        self._arrays = [array_info(one) for one in arrays_in(kind, arguments)]

    def number(self, parameter: int) -> Any:
        """Return a number argument."""
        value = self._arguments[parameter]
        # An int to Python, and a value of its own to a program.
        if type(value) is bool:
            return value
        is_float = self._kind[parameter] is float
        return float(value) if is_float else operator.index(value)

    def dim(self, array: int, axis: int) -> int:
        """Return a dimension of an array argument."""
        return self._arrays[array].shape[axis]

    def stride(self, array: int, axis: int) -> int:
        """Return a stride in elements."""
        return self._arrays[array].strides[axis]

    def is_contiguous(self, array: int) -> bool:
        """Tell whether an array is in C order."""
        one = self._arrays[array]
        return is_dense(one.shape, one.strides)

    def address(self, array: int) -> int:
        """Return an address, modulo 256."""
        # No program asks for more than a multiple of 256.
        return self._arrays[array].address % 256

    def device(self) -> int:
        """Return the ordinal of the device."""
        if self._arrays:
            return self._arrays[0].device[1]
        return current_driver().current_device()

    def attribute(self, number: int) -> int:
        """Return an attribute of the device."""
        return current_driver().attribute(number, self.device())


def arrays_in(kind: Kind, arguments: tuple[Any, ...]) -> list[Any]:
    """Return the arrays of a call, in the order of a program."""
    found: list[Any] = []
    for entry, value in zip(kind, arguments, strict=True):
        if type(entry) is tuple and entry[0] != "value":
            found += [value] if entry[0] == "array" else value
    return found
