"""What the decorators above a kernel choose, for a launch in the body of a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from culaunch._triton.autotuner import split_settings
from culaunch._triton.stack import NotMeasured
from culaunch._triton.target import compiling_for

if TYPE_CHECKING:
    from culaunch._launch.recording import RecordingBody
    from culaunch._triton.native_kernel import NativeKernel
    from culaunch._triton.stack import Decision, Stack


@dataclass(frozen=True)
class BodyChoice:
    """What is set by name.

    Attributes
    ----------
    constants, options : dict
        Arguments of the kernel, and options.
    replaced : frozenset of str
        Those that stand in the place of what the call gave.
    """

    constants: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()


def choose_in_body(
    body: RecordingBody,
    kernel: NativeKernel,
    stack: Stack,
    inner: NativeKernel,
    bound: dict[str, Any],
    options: dict[str, Any],
) -> BodyChoice:
    """Let the decorators of a kernel choose for a call in a body.

    What they look at is guarded. An autotuner that knows no configuration for the call's key
    measures them on arrays of zeros of the call's shapes: nothing of the call's own is touched.

    Raises
    ------
    TypeError
        If a configuration has a ``pre_hook``, or a decorator decides differently for the same key.
    """
    names = kernel._parameter_names  # noqa: SLF001
    for index, _ in stack.key or ():
        if names[index] in bound:
            bound[names[index]] = pinned(body, bound[names[index]])
    made = None
    for is_whole in (False, True):
        given = {
            name: body.sample(value, whole=is_whole)
            if body.what(value) == "array"
            else plain(body, value)
            for name, value in {**bound, **options}.items()
        }
        launch = inner._call if is_whole else _launch_nothing  # noqa: SLF001
        try:
            with body.apart(), compiling_for(kernel._driver, body.ordinal):  # noqa: SLF001
                made = stack.decide((1,), (), given, launch, may_measure=is_whole)
            break
        except NotMeasured:
            continue
    assert made is not None
    _require_plain(kernel, made)
    guards = stack.guards()
    for container, name, is_there, value in guards.entries:
        # What was measured stays chosen, whatever becomes of the autotuner's cache.
        if is_there and type(name) is str:
            body.depends_on(container, name, value)
    for cell, value in guards.cells:
        body.depends_on(cell, None, value)
    constants, chosen = split_settings(made.settings, names)
    return BodyChoice(constants, chosen, made.replaced)


def _launch_nothing(*_: Any) -> None:
    """Launch nothing: the choice is all that is asked for."""


def _require_plain(kernel: NativeKernel, made: Decision) -> None:
    if any(config is not None and config.pre_hook is not None for _, config in made.configs):
        raise TypeError(
            f"a configuration of {kernel.name} has a pre_hook, which is Python that runs at every "
            "launch: a function launches without Python. Do in the body what the hook does"
        )
    if not made.is_kept:
        raise TypeError(
            f"an autotuner of {kernel.name} decides anew at each call, in Python: give native() "
            "the kernel below it"
        )


def pinned(body: RecordingBody, value: Any) -> Any:
    """Return a number of the call as Python's: the choice depends on it, so calls are guarded."""
    kind = body.what(value)
    if kind is None or kind == "array":
        return value
    if type(value) in (bool, int, float):
        return value
    return {"bool": bool, "int": int, "float": float}[kind](value)


def plain(body: RecordingBody, value: Any) -> Any:
    """Return a number of the call as Python's, where nothing depends on it."""
    return getattr(value, "hint", value) if body.what(value) != "array" else value
