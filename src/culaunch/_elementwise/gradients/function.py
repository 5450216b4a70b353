"""A fused function's gradients as a fused function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.elementwise_function import (
    ElementwiseFunction,
    gradient_makers,
    host_function,
)
from culaunch._elementwise.gradients.reverse import Reverse
from culaunch._elementwise.gradients.saved import replaced, stored, values_to_save
from culaunch._elementwise.graph import ordered
from culaunch._elementwise.reductions.labels import Label, ShapedTrace
from culaunch._elementwise.trace import Value, node_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._elementwise.graph import Node
    from culaunch._function.calling.function import Function


class ForwardFunction(ElementwiseFunction):
    """Takes a function's arguments; returns its results, and the values that it saves."""

    reduces = True
    _function: Any
    _needs: Needs

    def __new__(cls, function: Any, needs: Needs) -> ForwardFunction:
        """Make it for a function, and the values that its gradients need."""
        name = f"{function.__name__}_forward"
        self = super().__new__(cls, name, function._parameters)  # noqa: SLF001 - of its kind
        functools.update_wrapper(self, function)
        self.__name__ = name
        self._parameters = function._parameters  # noqa: SLF001
        self._function, self._needs = function, needs
        return self

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        return self._function._bind(args, keywords)  # type: ignore[no-any-return]  # noqa: SLF001

    def _trace(self, trace: ShapedTrace, values: list[Any]) -> tuple[Node, ...]:  # type: ignore[override]
        results = self._function._trace(trace, values)  # noqa: SLF001
        saved = values_to_save(trace, results, _differentiable(values), len(values))
        made = [stored(trace, node) for node in saved[: self._needs.saved]]
        # A function may compute less for other types. Gradients then do not look at the rest.
        nothing = trace.constant(0.0, dt.float32)
        return (*results, *made, *[nothing] * (self._needs.saved - len(made)))


class GradientFunction(ElementwiseFunction):
    """Takes the gradients of a function's results, and its arguments; returns their gradients."""

    reduces = True
    _function: Any
    _needs: Needs

    def __new__(cls, function: Any, needs: Needs) -> GradientFunction:
        """Make it for a function, and the values that its gradients need."""
        own = function._parameters  # noqa: SLF001 - what a fused function has for its kind
        count = needs.gradients
        grads = ("grad",) if count == 1 else tuple(f"grad_{i}" for i in range(count))
        given = tuple(f"out_{i}" for i in range(needs.results))
        given += tuple(f"saved_{i}" for i in range(needs.saved))
        for name in own:
            if name in grads or name in given or name == "out":
                raise ValueError(
                    f"{function.__name__}: backward='auto' calls the gradients of results "
                    f"{', '.join(grads)}, results out, out_0, ..., and values of the forward pass "
                    f"saved_0, ...: rename the parameter {name}"
                )
        name = f"{function.__name__}_backward"
        self = super().__new__(cls, name, (*grads, *given, *own))
        self.__name__ = name
        self._parameters = (*grads, *given, *own)
        self._function, self._needs = function, needs
        return self

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        given = dict(zip(self._parameters, args, strict=False)) | keywords
        return tuple(given[name] for name in self._parameters)

    def _trace(self, trace: ShapedTrace, values: list[Any]) -> tuple[Node, ...]:  # type: ignore[override]
        needs = self._needs
        gradients, rest = values[: needs.gradients], values[needs.gradients :]
        outputs, rest = rest[: needs.results], rest[needs.results :]
        arrays, arguments = rest[: needs.saved], rest[needs.saved :]
        trace.is_gradient = True
        results = self._function._trace(trace, arguments)  # noqa: SLF001
        saved = values_to_save(trace, results, _differentiable(arguments), len(values))
        reverse = Reverse(
            trace, results, tuple(map(node_of, gradients)), tuple(map(node_of, outputs))
        )
        found: list[Node] = []
        places: list[int | None] = []
        for value in arguments:
            node = node_of(value)
            if node.op != "input" or node.dtype.is_weak:
                continue  # a number of Python
            if node.dtype.kind == "c":
                raise TypeError(f"{self.__name__}: complex arguments have no gradients")
            places.append(len(found) if node.dtype.kind == "f" else None)
            if node.dtype.kind == "f":
                found.append(reverse.of(node))
        if not found:
            raise TypeError(f"{self.__name__}: no argument has a gradient")
        trace.places = tuple(places)
        of_values = dict(zip(saved, map(node_of, arrays), strict=False))
        return replaced(trace, tuple(found), of_values)


