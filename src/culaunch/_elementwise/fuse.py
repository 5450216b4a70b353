"""``fuse``: a Python function on arrays becomes one kernel."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from culaunch._base.values import spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.element_code import make_element_code
from culaunch._elementwise.elementwise_function import ElementwiseFunction
from culaunch._elementwise.graph import Trace
from culaunch._elementwise.trace import Value, node_of
from culaunch._launch.launches.compiled_regions import in_regions

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._elementwise.element_code import ElementCode
    from culaunch._elementwise.graph import Node

P = ParamSpec("P")
R = TypeVar("R")


class Fused(ElementwiseFunction, Generic[P, R]):
    """A Python function that is traced for each list of argument types.

    :func:`culaunch.elementwise.fuse` makes one. For type checkers, a call takes the function's
    own parameters and ``out=``.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> twice = ew.fuse(lambda x: x * 2)
    >>> isinstance(twice, ew.Fused)
    True
    >>> twice(x, out=y) is y
    True
    """

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **keywords: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: Any, out: Any, **keywords: Any) -> R: ...
        def __call__(self, *args: Any, out: Any = None, **keywords: Any) -> Any: ...

    def __new__(cls, function: Callable[P, R]) -> Fused[P, R]:
        """Read the function's parameters; it is traced at the first call."""
        if not callable(function):
            raise TypeError(f"function must be a function to trace (got {spell(function)})")
        name = getattr(function, "__name__", type(function).__name__)
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(
                    f"{name}: a fused function cannot take * or ** (got *{parameter.name})"
                )
            if parameter.name == "out":
                raise TypeError(f"{name}: out is the output's name: rename the parameter")
        parameters = tuple(signature.parameters)
        self = super().__new__(cls, name, parameters)
        self._function = function
        self._signature = signature
        self._parameters = parameters
        # After its own attributes are set, because this adds the function's attributes, name and
        # documentation.
        functools.update_wrapper(self, function)
        return self

    _function: Callable[..., Any]
    _signature: inspect.Signature

    def __repr__(self) -> str:
        return f"<culaunch.elementwise function {self.__name__}{self._signature}>"

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        if len(args) == len(self._parameters) and not keywords:
            return args  # the native half passes keyword-only arguments by position, too
        try:
            bound = self._signature.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{self.__name__}{self._signature}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self._parameters)

    def _element_code(self, dtypes: tuple[dt.DType, ...], numbers: bytes) -> ElementCode:
        trace = Trace(self.__name__)
        values = [
            # A NumPy scalar has an array's type, but is still a parameter.
            Value(
                trace.input(-i - 1 if dt.FIRST_SCALAR <= numbers[i] < dt.FIRST_WEAK else i, dtype)
            )
            for i, dtype in enumerate(dtypes)
        ]
        return make_element_code(self._trace(trace, values))

    def _trace(self, trace: Trace, values: list[Any]) -> tuple[Node, ...]:
        """Run the function on stand-ins: the kernel will perform the same operations."""
        results = self._run(values)
        checked = []
        for result in results if isinstance(results, (tuple, list)) else (results,):
            if isinstance(result, (bool, int, float, complex)):
                raise TypeError(
                    f"{self.__name__} returns the constant {result!r}: a result must be computed "
                    "from the arguments"
                )
            if not isinstance(result, Value):
                raise TypeError(
                    f"{self.__name__} must return a value or a tuple of values (got "
                    f"{type(result).__name__})"
                )
            node = node_of(result)
            # A value from an earlier call would represent an argument of that call.
            if node.trace is not trace:
                raise TypeError(
                    f"{self.__name__} returns a value of an earlier trace: a fused function must "
                    "not keep values outside of it"
                )
            checked.append(node)
        if not checked:
            raise TypeError(f"{self.__name__} must return at least one value")
        return tuple(checked)

    def _default_of(self, name: str) -> Any:
        """Return a parameter's default, or None."""
        default = self._signature.parameters[name].default
        return None if default is inspect.Parameter.empty else default

    def _run(self, values: list[Any]) -> Any:
        kinds = [parameter.kind for parameter in self._signature.parameters.values()]
        positional = [
            value
            for value, kind in zip(values, kinds, strict=True)
            if kind is not inspect.Parameter.KEYWORD_ONLY
        ]
        named = {
            name: value
            for name, value, kind in zip(self._parameters, values, kinds, strict=True)
            if kind is inspect.Parameter.KEYWORD_ONLY
        }
        return self._function(*positional, **named)

    def _inline(self, args: tuple[Any, ...], out: object) -> Any:
        if out is not None:
            raise TypeError(f"{self.__name__}: out cannot be passed inside a fused function")
        return self._run(list(args))


def fuse(function: Callable[P, R]) -> Fused[P, R]:
    """Compile a Python function of arrays to one kernel.

    The function runs once for each list of argument types, on values that record its operations.
    Its Python code does not run again. It may use operators, the functions of this module,
    other fused functions, and Python branches on anything but the arrays' numbers.

    Parameters
    ----------
    function : callable
        Takes arrays and numbers; returns a value, or a tuple of values for several outputs. For
        type checkers, annotate its arrays as ``Any``: calls give it arrays, its body sees values.

    Returns
    -------
    Fused
        Call it like the function. ``out=`` writes into an existing array (or a tuple of arrays,
        for several outputs).

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> @ew.fuse
    ... def gelu(x):
    ...     return 0.5 * x * (1 + ew.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    >>> gelu(x).numpy()[:2]
    array([0.841192, 0.841192], dtype=float32)
    """
    return Fused(function)


in_regions(Fused, "operator", "fused function")
