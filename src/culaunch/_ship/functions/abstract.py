"""Runs a program on shapes only, to infer the shapes of a call's results for a framework."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from culaunch._function import AbstractArray
from culaunch._function.arrays.views import dense_strides, is_dense
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Allocate, Return, View
from culaunch._function.tracing.kinds import arrays as arrays_and_places
from culaunch._function.tracing.kinds import arrays_in
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.formats.dtype import DTYPES
from culaunch._ship.functions.evaluate import Array, Inputs, Run

if TYPE_CHECKING:
    from culaunch._function.programs.decode import DecodedTree
    from culaunch._function.tracing.kinds import Kind


def run_abstract(tree: DecodedTree, kind: Kind, values: tuple[Any, ...]) -> Any:
    """Run the program of a kind on shapes.

    Raises
    ------
    UnknownBranchError
        If the program lacks the way that these shapes take.
    TypeError, ValueError, and what else a body checks
        If a check of it fails.
    """
    arrays = list(arrays_in(kind, values))
    # Device 0, and an address that is a multiple of every alignment.
    run = Run(tree, Inputs(values, list(map(_facts, arrays)), 0, current_driver().current_device()))
    return _Result(run, kind, values, arrays).returned()


def kind_of_shapes(values: tuple[Any, ...]) -> Kind:
    """Return the kind of arguments in which an ``AbstractArray`` represents an array."""
    return tuple(map(_entry, values))


def _facts(array: AbstractArray) -> Array:
    strides = strides_of(array)
    if array.strides is None:
        return Array(array.shape, strides, lambda: True, 0)
    # A framework may know more than its numbers show, such as a compiler with symbolic shapes, so
    # ask it.
    dense = array.dense or partial(is_dense, array.shape, strides)
    return Array(array.shape, strides, dense, 0)


def strides_of(array: AbstractArray) -> tuple[Any, ...]:
    """Return the strides of a shape, in elements."""
    return dense_strides(array.shape) if array.strides is None else array.strides


class _Result:
    """The return value of a program, read from the effects of a run."""

    def __init__(
        self, run: Run, kind: Kind, values: tuple[Any, ...], arrays: list[AbstractArray]
    ) -> None:
        self.run = run
        self.values = values
        # A call's arrays keep their origin, because an operator must not return them or views of
        # them.
        self.arrays: dict[int, AbstractArray] = {
            i: AbstractArray(one.shape, one.dtype, strides_of(one), base=place)
            for i, (one, (place, _)) in enumerate(zip(arrays, arrays_and_places(kind), strict=True))
        }

    def returned(self) -> Any:
        for effect in self.run.effects:
            if isinstance(effect, Allocate):
                sizes = self.run.values(effect.shape)
                made = AbstractArray(sizes, DTYPES[effect.dtype], dense_strides(sizes))
                self.arrays[effect.array] = made
            elif isinstance(effect, View):
                sizes, steps = self.run.values(effect.shape), self.run.values(effect.strides)
                base = self.arrays[effect.source].base
                made = AbstractArray(sizes, DTYPES[effect.dtype], steps, base=base)
                self.arrays[effect.array] = made
            elif isinstance(effect, Return):
                return self._value(effect.value)
        raise AssertionError("a program ends with RETURN")

    def _value(self, value: tuple[Any, ...]) -> Any:
        kind, *rest = value
        if kind == oc.V_NONE:
            return None
        if kind in oc.V_NUMBERS:
            return self.run.value(rest[0])
        if kind == oc.V_ARRAY:
            return self.arrays[rest[0]]
        if kind == oc.V_ARGUMENT:
            return _as_it_came(self.values[rest[0]], (rest[0],))
        if kind == oc.V_ELEMENT:
            parameter, element = rest
            return _as_it_came(self.values[parameter][element], (parameter, element))
        if kind == oc.V_CONSTANT:
            return rest[0].value
        if kind == oc.V_DICT:
            return {key: self._value(one) for key, one in rest[0]}
        items = [self._value(one) for one in rest[-1]]
        if kind == oc.V_MADE:
            return rest[0].value(*items)
        return tuple(items) if kind == oc.V_TUPLE else items


def _as_it_came(value: Any, path: tuple[int, ...]) -> Any:
    if not isinstance(value, AbstractArray):
        return value
    return AbstractArray(value.shape, value.dtype, strides_of(value), argument=path)


def _entry(value: Any) -> Any:
    """Return the entry of an abstract argument's kind."""
    if isinstance(value, AbstractArray):
        return ("array", value.dtype.number, len(value.shape), False)
    if type(value) in (list, tuple) and value and isinstance(value[0], AbstractArray):
        return (type(value).__name__, tuple(map(_entry, value)))
    if value is None or type(value) is bool:
        return value
    # A framework's symbolic numbers are neither int nor float. The class name shows the type, so
    # torch need not be imported.
    name = type(value).__name__
    if isinstance(value, int) or name == "SymInt":
        return int
    if isinstance(value, float) or name == "SymFloat":
        return float
    return ("value", value)
