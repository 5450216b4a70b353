"""Configurations compiled by the workers of an executor, before the first is measured here."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._farm.run import checked_executor
from culaunch._function import Function
from culaunch._function.calling.specialize import explore_elsewhere

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Sequence

    from culaunch._tune.configs import Config


def compile_on_executor(
    target: Any,
    configs: Sequence[Config],
    arguments: tuple[Any, ...],
    executor: concurrent.futures.Executor,
) -> None:
    """Let workers trace a function under each configuration, to fill the caches.

    A failure there happens again here, and is reported, when the configuration is measured.

    Raises
    ------
    TypeError, ValueError
        If the target is not a function, or a worker could not find it.
    """
    checked_executor(executor)
    if not isinstance(target, Function) or not target._has_body:  # noqa: SLF001
        raise TypeError(
            "executor must be given only for a cl.function, whose configurations workers can "
            f"compile (got {spell(target)}). To compile a KernelSet with workers, pass executor= "
            "to culaunch.triton.compile"
        )
    kinds: dict[Any, None] = {}
    for config in configs:
        with contextlib.suppress(TypeError, ValueError):
            values = target._bind(arguments, dict(config))  # noqa: SLF001
            kinds[target._kind(values)] = None  # noqa: SLF001
    explore_elsewhere(target, tuple(kinds), False, executor, False, return_exceptions=True)
