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

    def __new__(cls, function: Any, count: int) -> GradientFunction:
        """Make it for a function with so many results."""
        own = function._parameters  # noqa: SLF001 - what a fused function has for its kind
        grads = ("grad",) if count == 1 else tuple(f"grad_{i}" for i in range(count))
        for name in own:
            if name in grads or name == "out":
                raise ValueError(
                    f"{function.__name__}: backward='auto' calls the gradients of results "
                    f"{', '.join(grads)}: rename the parameter {name}"
                )
        name = f"{function.__name__}_backward"
        self = super().__new__(cls, name, (*grads, *own))
        self.__name__ = name
        self._parameters = (*grads, *own)
        self._function, self._count = function, count
        return self

    _function: Any
    _count: int

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        given = dict(zip(self._parameters, args, strict=False)) | keywords
        return tuple(given[name] for name in self._parameters)

    def _trace(self, trace: ShapedTrace, values: list[Any]) -> tuple[Node, ...]:  # type: ignore[override]
        gradients, arguments = values[: self._count], values[self._count :]
        results = self._function._trace(trace, arguments)  # noqa: SLF001
        reverse = Reverse(trace, results, tuple(map(node_of, gradients)))
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
    """Return the function of a fused function, whose gradients come from its trace."""
    host = host_function(function)
    host.backward(host_function(GradientFunction(function, _results(function))))
    return host


gradient_makers.append(with_gradient)


def _results(function: Any) -> int:
    """Return how many results a function has: as many whatever the types."""
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
                return len(function._trace(trace, values))  # noqa: SLF001
            except (TypeError, ValueError) as error:
                failure = failure or error
    assert failure is not None
    raise failure


def _declared(function: Any, name: str, dtype: Any) -> Any:
    default = function._default_of(name)  # noqa: SLF001
    weak = {bool: dt.weak_bool, int: dt.weak_int, float: dt.weak_float}
    return weak.get(type(default), dtype)
