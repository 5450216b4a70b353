"""The registry of recorders of launches, and the upcall that asks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._core import Function as CoreFunction
from culaunch._core import Kernel as CoreKernel
from culaunch._core import Launcher
from culaunch._function.body.bodies import current
from culaunch._function.body.debugging import is_debugging
from culaunch._function.tracing.launches import record_kernel
from culaunch._launch.launches.recording import RECORDERS

if TYPE_CHECKING:
    from culaunch._function.body.bodies import Body


def record(target: object, how: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Offer a launch to the body of this thread; return NotImplemented without a body.

    The extension calls it before a kernel, a launcher, a function and the like do anything, while
    some thread runs a body.
    """
    body = current()
    if body is None:
        if is_debugging() and how == "call" and isinstance(target, CoreFunction):
            return target._run_live(args, keywords)  # type: ignore[attr-defined]
        return NotImplemented
    # Search the bases: a subclass of a kernel is recorded like a kernel, and rooms above this one
    # register their own types.
    for kind in type(target).__mro__:
        recorder = RECORDERS.get(kind)
        if recorder is not None:
            return recorder(body, target, how, args, keywords)
    return NotImplemented


def _record_function(
    body: Body, target: Any, how: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    if how != "call":
        return NotImplemented
    if not target._has_body:
        raise TypeError(
            f"{target.__name__} comes from a library and has no body, so {body.name} cannot record "
            "it: call one function after the other, or save both from source"
        )
    return body.inline(target, args, keywords)


RECORDERS[CoreKernel] = record_kernel
RECORDERS[Launcher] = record_kernel
RECORDERS[CoreFunction] = _record_function
