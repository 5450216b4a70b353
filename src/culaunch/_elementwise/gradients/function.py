"""A fused function's gradients as a fused function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.elementwise_function import (
    ElementwiseFunction,
    gradient_makers,
    host_function,
)
from culaunch._elementwise.gradients.reverse import Reverse
from culaunch._elementwise.reductions.labels import Label, ShapedTrace
from culaunch._elementwise.trace import Value, node_of

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._function.calling.function import Function


class GradientFunction(ElementwiseFunction):
    """Takes the gradients of a function's results, and its arguments; returns their gradients."""

    reduces = True

    def __new__(cls, function: Any, count: int, *, takes_results: bool = False) -> GradientFunction:
        """Make it for a function with a number of results, which it may receive, too."""
        own = function._parameters  # noqa: SLF001 - what a fused function has for its kind
        grads = ("grad",) if count == 1 else tuple(f"grad_{i}" for i in range(count))
        saved = tuple(f"out_{i}" for i in range(count)) if takes_results else ()
        for name in own:
            if name in grads or name in saved or name == "out":
                raise ValueError(
                    f"{function.__name__}: backward='auto' calls the gradients of results "
                    f"{', '.join(grads)}, and results out, out_0, ...: rename the parameter {name}"
                )
        name = f"{function.__name__}_backward"
        self = super().__new__(cls, name, (*grads, *saved, *own))
        self.__name__ = name
        self._parameters = (*grads, *saved, *own)
        self._function, self._counts = function, (count, len(saved))
        return self

    _function: Any
    _counts: tuple[int, int]

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        given = dict(zip(self._parameters, args, strict=False)) | keywords
        return tuple(given[name] for name in self._parameters)

    def _trace(self, trace: ShapedTrace, values: list[Any]) -> tuple[Node, ...]:  # type: ignore[override]
        count, saved = self._counts
        gradients, arguments = values[:count], values[count + saved :]
        trace.is_gradient = True
        results = self._function._trace(trace, arguments)  # noqa: SLF001
        reverse = Reverse(
            trace,
            results,
            tuple(map(node_of, gradients)),
            tuple(map(node_of, values[count : count + saved])),
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
        return tuple(found)


def with_gradient(function: Any) -> Function[..., Any]:
    """Return the function of a fused function, with gradients from its trace."""
    host = host_function(function)
    count, takes_results = _probed(function)
    gradient = GradientFunction(function, count, takes_results=takes_results)
    host.backward(host_function(gradient))
    return host


gradient_makers.append(with_gradient)


def _probed(function: Any) -> tuple[int, bool]:
    """Return how many results a function has, and whether its gradients should take them.

    They are the same whatever the types.
    """
    failure: Exception | None = None
    for dtype in (dt.float32, dt.int32, dt.bool_):
        for rank in (2, 1, 3, 4):
            trace = ShapedTrace(function.__name__)
            labels = [Label(1 << 10) for _ in range(rank)]
            values = []
            for i, name in enumerate(function._parameters):  # noqa: SLF001
                node = trace.input(i, _declared(function, name, dtype))
                if not node.dtype.is_weak:
                    trace.dims[node] = tuple(labels)
                values.append(Value(node))
            try:
                results = function._trace(trace, values)  # noqa: SLF001
            except (TypeError, ValueError) as error:
                failure = failure or error
                continue
            return len(results), _saves_reductions(trace, values, results)
    assert failure is not None
    raise failure


def _saves_reductions(trace: ShapedTrace, values: list[Value], results: tuple[Node, ...]) -> bool:
    """Tell whether gradients that take the results repeat no reduction of the function.

    If they repeat one, they read its arguments, and the results would be read in addition.
    """
    if any(result.dtype.is_weak or result.dtype.kind != "f" for result in results):
        return False
    own = _reductions(results)
    inputs = len(values)
    given: list[Node] = []
    for result in results * 2:
        node = trace.input(inputs + len(given), result.dtype)
        trace.dims[node] = trace.of(result)
        given.append(node)
    count = len(results)
    arguments = [node_of(value) for value in values if node_of(value).dtype.kind == "f"]
    arguments = [node for node in arguments if not node.dtype.is_weak]
    try:
        reverse = Reverse(trace, results, tuple(given[:count]), tuple(given[count:]))
        found = tuple(reverse.of(node) for node in arguments)
    except (TypeError, ValueError):
        return False  # the first backward call says why
    return bool(own) and own.isdisjoint(_reductions(found))


def _reductions(nodes: tuple[Node, ...]) -> set[Node]:
    """Return the reductions that nodes depend on."""
    seen: set[Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += node.args
    return {node for node in seen if node.op == "reduce"}


def _declared(function: Any, name: str, dtype: Any) -> Any:
    default = function._default_of(name)  # noqa: SLF001
    weak = {bool: dt.weak_bool, int: dt.weak_int, float: dt.weak_float}
    return weak.get(type(default), dtype)
