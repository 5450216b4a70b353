"""The launch configuration of a recorded launch."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from culaunch._base.checks import checked_flag
from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._function.symbols import is_symbolic


class Configuration(NamedTuple):
    """Grid, block and the rest, as a body gave them; numbers may be symbolic."""

    grid: tuple[Any, ...]
    block: tuple[Any, ...]
    cluster: tuple[Any, ...] | None = None
    preferred_cluster: tuple[Any, ...] | None = None
    shared_memory: Any = 0
    cooperative: bool = False
    programmatic: bool = False
    priority: Any = None

    def keywords(self) -> dict[str, Any]:
        """Return it as ``kernel.configure`` takes it."""
        return self._asdict()


def from_key(key: Any) -> Configuration:
    """Read what is in the brackets of ``kernel[grid, block, shared_memory, stream]``."""
    if not isinstance(key, tuple) or not 2 <= len(key) <= 4:
        raise TypeError(
            f"at {here().text()}: a kernel is launched with kernel[grid, block], "
            "kernel[grid, block, shared_memory] or kernel[grid, block, shared_memory, stream]"
        )
    grid, block, *rest = key
    return from_keywords(
        grid=grid,
        block=block,
        shared_memory=rest[0] if rest else 0,
        stream=rest[1] if len(rest) > 1 else None,
    )


def from_keywords(
    *,
    grid: Any,
    block: Any,
    cluster: Any = None,
    preferred_cluster: Any = None,
    shared_memory: Any = 0,
    stream: Any = None,
    cooperative: bool = False,
    programmatic: bool = False,
    priority: Any = None,
) -> Configuration:
    """Read the keywords of ``kernel.launch`` and ``kernel.configure``."""
    if stream is not None:
        raise TypeError(
            f"at {here().text()}: stream= in the body of a function: its launches run in the "
            "current stream of its arrays' framework; choose that around the call"
        )
    return Configuration(
        _dims("grid", grid),
        _dims("block", block),
        None if cluster is None else _dims("cluster", cluster),
        None if preferred_cluster is None else _dims("preferred_cluster", preferred_cluster),
        _number("shared_memory", shared_memory),
        checked_flag("cooperative", cooperative),
        checked_flag("programmatic", programmatic),
        None if priority is None else _number("priority", priority),
    )


def of_launcher(launcher: Any) -> Configuration:
    """Read the configuration of a launcher that was made outside of the body."""
    names = (*Configuration._fields, "stream")
    return from_keywords(**{name: getattr(launcher, name) for name in names})


def _dims(name: str, given: Any) -> tuple[Any, ...]:
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(sizes) <= 3:
        raise TypeError(
            f"at {here().text()}: {name} must be an int, or a tuple of 1 to 3 ints, each from 1 to "
            f"2^31 - 1 (got {spell(given)})"
        )
    numbers = [_number(name, size) for size in sizes]
    # Three of each from here on, as the driver has it.
    return (*numbers, *[1] * (3 - len(numbers)))


def _number(name: str, value: Any) -> Any:
    if is_symbolic(value):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"at {here().text()}: {name} must be an int (got {value!r})")
        return value
    if hasattr(value, "node"):  # a framework's symbolic size, which as an int is no longer symbolic
        return value
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"at {here().text()}: {name} must be an int (got {spell(value)})")
    return operator.index(value)
