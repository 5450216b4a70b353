"""Runs a program on shapes only, to infer the shapes of a call's results for a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._function import AbstractArray
from culaunch._function.arrays.views import dense_strides, is_dense
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Allocate, Return, View
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.formats.dtype import DTYPES
from culaunch._ship.call import arrays_in
from culaunch._ship.evaluate import Run

if TYPE_CHECKING:
    from culaunch._function.programs.decode import DecodedTree
    from culaunch._function.tracing.kinds import Kind


class AbstractInputs:
    """The inputs of a plan, of shapes."""

    def __init__(self, arguments: tuple[Any, ...], arrays: list[AbstractArray]) -> None:
        self._arguments = arguments
        self._arrays = arrays

    def number(self, parameter: int) -> Any:
        """Return a number argument."""
        return self._arguments[parameter]

    def dim(self, array: int, axis: int) -> Any:
        """Return a dimension of an array argument."""
        return self._arrays[array].shape[axis]

    def stride(self, array: int, axis: int) -> Any:
        """Return a stride in elements."""
        return strides_of(self._arrays[array])[axis]

    def is_contiguous(self, array: int) -> Any:
        """Tell whether an array is in C order."""
        one = self._arrays[array]
        if one.strides is None:
            return True
        # A framework that knows better than its numbers say, such as a compiler with symbolic
        # shapes, is asked itself.
        return is_dense(one.shape, one.strides) if one.dense is None else one.dense()

    def address(self, _: int) -> int:
        """Return an address that is a multiple of everything."""
        return 0

    def device(self) -> int:
        """Return the ordinal of the device."""
        return 0

    def attribute(self, number: int) -> int:
        """Return an attribute of the device."""
        driver = current_driver()
        return driver.attribute(number, driver.current_device())


def run_abstract(tree: DecodedTree, kind: Kind, values: tuple[Any, ...]) -> Any:
    """Run the program of a kind on shapes.

    Raises
    ------
    UnknownBranchError
        If the program lacks the way that these shapes take.
    TypeError, ValueError, and what else a body checks
        If a check of it fails.
    """
    arrays = arrays_in(kind, values)
    run = Run(tree, AbstractInputs(values, arrays))
    return _Result(run, kind, values, arrays).returned()


def kind_of_shapes(values: tuple[Any, ...]) -> Kind:
    """Return the kind of arguments among which an ``AbstractArray`` stands for an array."""
    return tuple(map(_entry, values))


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
        # Arrays of the call keep where they came from: an operator must not return them or what
        # looks into them.
        places = _places(kind)
        self.arrays: dict[int, AbstractArray] = {
            i: AbstractArray(one.shape, one.dtype, strides_of(one), base=places[i])
            for i, one in enumerate(arrays)
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


def _places(kind: Kind) -> list[tuple[int, ...]]:
    """Return where each array of a call is: the parameter, and the place in its list."""
    found: list[tuple[int, ...]] = []
    for index, entry in enumerate(kind):
        if type(entry) is tuple and entry[0] == "array":
            found.append((index,))
        elif type(entry) is tuple and entry[0] != "value":
            found += [(index, i) for i in range(len(entry[1]))]
    return found


def _entry(value: Any) -> Any:
    """Return the entry of a kind of an abstract argument."""
    if isinstance(value, AbstractArray):
        return ("array", value.dtype.number, len(value.shape), False)
    if type(value) in (list, tuple) and value and isinstance(value[0], AbstractArray):
        return (type(value).__name__, tuple(map(_entry, value)))
    if value is None or type(value) is bool:
        return value
    # A framework's symbolic numbers are neither, and say which they stand for by their class.
    # By the name of the class: torch need not be imported for this.
    name = type(value).__name__
    if isinstance(value, int) or name == "SymInt":
        return int
    if isinstance(value, float) or name == "SymFloat":
        return float
    return ("value", value)
