"""One call of a function in a JAX program: its inputs and outputs, derived from shapes."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._core import XlaArray
from culaunch._function import AbstractArray, DType
from culaunch._function.arrays.views import dense_strides
from culaunch._jax.package import TARGET, jax_package
from culaunch._jax.texts import ARRAY, VALUE, call_text
from culaunch._jax.varying import axes_of, varying
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.formats.dtype import find_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._function.programs.program import Tree

Shape = tuple[tuple[int, ...], DType]


class Plan:
    """A call of one function with arrays of certain shapes and types, and certain numbers.

    Parameters
    ----------
    function : Function
        A function, or a function of a library.
    values : tuple
        One for each parameter. Only the shape and the type of a stand-in for an array count.
    arrays : tuple of int
        The kind of each array, as :func:`call_text` uses it.
    shapes : tuple
        Shape and type of each array.

    Attributes
    ----------
    returned : int
        How many results of XLA are arrays that the function makes. Those that it writes follow.
    tree : Tree or None
        The trace; None for a function of a library.

    Raises
    ------
    TypeError, ValueError
        The same as for a call of the function.
    """

    def __init__(
        self, function: Any, values: tuple[Any, ...], arrays: tuple[int, ...],
        shapes: tuple[Shape, ...],
    ) -> None:  # fmt: skip
        self.name: str = function.__name__
        self.names: tuple[str, ...] = function.declaration.names
        self._arrays = arrays
        # The body runs twice: traced, to find how its kernels use the arrays, and on shapes only,
        # to find its results. A library's function already records the former.
        traced = filled(values, arrays, [_traced(*one) for one in shapes])
        self.tree: Tree | None = None
        if function._has_body:
            kind = function._kind(traced)
            self.tree = untraced(function._learn)(traced, kind)
        given = filled(values, arrays, [AbstractArray(shape, kind) for shape, kind in shapes])
        args, keywords = function.declaration.as_passed(given)
        self.result = function.abstract(*args, **keywords)
        # XLA knows arrays by their place in one flat list; bodies know them by parameter and item.
        self._places = _places(arrays)
        self.writes = self._written_places(function)
        self._made: list[AbstractArray] = []
        self._collect(self.result)
        self.returned = len(self._made)
        self.text = call_text(function, values, arrays, self.writes)
        # XLA's results: the new arrays, then the written arrays, which share the memory of their
        # arguments.
        self.outputs = [(one.shape, one.dtype) for one in self._made]
        self.outputs += [shapes[i] for i in self.writes]
        self._extra = self._not_returned()

    def ffi_call(self, vmap: str | None) -> Any:
        """Return the callable of a JAX program: a function of the arrays."""
        jax = jax_package()
        results = [jax.ShapeDtypeStruct(shape, _jax_dtype(self.name, kind))
                   for shape, kind in self.outputs]  # fmt: skip
        # The result shares the argument's memory. XLA copies that memory first if it is still
        # needed.
        aliases = {one: self.returned + i for i, one in enumerate(self.writes)}
        call = jax.ffi.ffi_call(
            TARGET,
            results,
            vmap_method=vmap,
            input_output_aliases=aliases or None,
            # JAX would remove a call without results as unused.
            has_side_effect=not results,
        )

        def called(*arrays: Any) -> tuple[Any, ...]:
            axes = axes_of(jax, arrays)
            return tuple(varying(jax, one, axes) for one in call(*arrays, call=self.text))

        return called

    def rebuild(self, outputs: Sequence[Any], arrays: Sequence[Any]) -> Any:
        """Return the function's result, made from XLA's results and the input arrays."""
        written = {one: outputs[self.returned + i] for i, one in enumerate(self.writes)}
        made = iter(outputs)
        result = self._rebuilt(self.result, made, written, arrays)
        if not self._extra:
            return result
        new = [written[i] for i, _ in self._extra]
        if self.result is None and len(new) == 1:
            return new[0]
        # JAX arrays do not change, so a result that is written but not returned would be lost.
        names = [name for _, name in self._extra]
        if self.result is not None:
            names, new = ["result", *names], [result, *new]
        return namedtuple(f"{self.name}_results", names, rename=True)(*new)

    @property
    def written_names(self) -> list[str]:
        """The parameters whose arrays it writes."""
        return list(dict.fromkeys(self.names[self._places[i][0]] for i in self.writes))

    @property
    def is_functional(self) -> bool:
        """Whether every returned array is a new one."""
        return not self.writes and self.returned == len(list(_leaves(self.result)))

    # ---- analysis

    def _written_places(self, function: Any) -> tuple[int, ...]:
        declared = function._declared if function._has_body else function.mutates
        if declared is None:
            assert self.tree is not None
            uses = self.tree.uses
            unknown = [
                name for i, name in enumerate(self.names)
                if uses.get(i, set()) & {"unknown"} and "write" not in uses[i]
            ]  # fmt: skip
            if unknown:
                raise TypeError(
                    f"{self.name}: the kernels do not show whether they write "
                    f"{', '.join(unknown)}, which JAX must know: use @cl.function(mutates=[...])"
                )
            declared = [name for i, name in enumerate(self.names) if "write" in uses.get(i, ())]
        wanted = {self.names.index(name) for name in declared}
        return tuple(i for i, place in enumerate(self._places) if place[0] in wanted)

    def _collect(self, value: Any) -> None:
        for one in _leaves(value):
            if one.argument is not None:
                continue
            dense = dense_strides(one.shape)
            strides = one.strides or dense
            # The strides of a dimension with one element, or of an empty array, are never used.
            if 0 not in one.shape and any(
                size != 1 and step != want
                for size, step, want in zip(one.shape, strides, dense, strict=True)
            ):
                raise TypeError(
                    f"{self.name} returns a view with strides {tuple(strides)}, but JAX arrays "
                    "have no strides: return the array, and take the view of the result"
                )
            self._made.append(one)

    def _not_returned(self) -> list[tuple[int, str]]:
        there = {one.argument for one in _leaves(self.result)}
        extra = []
        for i in self.writes:
            place = self._places[i]
            if place not in there:
                name = self.names[place[0]]
                extra.append((i, name if len(place) == 1 else f"{name}_{place[1]}"))
        return extra

    def _rebuilt(self, value: Any, made: Any, written: dict[int, Any], arrays: Any) -> Any:
        if isinstance(value, AbstractArray):
            if value.argument is None:
                return next(made)
            index = self._places.index(value.argument)
            return written.get(index, arrays[index])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self._rebuilt(one, made, written, arrays) for one in value))
        if isinstance(value, (tuple, list)):
            return type(value)(self._rebuilt(one, made, written, arrays) for one in value)
        if isinstance(value, dict):
            return {k: self._rebuilt(one, made, written, arrays) for k, one in value.items()}
        return value


def _places(arrays: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the place of each array: its parameter, and its index in a list there."""
    places: list[tuple[int, ...]] = []
    for parameter, count in enumerate(arrays):
        if count == ARRAY:
            places.append((parameter,))
        elif count != VALUE:
            items = count if count > 0 else -1 - count
            places += [(parameter, i) for i in range(items)]
    return places


