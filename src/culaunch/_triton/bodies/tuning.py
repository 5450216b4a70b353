"""The choices of a kernel's decorators, for a launch in the body of a function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from culaunch._triton.bodies.numbers import pin_shape, pinned, plain
from culaunch._triton.calls.choice import Choice, split_settings
from culaunch._triton.calls.private_members import call, driver_of, names_of
from culaunch._triton.decorators.decision import NotMeasured
from culaunch._triton.reads.shapes import ShapePart
from culaunch._triton.upstream.target import compiling_for

if TYPE_CHECKING:
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.calls.dispatcher import Dispatcher
    from culaunch._triton.decorators.decision import Decision
    from culaunch._triton.decorators.stack import Stack


def choose_in_body(
    body: RecordingBody,
    kernel: Dispatcher,
    stack: Stack,
    inner: Dispatcher,
    bound: dict[str, Any],
    options: dict[str, Any],
) -> Choice:
    """Let a kernel's decorators choose for a call in a body.

    Everything that they read is guarded. An autotuner without a configuration for the call's key
    measures its configurations on arrays of zeros with the call's shapes. It does not touch the
    call's own arrays.

    Raise TypeError if a configuration has a ``pre_hook``, or a decorator decides differently for
    the same key.
    """
    names = names_of(kernel)
    for index, kind, dimension in stack.key or ():
        given = bound.get(names[index])
        if kind.is_of_shape and given is not None:
            pin_shape(body, given, ShapePart(kind, dimension))
        elif names[index] in bound:
            bound[names[index]] = pinned(body, given)
    made = None
    # Try small samples first. They are enough if the choice is known, or follows from the
    # arguments. Only an autotuner that must measure gets arrays of the real size.
    for is_whole in (False, True):
        given = {
            name: _sample(body, value, is_whole=is_whole, is_shaped=name in stack.shaped)
            if body.what(value) == "array"
            else plain(body, value)
            for name, value in {**bound, **options}.items()
        }
        launch = functools.partial(call, inner) if is_whole else _launch_nothing
        try:
            # Outside of the body, because launches that only measure must not become part of the
            # program.
            with body.apart(), compiling_for(driver_of(kernel), body.ordinal):
                made = stack.decide((1,), (), given, launch, may_measure=is_whole)
            break
        except NotMeasured:
            continue
    assert made is not None
    _require_plain(kernel, made)
    guards = stack.guards()
    for container, name, is_there, value in guards.entries:
        # A measured choice stays, even if the autotuner's cache changes.
        if is_there and type(name) is str:
            body.depends_on(container, name, value)
    for cell, value in guards.cells:
        body.depends_on(cell, None, value)
    constants, chosen = split_settings(made.settings, names)
    return Choice(constants, chosen, made.replaced)


def _sample(body: RecordingBody, array: Any, *, is_whole: bool, is_shaped: bool) -> Any:
    """Return an array like one of the body: with its shape and strides if they are read."""
    if not is_shaped or not hasattr(found := body.sample(array, whole=False), "as_strided"):
        return body.sample(array, whole=is_whole or is_shaped)
    sizes, strides = ([plain(body, one) for one in two] for two in (array.shape, array.strides))
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return found.new_zeros(0 if 0 in sizes else 1 + reach).as_strided(sizes, strides)


def _launch_nothing(*_: Any) -> None:
    """Launch nothing, because only the choice is needed."""


def _require_plain(kernel: Dispatcher, made: Decision) -> None:
    if any(config is not None and config.pre_hook is not None for _, config in made.configs):
        raise TypeError(
            f"a configuration of {kernel.name} has a pre_hook, which runs Python at every launch, "
            "but a function launches without Python. Do the hook's work in the body"
        )
    if not made.is_kept:
        raise TypeError(
            f"an autotuner of {kernel.name} decides in Python at each call: pass the kernel below "
            "it (.fn) to native()"
        )
