"""Launches in a body: of kernels, with every option of a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._function.programs.effects import Launch
from culaunch._function.symbolic.configuration import (
    Configuration,
    from_key,
    from_keywords,
    of_launcher,
)
from culaunch._function.symbolic.symbols import is_symbolic
from culaunch._function.tracing.arguments import OfKernel, RecordedArgument
from culaunch._launch import messages
from culaunch._launch.launches.launch_options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from culaunch._function.body.bodies import Body
    from culaunch._function.tracing.trace import TraceBody
    from culaunch._launch.modules.module import Kernel

# The driver's limits, common to all architectures. The plan checks them before any launch.
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
        return tuple(self._configuration["grid"])

    @property
    def block(self) -> tuple[Any, ...]:
        """The block, in threads."""
        return tuple(self._configuration["block"])

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Launch, as a launcher does."""
        self.launch(None, args, keywords)

    def launch(self, predicate: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        """Launch if a condition holds; None means always."""
        self._body.require_open()
        if keywords or len(args) != len(self.kernel.signature):
            _raise_count(self.kernel, len(args), tuple(keywords))
        self._body.enqueue(self.kernel, self._configuration, predicate, args)


def record_kernel(
    body: Body, what: Any, how: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Record that a body uses a kernel or a launcher."""
    if how == "call":
        return BodyLauncher(body, what.kernel, of_launcher(what))(*args, **keywords)
    if how == "getitem":
        return BodyLauncher(body, what, from_key(args[0]))
    return BodyLauncher(body, what, from_keywords(**keywords))


def trace_launch(
    body: TraceBody,
    kernel: Kernel,
    configuration: Configuration,
    predicate: Any,
    args: tuple[Any, ...],
) -> None:
    """Record a launch: its checks in the plan, and the launch among the effects."""
    place = here()
    # The condition is known here, so the launch is recorded or not.
    if predicate is not None and not is_symbolic(predicate):
        if not predicate:
            return
        predicate = None

    def dims(name: str, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
        most = _MOST_THREADS if name == "block" else _MOST_BLOCKS
        for size, limit in zip(sizes, most, strict=True):
            try:
                if is_symbolic(size):
                    # A skipped launch may have any grid. This is the purpose of launch_if.
                    asked = body.where(predicate, size, 1)
                    body.bounded("DIMENSION", asked, (limit,), place)
                elif not 1 <= size <= limit:
                    raise OverflowError
            except OverflowError:  # noqa: PERF203
                raise ValueError(
                    f"at {place.text()}: {name} must be from 1 to {limit} in every dimension (got "
                    f"{_shown(sizes)}): cl.launch_if launches nothing for an empty problem"
                ) from None
        return tuple(map(body.register, sizes))

    def bytes_(name: str, value: Any) -> tuple[Any, ...]:
        try:
            if is_symbolic(value):
                body.bounded("RANGE", body.where(predicate, value, 0), (4, 0), place)
            elif not 0 <= value < 1 << 32:
                raise OverflowError
        except OverflowError:
            raise OverflowError(
                f"at {place.text()}: {name} must be a number of bytes, an int from 0 to "
                f"2^32 - 1 (got {_shown((value,))})"
            ) from None
        return (body.register(value),)

    registers: dict[str, Callable[[str, Any], tuple[Any, ...]]] = {
        "required_dims": dims,
        "dims": dims,
        "bytes": bytes_,
        "int": lambda _, value: (body.register(value),),
        "switch": lambda _, __: (),
    }
    # Check the arguments before the dimensions, in the same order as a launch outside a body.
    # Both then report the same first mistake.
    parameters = tuple(
        RecordedArgument(body, kernel, index, value, predicate, place).recorded()
        for index, value in enumerate(args)
    )
    options = tuple(
        (name, registers[option.kind](name, configuration[name]))
        for name, option in OPTIONS.items()
        if is_symbolic(configuration[name]) or configuration[name] != option.default
    )
    condition = None if predicate is None else body.register(predicate)
    body.recorded.effects.append(Launch(kernel, condition, options, place, parameters))


def launch_if(condition: Any, launcher: Any, *args: Any) -> None:
    """Launch if a condition holds, and do nothing elsewhere.

    In the body of a function this needs no second path. An empty grid is not an error if the
    condition is false.

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

    Examples
    --------
    >>> @cl.function
    ... def scaled(x, factor: float):
    ...     y = cl.zeros_like(x)
    ...     cl.launch_if(x.size > 0, kernel[cl.ceildiv(x.size, 256), 256], y, x, factor, x.size)
    ...     return y
    >>> scaled(cl.empty(0), 2.0).size
    0
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
