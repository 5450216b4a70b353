"""The choices of a kernel's decorators: copies of them run and launch natively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._triton.upstream.native_half import ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Callable

# The attributes that a deciding copy of an autotuner must not copy back.
_OF_THE_COPY = {"fn", "do_bench", "_do_bench", "_bench", ATTRIBUTE}


@dataclass(frozen=True)
class Decision:
    """The decorators' choice for a call that they have launched."""

    settings: dict[str, Any]
    """By name: arguments of the kernel, and options."""
    replaced: frozenset[str]
    """Those that replace an argument of the call."""
    configs: tuple[tuple[Any, Any], ...]
    """Pairs of an autotuner and its ``Config``."""
    is_kept: bool
    """Whether the choice also holds for other calls with the same values read."""
    result: Any
    """The result of the call."""


class NotMeasured(Exception):  # noqa: N818 - no error: it is measured then
    """An autotuner knows no configuration for a key."""


class Recorder:
    """Replaces a JIT function while its decorators decide, and records their choices."""

    def __init__(
        self, function: Any, launch: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        self.fn = function
        self.count = 0
        # The grid and arguments of the last launch.
        self.grid: Any = None
        self.args: tuple[Any, ...] = ()
        self.final: dict[str, Any] = {}
        self.result: Any = None
        self._launch = launch

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Record the choices, and launch natively."""
        self.count += 1
        self.grid, self.args, self.final = grid, args, kwargs
        if warmup:
            return self.fn.run(*args, grid=grid, warmup=True, **kwargs)
        self.result = self._launch(grid, args, kwargs)
        return self.result

    def has(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the last launch had these identical objects."""
        missing = object()
        return (
            self.grid is grid
            and len(self.args) == len(args)
            and all(one is other for one, other in zip(self.args, args, strict=True))
            and all(self.final.get(name, missing) is value for name, value in kwargs.items())
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fn, name)


# Python's own errors name the called object.
Recorder.run.__module__, Recorder.run.__qualname__ = "triton.runtime.jit", "JITFunction.run"


def refuse_to_measure(*_: Any, **__: Any) -> None:
    """Raise, because an autotuner would measure now."""
    raise NotMeasured


def give_back(made: Any, tuner: Any) -> None:
    """Copy the results of an autotuner's copy to the autotuner after a run."""
    own = vars(tuner)
    for name, value in vars(made).items():
        # Copy every new attribute under any name, because subclasses of Triton's autotuner have
        # their own.
        if name not in _OF_THE_COPY and own.get(name, made) is not value:
            own[name] = value
