"""What the decorators of a kernel choose: copies of them run, which launch natively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._triton.upstream.native_half import ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Callable

# What a copy of an autotuner that decides must not give back.
_OF_THE_COPY = {"fn", "do_bench", "_do_bench", "_bench", ATTRIBUTE}


@dataclass(frozen=True)
class Decision:
    """What the decorators chose for a call that they have launched.

    Attributes
    ----------
    settings : dict
        By name: arguments of the kernel, and options.
    replaced : frozenset of str
        Those that stand in the place of what the call gave.
    configs : tuple of (autotuner, Config)
    is_kept : bool
        Whether another call for which the same is read is decided in the same way.
    result : object
        What the call gives.
    """

    settings: dict[str, Any]
    replaced: frozenset[str]
    configs: tuple[tuple[Any, Any], ...]
    is_kept: bool
    result: Any


class NotMeasured(Exception):  # noqa: N818 - no error: it is measured then
    """An autotuner knows no configuration for a key."""


class Recorder:
    """Stands in the place of a JIT function whose decorators decide, and notes what they say."""

    def __init__(
        self, function: Any, launch: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        self.fn = function
        self.count = 0
        # Of the last launch.
        self.grid: Any = None
        self.args: tuple[Any, ...] = ()
        self.final: dict[str, Any] = {}
        self.result: Any = None
        self._launch = launch

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch natively."""
        self.count += 1
        self.grid, self.args, self.final = grid, args, kwargs
        if warmup:
            return self.fn.run(*args, grid=grid, warmup=True, **kwargs)
        self.result = self._launch(grid, args, kwargs)
        return self.result

    def has(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the last launch had these: the same objects."""
        missing = object()
        return (
            self.grid is grid
            and len(self.args) == len(args)
            and all(one is other for one, other in zip(self.args, args, strict=True))
            and all(self.final.get(name, missing) is value for name, value in kwargs.items())
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fn, name)


# Python's own errors name what was called.
Recorder.run.__module__, Recorder.run.__qualname__ = "triton.runtime.jit", "JITFunction.run"


def refuse_to_measure(*_: Any, **__: Any) -> None:
    """Raise: an autotuner would measure now."""
    raise NotMeasured


def give_back(made: Any, tuner: Any) -> None:
    """Set on an autotuner what its copy, which ran, noted."""
    own = vars(tuner)
    for name, value in vars(made).items():
        # Everything the copy noted is given back, by whatever name: subclasses of Triton's
        # autotuner have results of their own.
        if name not in _OF_THE_COPY and own.get(name, made) is not value:
            own[name] = value
