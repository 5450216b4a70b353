"""The launch configuration of a recorded launch."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag
from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._function.symbolic.symbols import is_symbolic
from culaunch._launch.launches.launch_options import OPTIONS, are_options, refuse_options

if TYPE_CHECKING:
    from collections.abc import Callable


# The launch options that a body gave, by name and in the options' order. Numbers may be symbolic,
# and omitted options have their defaults.
Configuration = dict[str, Any]


def from_key(key: Any) -> Configuration:
    """Read the brackets of ``kernel[grid, block, shared_memory, stream]``."""
    if not isinstance(key, tuple) or not 2 <= len(key) <= 4:
        raise TypeError(
            f"at {here().text()}: launch a kernel with kernel[grid, block], kernel[grid, block, "
            f"shared_memory] or kernel[grid, block, shared_memory, stream] (got {spell(key)} in "
            "the brackets)"
        )
    grid, block, *rest = key
    return from_keywords(
        grid=grid,
        block=block,
        shared_memory=rest[0] if rest else 0,
        stream=rest[1] if len(rest) > 1 else None,
    )


def from_keywords(**given: Any) -> Configuration:
    """Read the keywords of ``kernel.launch`` and ``kernel.configure``."""
    if not are_options(given):
        refuse_options("configure", given)
    if given.get("stream") is not None:
        raise TypeError(
            f"at {here().text()}: stream must not be given in the body of a function, whose "
            "launches run in the current stream of the arrays' framework: select that stream "
            "around the call"
        )
    return {
        name: _READERS[option.kind](name, given.get(name, option.default))
        for name, option in OPTIONS.items()
    }


def of_launcher(launcher: Any) -> Configuration:
    """Read the configuration of a launcher made outside the body."""
    return from_keywords(**{name: getattr(launcher, name) for name in OPTIONS})


def _dims(name: str, given: Any) -> tuple[Any, ...]:
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(sizes) <= 3:
        raise TypeError(
            f"at {here().text()}: {name} must be an int, or a tuple of 1 to 3 ints, each from 1 to "
            f"2^31 - 1 (got {spell(given)})"
        )
    numbers = [_number(name, size) for size in sizes]
    # From here on, there are three of each, as in the driver.
    return (*numbers, *[1] * (3 - len(numbers)))


def _optional(read: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, given: None if given is None else read(name, given)


def _number(name: str, value: Any) -> Any:
    if is_symbolic(value):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"at {here().text()}: {name} must be an int (got {value!r})")
        return value
    if hasattr(value, "node"):  # a framework's symbolic size, which int() would make a plain number
        return value
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"at {here().text()}: {name} must be an int (got {spell(value)})")
    return operator.index(value)


# The reader of each kind of option's value.
_READERS: dict[str, Callable[[str, Any], Any]] = {
    "required_dims": _dims,
    "bytes": _number,
    "stream": lambda _, given: given,
    "dims": _optional(_dims),
    "switch": checked_flag,
    "int": _optional(_number),
}
