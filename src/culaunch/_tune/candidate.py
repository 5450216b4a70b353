"""How the kinds of things that are tuned are called under a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._launch import Kernel, Launcher
from culaunch._triton.kernel_set import KernelSet
from culaunch._triton.native import native
from culaunch._tune.configs import Config, checked_key

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Caller:
    """A target and its way of being called."""

    name: str
    """The name of the kernel or the function."""
    bind: Callable[[Config], Callable[..., object]]
    """Returns the callable for a configuration."""
    parameters: tuple[str, ...] | None = None
    """The names that a key consists of; None if it consists of values."""

    def key_values(self, key: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values that the choice depends on."""
        if self.parameters is None:
            return checked_key(key)
        given = dict(zip(self.parameters, arguments, strict=False))
        for name in key:
            if name not in given:
                raise ValueError(
                    f"key must name arguments of {self.name} that the call passes , which are "
                    f"{', '.join(given)} (got {spell(name)})"
                )
        return checked_key(tuple(given[name] for name in key))


def caller_of(target: Any, grid: Any) -> Caller:
    """Say how a target is called.

    Raise TypeError if it is nothing to call, or a grid is given that it does not take, or misses.
    """
    name = str(getattr(target, "name", None) or getattr(target, "__name__", type(target).__name__))
    if isinstance(target, Launcher):
        raise TypeError(
            "target must not be a launcher, whose configuration is fixed: pass its kernel, and "
            "configurations with grid and block"
        )
    # The order matters, because a kernel and a set can also be subscripted.
    if isinstance(target, Kernel):
        _refuse(grid, "each configuration of a kernel of a module has its grid")
        return Caller(name, lambda config: target.configure(**config))
    parameters = None
    if isinstance(target, KernelSet):
        parameters = tuple(one.name for one in target.parameters)
        # A table would override every configuration under test.
        if target.table is not None:
            target = target._with(None)  # noqa: SLF001
        grid = target.grid if grid is None else grid
    if _is_tritons(type(target)):
        # Compare kernels, not launchers; and this must also run on the emulator.
        target = native(target)
    if hasattr(type(target), "__getitem__"):
        if grid is None:
            raise TypeError(f"grid must be given for {name}, which has Triton's launch syntax")
        return Caller(name, lambda config: _with(target[grid], config), parameters)
    if not callable(target):
        raise TypeError(
            "target must be a kernel, a KernelSet, a function or another callable (got "
            f"{spell(target)})"
        )
    _refuse(grid, "a function computes its own grid")
    return Caller(name, lambda config: _with(target, config))


def _is_tritons(kind: type) -> bool:
    """Whether ``@triton.jit`` made it, without importing Triton."""
    return any(
        (one.__module__, one.__name__) == ("triton.runtime.jit", "JITFunction")
        for one in kind.__mro__
    )


def _with(function: Callable[..., object], config: Config) -> Callable[..., object]:
    return lambda *arguments: function(*arguments, **config)


def _refuse(grid: Any, why: str) -> None:
    if grid is not None:
        raise TypeError(f"grid must be given only for objects with Triton's launch syntax: {why}")
