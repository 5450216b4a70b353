"""Triton kernels in a function's body: guards on the variant that a call selects."""

# ruff: noqa: SLF001 - a dispatcher's own names begin with an underscore: the others are Triton's

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._core import TritonDispatcher as CoreDispatcher
from culaunch._core import TritonLauncher
from culaunch._launch.launches.recording import RECORDERS
from culaunch._triton.bodies.arguments import BodyArguments
from culaunch._triton.bodies.variant_launch import VariantLaunch
from culaunch._triton.calls.messages import raise_binding
from culaunch._triton.calls.private_members import names_of

if TYPE_CHECKING:
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.calls.dispatcher import Dispatcher


class BodyLauncher:
    """A Triton kernel with its grid, in a body: call it with the kernel's arguments."""

    def __init__(self, body: RecordingBody, dispatcher: Dispatcher, grid: Any) -> None:
        self._body = body
        self._dispatcher = dispatcher
        self.grid = grid

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Launch the kernel; there is no result."""
        if self._body.mode == "live":
            self._launch_now(args, keywords)
        elif self._body.mode == "trace":
            self._record(args, keywords)
        else:
            self._note(args, keywords)

    def _launch_now(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        body, dispatcher, grid = self._body, self._dispatcher, self.grid
        names = tuple(keywords)
        values = [_real(body, value) for value in (*args, *keywords.values())]

        def launch(*real: Any) -> None:
            given = dict(zip(names, real[len(args) :], strict=True))
            dispatcher[grid](*real[: len(args)], **given)

        body.call(launch, values, ())

    def _record(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        # Do this first, because the kernel may have got other decorators since. The arguments are
        # bound to the current dispatcher.
        dispatcher = self._dispatcher._for_body(self._body)
        bound, options = bind(dispatcher, args, keywords)
        choice = dispatcher._choose_in_body(self._body, bound, options)
        # A call must not pass an argument that a decorator sets, unless the decorator replaces it,
        # as heuristics do.
        for name, value in choice.constants.items():
            if name in bound and name not in choice.replaced:
                raise_binding(dispatcher, "tuned", name, len(args))
            bound[name] = value
        for name, value in choice.options.items():
            if name in options and name not in choice.replaced:
                raise_binding(dispatcher, "tuned", name, len(args))
            options[name] = value
        arguments = BodyArguments(self._body, dispatcher, bound, options)
        VariantLaunch(self._body, dispatcher, arguments).record(self.grid)

    def _note(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Check the facts that are known without a call."""
        bind(self._dispatcher, args, keywords)


def bind(
    dispatcher: Dispatcher, args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments by name, and the keywords that are not parameters."""
    names = names_of(dispatcher)
    if len(args) > len(names):
        raise_binding(dispatcher, "too_many", None, len(args))
    bound = dict(zip(names, args, strict=False))
    options = {}
    for name, value in keywords.items():
        if name not in names:
            options[name] = value
        elif name in bound:
            raise_binding(dispatcher, "twice", name, len(args))
        else:
            bound[name] = value
    return bound, options


def record(
    body: RecordingBody, target: Any, how: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Handle the operations of a body on a Triton kernel."""
    if isinstance(target, TritonLauncher):  # made outside of the body
        return BodyLauncher(body, target._dispatcher, target.grid)(*args, **keywords)  # type: ignore[arg-type]
    if how == "getitem":
        return BodyLauncher(body, target, args[0])
    grid, positional, named = args
    if body.mode == "live":
        return BodyLauncher(body, target, grid)(*positional, **named)
    raise TypeError(
        f"a Triton decorator runs Python at each launch of {target.name}, but a function records "
        "only launches that need no Python. Launch the kernel below that decorator, "
        "native(kernel.fn)[grid], with the constants that the decorator chooses (got "
        f"{spell(target)})"
    )


def _real(body: RecordingBody, value: Any) -> Any:
    """Return the object behind a value of a body, also inside a tuple."""
    if hasattr(value, "block_shape") and body.what(getattr(value, "base", None)) == "array":
        # The caller's descriptor keeps the body's array.
        made = copy.copy(value)  # a tensor descriptor
        made.base = body.real(value.base)
        return made
    if not isinstance(value, tuple):
        return body.real(value)
    items = [_real(body, item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


RECORDERS[CoreDispatcher] = record
RECORDERS[TritonLauncher] = record
