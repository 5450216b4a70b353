"""Launches in a body: of kernels, with every option of a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._function import opcodes as oc
from culaunch._function.arguments import OfKernel, RecordedArgument
from culaunch._function.configuration import Configuration, from_key, from_keywords, of_launcher
from culaunch._function.effects import Launch
from culaunch._function.symbols import is_symbolic
from culaunch._launch import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from culaunch._function.bodies import Body
    from culaunch._function.trace import TraceBody
    from culaunch._launch.module import Kernel

# The driver's limits, which all architectures share: checked in the plan, before anything is
# launched.
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_THREADS = (1024, 1024, 64)


class BodyLauncher:
    """A kernel with its launch configuration, in a body: call it with the kernel's arguments."""

    def __init__(self, body: Body, kernel: Kernel, configuration: Configuration) -> None:
        self._body = body
        self.kernel = kernel
        self._configuration = configuration

    @property
    def grid(self) -> tuple[Any, ...]:
        """The grid, in blocks."""
        return self._configuration.grid

    @property
    def block(self) -> tuple[Any, ...]:
        """The block, in threads."""
        return self._configuration.block

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Launch, as a launcher does."""
        self.launch(None, args, keywords)

    def launch(self, predicate: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        """Launch where a condition holds, which is None for always."""
        self._body.require_open()
        if keywords or len(args) != len(self.kernel.signature):
            _raise_count(self.kernel, len(args), tuple(keywords))
        self._body.enqueue(self.kernel, self._configuration, predicate, args)


def record_kernel(
    body: Body, what: Any, how: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Take part in what a body does with a kernel or a launcher."""
    if how == "call":
        return BodyLauncher(body, what.kernel, of_launcher(what))(*args, **keywords)
    if how == "getitem":
        return BodyLauncher(body, what, from_key(args[0]))
    if how == "configure":
        return BodyLauncher(body, what, from_keywords(**keywords))
    names = (*Configuration._fields, "stream")
    options = {name: keywords.pop(name) for name in names if name in keywords}
    return BodyLauncher(body, what, from_keywords(**options))(*args, **keywords)


def trace_launch(
    body: TraceBody,
    kernel: Kernel,
    configuration: Configuration,
    predicate: Any,
    args: tuple[Any, ...],
) -> None:
    """Record a launch: its checks in the plan, itself among the effects."""
    place = here()
    # Decided by now: the launch is there, or it is not.
    if predicate is not None and not is_symbolic(predicate):
        if not predicate:
            return
        predicate = None
    grid, block, cluster, preferred, shared, cooperative, programmatic, priority = configuration

    def dims(name: str, sizes: tuple[Any, ...] | None, most: tuple[int, ...]) -> tuple[Any, ...]:
        for size, limit in zip(sizes or (), most, strict=False):
            try:
                if is_symbolic(size):
                    # A launch that does not happen may have any grid: that is what launch_if is
                    # for.
                    asked = body.where(predicate, size, 1)
                    body.bounded("DIMENSION", asked, (limit,), place)
                elif not 1 <= size <= limit:
                    raise OverflowError
            except OverflowError:  # noqa: PERF203
                raise ValueError(
                    f"at {place.text()}: {name} must be from 1 to {limit} in every dimension (got "
                    f"{_shown(sizes or ())}): cl.launch_if launches nothing for an empty problem"
                ) from None
        return tuple(map(body.register, sizes or ()))

    def bytes_(value: Any) -> Any:
        try:
            if is_symbolic(value):
                body.bounded("RANGE", body.where(predicate, value, 0), (4, 0), place)
            elif not 0 <= value < 1 << 32:
                raise OverflowError
        except OverflowError:
            raise OverflowError(
                f"at {place.text()}: shared_memory must be a number of bytes, an int from 0 to "
                f"2^32 - 1 (got {_shown((value,))})"
            ) from None
        return body.register(value)

    has_shared = is_symbolic(shared) or shared != 0
    flags = (
        oc.COOPERATIVE * cooperative
        | oc.PROGRAMMATIC * programmatic
        | oc.PRIORITY * (priority is not None)
        | oc.CLUSTER * (cluster is not None)
        | oc.PREFERRED_CLUSTER * (preferred is not None)
        | oc.SHARED_MEMORY * has_shared
    )
    # Check the arguments before the dimensions, in the same order as a launch outside of a body.
    # Both then report the same first mistake.
    parameters = tuple(
        RecordedArgument(body, kernel, index, value, predicate, place).recorded()
        for index, value in enumerate(args)
    )
    body.recorded.effects.append(
        Launch(
            kernel,
            flags,
            None if predicate is None else body.register(predicate),
            dims("grid", grid, _MOST_BLOCKS),
            dims("block", block, _MOST_THREADS),
            dims("cluster", cluster, _MOST_BLOCKS),
            dims("preferred_cluster", preferred, _MOST_BLOCKS),
            bytes_(shared) if has_shared else None,
            None if priority is None else body.register(priority),
            place,
            parameters,
        )
    )


def launch_if(condition: Any, launcher: Any, *args: Any) -> None:
    """Launch where a condition holds, and do nothing elsewhere.

    In the body of a function this needs no second path, and a grid that has no blocks where the
    condition is false is no error.

    Parameters
    ----------
    condition : bool
        Such as ``n > 0``.
    launcher : Launcher
        A kernel with its launch configuration: ``kernel[grid, block]``.
    *args
        The kernel's arguments.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As the launch itself.
    """
    if isinstance(launcher, BodyLauncher):
        if not is_symbolic(condition) and not hasattr(condition, "node"):
            condition = bool(condition)
        launcher.launch(condition, args, {})
        return
    if not callable(launcher):
        raise TypeError(
            f"launcher must be a kernel with its configuration, kernel[grid, block] "
            f"(got {spell(launcher)})"
        )
    if condition:
        launcher(*args)


def _shown(values: tuple[Any, ...]) -> str:
    hints = tuple(getattr(value, "hint", value) for value in values)
    return str(hints[0] if len(hints) == 1 else hints)


def _raise_count(kernel: Kernel, count: int, keywords: tuple[str, ...]) -> None:
    place = here()
    try:
        messages.raise_count(OfKernel(kernel), count, keywords or None)  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError(f"at {place.text()}: {error}") from None
