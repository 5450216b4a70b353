"""Outputs of a call in a body that share memory with its arguments.

Addresses, sizes and strides are numbers of the call. Each answer is computed without a branch, so
it needs no path of its own in the program.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from culaunch._elementwise.in_bodies import layout_of
from culaunch._function.symbolic.instructions import extreme
from culaunch._launch.arrays.array import array_info

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._launch.launches.recording import RecordingBody

_most = partial(reduce, partial(extreme, "MAX"))
_least = partial(reduce, partial(extreme, "MIN"))


def require_apart(
    body: RecordingBody,
    name: str,
    outputs: Sequence[Any],
    arguments: dict[str, Any],
    *,
    runs_in_place: bool,
) -> None:
    """Check what a call outside of a body checks natively, in csrc/elementwise/overlap.cpp.

    Parameters
    ----------
    arguments : dict of str to array
        By the names of their parameters.
    runs_in_place : bool
        Whether the output may be one of the arguments.
    """
    if body.mode == "abstract":
        return  # arrays without memory
    made = [_View(body, one) for one in outputs]
    read = {parameter: _View(body, one) for parameter, one in arguments.items()}
    for i, output in enumerate(made):
        what = f"{name}: out" if len(made) == 1 else f"{name}: out[{i}]"
        for j, other in enumerate(made[i + 1 :], i + 1):
            text = f"{what} overlaps out[{j}]: give each its own memory"
            _require(body, output.apart(other), text)
        for parameter, argument in read.items():
            if runs_in_place and output.is_same(argument):
                continue
            text = (
                f"{what} overlaps argument {parameter}, which the kernels still read while they "
                "write: pass an out with its own memory"
            )
            terms = output.apart(argument)
            if terms and runs_in_place:
                terms += output.exact(argument)
            _require(body, terms, text)


def _require(body: RecordingBody, terms: list[Any], text: str) -> None:
    """Require that one of the terms is not negative; without terms, nothing is shared."""
    if terms:
        body.check(_most(terms) >= 0, lambda: text, ValueError)


class _View:
    """The bytes of an array: its memory, the first byte, and the steps of its dimensions."""

    def __init__(self, body: RecordingBody, array: Any) -> None:
        self._array = array
        if body.what(array) == "array":
            self.memory, self._first = body.place(array)
            self._item = array.dtype.itemsize
        else:
            info = array_info(array)
            self.memory, self._first = None, info.address
            self._item = info.bits // 8
        self._shape, strides, _ = layout_of(body, array)
        self._steps = [one * self._item for one in strides]
        # How far each dimension reaches from the first byte.
        self._reach = [
            (size - 1) * step for size, step in zip(self._shape, self._steps, strict=True)
        ]

    def is_same(self, other: _View) -> bool:
        """Tell whether both are one array of the body."""
        return self._array is other._array

    def apart(self, other: _View) -> list[Any]:
        """Return numbers that are all negative if memory may be shared.

        The list is empty if one of the arrays is an allocation of the body, and not the other.
        """
        if self.memory is not other.memory:
            return []
        (start, stop), (first, last) = self._span(0), other._span(0)
        terms = [first - stop, start - last]
        # An empty array shares nothing.
        terms += [-_least([1, size]) for size in (*self._shape, *other._shape)]
        # Interleaved arrays, such as columns of a matrix, are disjoint modulo a step.
        for step in (*self._steps, *other._steps):
            width = _most([1, abs(step)])
            (start, stop), (first, last) = self._span(width), other._span(width)
            gap = (first - start) % width
            own, its = stop - start, last - first
            terms.append(_least([width - own, width - its, gap - own, width - gap - its]))
        return terms

    def exact(self, other: _View) -> list[Any]:
        """Return a number that is 0 if both have the same elements in the same places."""
        if len(self._shape) != len(other._shape) or self._item != other._item:
            return []
        distance = abs(self._first - other._first)
        for a, b, own, its in zip(
            self._shape, other._shape, self._steps, other._steps, strict=True
        ):
            distance = distance + abs(a - b) + _least([1, abs(a - 1)]) * abs(own - its)
        return [-distance]

    def _span(self, width: Any) -> tuple[Any, Any]:
        """Return the range of the dimensions that move modulo a width; 0: of all dimensions."""
        start, stop = self._first, self._first + self._item
        for step, reach in zip(self._steps, self._reach, strict=True):
            moves = 1 if type(width) is int and width == 0 else _least([1, abs(step) % width])
            start = start + moves * _least([0, reach])
            stop = stop + moves * _most([0, reach])
        return start, stop
