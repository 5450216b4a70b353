"""The launches that operators make: recorded, and made again in either way."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from overhead.timing import python_burst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overhead.timing import Burst

WAYS = ("Triton", "native")
# The quotients of these two are taken round by round.
SHARE = "native / Triton"
# A third one for whole operators: their cost when launching is free.
NO_LAUNCH = "no launch"
# And how many launches one of them makes.
LAUNCHES = "launches"


@dataclass(frozen=True)
class Launch:
    """One launch: ``kernel[grid](*args, **kwargs)``."""

    operator: str
    kernel: Any
    grid: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def function(self) -> Any:
        """The JIT function below the decorators."""
        kernel = self.kernel
        while type(kernel).__name__ in ("Autotuner", "CachedAutotuner", "Heuristics"):
            kernel = kernel.fn
        return kernel

    @property
    def decorators(self) -> tuple[str, ...]:
        """The names of the decorators' classes, outermost first."""
        names = []
        kernel = self.kernel
        while kernel is not self.function:
            names.append(type(kernel).__name__)
            kernel = kernel.fn
        return tuple(names)

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a key; launches with equal keys are measured once."""
        return (id(self.kernel), len(self.args), tuple(sorted(self.kwargs)), callable(self.grid))

    def burst(self) -> Burst:
        """Make a burst of it, spelt as in a program."""
        names = {f"a{i}": value for i, value in enumerate(self.args)}
        keywords = {f"k_{name}": value for name, value in self.kwargs.items()}
        call = ", ".join([*names, *(f"{name}=k_{name}" for name in self.kwargs)])
        return python_burst(
            f"kernel[grid]({call})", kernel=self.kernel, grid=self.grid, **names, **keywords
        )


@contextlib.contextmanager
def recorded(into: list[Launch], operator: str) -> Iterator[None]:
    """Note every launch that a program makes in the block, in Triton's way."""
    from triton.runtime.jit import KernelInterface

    before = KernelInterface.__getitem__

    def subscript(kernel: Any, grid: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            into.append(Launch(operator, kernel, grid, args, kwargs))
            return before(kernel, grid)(*args, **kwargs)

        return call

    KernelInterface.__getitem__ = subscript
    try:
        yield
    finally:
        KernelInterface.__getitem__ = before


class Ways:
    """Triton's classes as they are, as ``install`` makes them, or without launches."""

    def __init__(self) -> None:
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime import autotuner, jit

        from culaunch.triton import install

        subscripted = (jit.JITFunction, autotuner.Autotuner, autotuner.Heuristics)
        # Whatever is changed, those that they are made from among it.
        all_of_them = (*subscripted, CompiledKernel)
        kinds = {kind for one in all_of_them for kind in one.__mro__ if kind is not object}
        before = [(kind, dict(vars(kind))) for kind in kinds]
        install()
        after = [(kind, dict(vars(kind))) for kind in kinds]
        changed = {
            (kind, name)
            for (kind, was), (_, now) in zip(before, after, strict=True)
            for name in now
            if was.get(name) is not now[name]
        }
        changed |= {(kind, "__getitem__") for kind in subscripted}
        states = {"Triton": dict(before), "native": dict(after)}
        self._methods = {
            way: {(kind, name): found[kind].get(name) for kind, name in changed}
            for way, found in states.items()
        }
        nothing = {(kind, "__getitem__"): _nothing() for kind in subscripted}
        self._methods[NO_LAUNCH] = {**self._methods["Triton"], **nothing}
        self._way = "native"

    def use(self, way: str) -> None:
        """Use one way from now on.

        If it is already in use, nothing changes. Otherwise the checks of the classes would run
        again during the timing.
        """
        if way == self._way:
            return
        self._way = way
        for (kind, name), method in self._methods[way].items():
            if method is not None:
                setattr(kind, name, method)
            elif name in vars(kind):
                delattr(kind, name)

    def burst(self, way: str, burst: Burst) -> Burst:
        """Make a burst that uses one way; the change is not timed."""

        def timed(count: int) -> int:
            self.use(way)
            return burst(count)

        return timed


def _nothing() -> Any:
    """Return a stand-in for ``kernel[grid]``: C that accepts anything and does nothing."""
    os.environ["PYTHONBREAKPOINT"] = "0"
    return staticmethod(functools.partial(getattr, sys, "breakpointhook"))