def with_gradient(function: Any) -> Function[..., Any]:
    """Return the function of a fused function, with gradients from its trace."""
    host = host_function(function)
    needs = _probed(function)
    forward = host_function(ForwardFunction(function, needs)) if needs.saved else None
    host.backward(host_function(GradientFunction(function, needs)), forward=forward)
    return host


gradient_makers.append(with_gradient)


class Needs(NamedTuple):
    """The numbers of gradients, results and saved values that a function for gradients takes."""

    gradients: int
    results: int
    saved: int


def _probed(function: Any) -> Needs:
    """Return what a function's gradients need. It is the same whatever the types."""
    failure: Exception | None = None
    for dtypes in _types_to_try(len(function._parameters)):  # noqa: SLF001
        for rank in (2, 1, 3, 4):
            trace = ShapedTrace(function.__name__)
            labels = [Label(1 << 10) for _ in range(rank)]
            values = []
            for i, (name, dtype) in enumerate(zip(function._parameters, dtypes, strict=True)):  # noqa: SLF001
                node = trace.input(i, _declared(function, name, dtype))
                if not node.dtype.is_weak:
                    trace.dims[node] = tuple(labels)
                values.append(Value(node))
            try:
                results = function._trace(trace, values)  # noqa: SLF001
            except (TypeError, ValueError) as error:
                failure = failure or error
                continue
            return _needs(trace, values, results)
    assert failure is not None
    raise failure


def _types_to_try(count: int) -> Iterator[list[dt.DType]]:
    """List types of arguments: the same for all, then float32 with one index or mask."""
    kinds = (dt.float32, dt.int32, dt.bool_)
    for kind in kinds:
        yield [kind] * count
    for i in range(count):
        for kind in kinds[1:]:
            yield [kind if i == j else dt.float32 for j in range(count)]


def _needs(trace: ShapedTrace, values: list[Any], results: tuple[Node, ...]) -> Needs:
    count, arguments = len(results), _differentiable(values)
    try:
        if _needs_results(trace, arguments, results, len(values)):
            return Needs(count, count, 0)
        return Needs(count, 0, len(values_to_save(trace, results, arguments, len(values))))
    except (TypeError, ValueError):
        return Needs(count, 0, 0)  # the first backward call says why


def _needs_results(
    trace: ShapedTrace, arguments: list[Node], results: tuple[Node, ...], first_input: int
) -> bool:
    """Tell whether gradients need the results, and repeat no reduction with them.

    If they repeat one, they read its arguments, and the results would be read in addition.
    """
    if any(result.dtype.is_weak or result.dtype.kind != "f" for result in results):
        return False
    own = {node for node in ordered(results) if node.op == "reduce"}
    given: list[Node] = []
    for result in results * 2:
        node = trace.input(first_input + len(given), result.dtype)
        trace.dims[node] = trace.of(result)
        given.append(node)
    count = len(results)
    reverse = Reverse(trace, results, tuple(given[:count]), tuple(given[count:]))
    needed = set(ordered(tuple(reverse.of(node) for node in arguments)))
    return bool(own) and own.isdisjoint(needed) and not needed.isdisjoint(given[count:])


def _differentiable(values: list[Any]) -> list[Node]:
    nodes = map(node_of, values)
    return [node for node in nodes if node.dtype.kind == "f" and not node.dtype.is_weak]


def _declared(function: Any, name: str, dtype: Any) -> Any:
    default = function._default_of(name)  # noqa: SLF001
    weak = {bool: dt.weak_bool, int: dt.weak_int, float: dt.weak_float}
    return weak.get(type(default), dtype)