def filled(values: tuple[Any, ...], arrays: tuple[int, ...], found: list[Any]) -> tuple[Any, ...]:
    """Insert arrays at their places."""
    waiting = iter(found)
    filled = []
    for value, count in zip(values, arrays, strict=True):
        if count == VALUE:
            filled.append(value)
        elif count == ARRAY:
            filled.append(next(waiting))
        else:
            items = [next(waiting) for _ in range(count if count > 0 else -1 - count)]
            filled.append(tuple(items) if count > 0 else items)
    return tuple(filled)


def _leaves(value: Any) -> Any:
    if isinstance(value, AbstractArray):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _leaves(one)


def _traced(shape: tuple[int, ...], kind: DType) -> XlaArray:
    # It has a type and a shape, but no memory. The operations of a body are only recorded.
    return XlaArray(shape, kind.code, kind.bits, current_driver().device_types[0])


def dtype_of(array: Any) -> DType | None:
    """Return the element type of a JAX array, or None if kernels have no such type."""
    return find_dtype(array.dtype)


def _jax_dtype(name: str, kind: DType) -> Any:
    jax = jax_package()
    dtype = jax.numpy.dtype(kind.name)
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise TypeError(
            f"{name} returns {kind.name}, which JAX supports only after "
            'jax.config.update("jax_enable_x64", True)'
        )
    return dtype
