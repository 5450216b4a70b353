"""``culaunch.function``: the decorator that makes a function from a Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from culaunch._base.checks import checked_flag
from culaunch._function.body import debugging
from culaunch._function.calling.function import Function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

P = ParamSpec("P")
R = TypeVar("R")


class DebugFunction(Function[P, R]):
    """A function whose body always runs as plain Python."""

    def __call__(self, *args: P.args, **keywords: P.kwargs) -> R:
        """Run the body on the arrays themselves."""
        if debugging.is_in_body():
            return super().__call__(*args, **keywords)
        result: R = self._run_live(args, keywords)
        return result


@overload
def function(body: Callable[P, R], /) -> Function[P, R]: ...


@overload
def function(
    *, debug: bool = False, mutates: Sequence[str] | None = None
) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def function(
    body: Callable[P, R] | None = None,
    /,
    *,
    debug: bool = False,
    mutates: Sequence[str] | None = None,
) -> Any:
    """Turn a Python function into the host side of kernels: checks, allocations, launches.

    The kind of a call's arguments says which are arrays, with their element types and ranks, and
    which are Python numbers. It also contains the values of all other arguments. The first call of
    a kind runs the body on stand-ins and records it. Later calls of that kind run the record
    natively. Branches on shapes and numbers work: a call that takes another branch is recorded,
    too.

    Parameters
    ----------
    body : function
        It may take arrays, numbers, None, strings and other hashable values, and lists and tuples
        of arrays. It may return arrays, numbers, None, or tuples, lists and dicts of these.
    debug : bool, optional
        Always run the body as plain Python, so you can step through it in a debugger.
    mutates : sequence of str, optional
        The parameters whose arrays are written. By default the kernels' signatures decide.

    Returns
    -------
    Function

    Raises
    ------
    TypeError
        If the body has ``*args``, or is not a Python function.

    Examples
    --------
    >>> @cl.function
    ... def doubled(x):
    ...     y = cl.empty_like(x)
    ...     kernel[cl.ceildiv(x.size, 256), 256](y, x, 2.0, x.size)
    ...     return y
    >>> doubled(x).numpy()[:3]
    array([2., 2., 2.], dtype=float32)
    """
    checked_flag("debug", debug)
    kind = DebugFunction if debug else Function
    if body is None:
        return lambda given: kind(given, mutates=mutates)
    return kind(body, mutates=mutates)
