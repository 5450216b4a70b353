"""Several variants of a Triton kernel: compiled here, or by the workers of an executor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._farm.by_name import find, name_of
from culaunch._farm.progress import checked_progress
from culaunch._farm.run import checked_executor, run_all
from culaunch._farm.task import Task
from culaunch._triton.compiling.compile_variant import compile_variant
from culaunch._triton.compiling.decorated import Decorated

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Sequence

    from culaunch._farm.progress import Progress
    from culaunch._triton.compiling.signature import Argument
    from culaunch._triton.saved.variant import SavedVariant


@dataclass(frozen=True)
class VariantRequest:
    """One variant to compile."""

    arguments: Sequence[Argument]
    arch: str
    options: dict[str, Any]
    keep_ptx: bool


def compile_variants(
    function: Any,
    requests: Sequence[VariantRequest],
    executor: concurrent.futures.Executor | None,
    progress: bool | Callable[[Progress], object],
) -> tuple[list[SavedVariant], dict[str, bytes]]:
    """Compile variants of a kernel; return them in order, and their images by name.

    Raises
    ------
    CompileError
        If Triton cannot compile one.
    ValueError
        If workers could not find the kernel.
    """
    checked_progress(progress)
    members: dict[str, bytes] = {}
    if executor is None:
        return [_compile(function, one, members) for one in requests], members
    checked_executor(executor)
    module, name = name_of("the kernel", function.fn)
    # Find the kernel by name, as a worker will. For a redefined kernel, or one inside a function,
    # the worker would compile something else.
    if Decorated.of(find(module, name)).function is not function:
        raise ValueError(f"{module}.{name} is not the kernel to compile")
    tasks = [
        Task(
            _compile_on_executor,
            {"module": module, "name": name, "request": one},
            f"variant {index} of {name} for {one.arch}",
        )
        for index, one in enumerate(requests)
    ]
    variants = []
    for variant, images in run_all(tasks, executor, progress=progress):
        variants.append(variant)
        members.update(images)
    return variants, members


def _compile(function: Any, one: VariantRequest, members: dict[str, bytes]) -> SavedVariant:
    return compile_variant(function, one.arguments, one.arch, one.options, one.keep_ptx, members)


def _compile_on_executor(
    module: str, name: str, request: VariantRequest
) -> tuple[SavedVariant, dict[str, bytes]]:
    """Compile a variant in a worker; the result contains only this variant's images."""
    members: dict[str, bytes] = {}
    return _compile(Decorated.of(find(module, name)).function, request, members), members
