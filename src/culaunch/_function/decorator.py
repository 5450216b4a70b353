"""``culaunch.function``: what makes a function of a Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from culaunch._base.checks import checked_flag
from culaunch._function import debugging
from culaunch._function.function import Function

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
    """Make the host side of kernels of a Python function: checks, allocations, launches.

    The first call of a kind of arguments (which are arrays, their element types and ranks; which
    are Python numbers; the values of everything else) runs the body on stand-ins and records what
    it does. Later calls of that kind run the record natively. Branches on shapes and numbers just
    work: a call that decides otherwise is recorded, too.

    Parameters
    ----------
    body : function
        It takes arrays, numbers, None, strings and other hashable values, and lists and tuples of
        arrays; it returns arrays, numbers, None, or tuples, lists and dicts of these.
    debug : bool, optional
        Run the body as plain Python, always: a debugger steps through it.
    mutates : sequence of str, optional
        The parameters whose arrays are written. Without it that is known from the kernels'
        signatures.

    Returns
    -------
    Function

    Raises
    ------
    TypeError
        If the body has ``*args``, or is no Python function.
    """
    checked_flag("debug", debug)
    kind = DebugFunction if debug else Function
    if body is None:
        return lambda given: kind(given, mutates=mutates)
    return kind(body, mutates=mutates)
