"""How other libraries launch a kernel, answered with culaunch's way."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from culaunch._base.other_words import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")

# The names that other libraries use for the options of a launch.
OTHER_WORDS = {
    "args": "the arguments themselves, by position", "block_dim": "block", "block_size": "block",
    "blockdim": "block", "blockDim": "block", "blocks": "grid", "grid_dim": "grid",
    "grid_size": "grid", "griddim": "grid", "gridDim": "grid", "shared": "shared_memory",
    "shared_mem": "shared_memory", "shared_mem_bytes": "shared_memory",
    "sharedmem": "shared_memory", "shmem": "shared_memory", "smem": "shared_memory",
    "threads": "block",
}  # fmt: skip


def instead_of_a_call(name: str, args: tuple[object, ...]) -> str:
    """Word the launch to write instead of ``kernel(*args)``."""
    kernel = name if name.isidentifier() else "kernel"
    if len(args) < 2:
        return f"{kernel}[grid, block](...)"
    grid, block = (_sizes(one) for one in args[:2])
    if grid is None or block is None:
        return f"{kernel}[grid, block](...)"
    # CuPy's kernels are called like this, with a tuple of arguments at the end.
    return f"{kernel}[{grid}, {block}](...), with the arguments one by one"


def not_subscripted(function: F) -> F:
    """Let a method answer ``kernel.attributes["num_regs"]``, which is CuPy's spelling."""
    return cast("F", _Method(function))


class _Method:
    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, owner: object, kind: object = None) -> object:
        if owner is None:
            return self._function
        return functools.update_wrapper(_Bound(self._function, owner), self._function)


class _Bound(functools.partial[object]):
    def __getitem__(self, name: object) -> NoReturn:
        called = f"kernel.{cast('Any', self).__name__}"
        hint = suggestion("Kernel", name) if isinstance(name, str) else ""
        raise TypeError(f"{called} is a method, as in {called}(){hint}")


def _sizes(value: object) -> object:
    if not isinstance(value, tuple) or not 0 < len(value) <= 3:
        return None
    if any(type(n) is not int for n in value):
        return None
    return value if len(value) > 1 else value[0]
