"""Launch one planted bug, or its correction, on the driver in use."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

import culaunch as cl
from culaunch import testing
from planted_bugs.table import ARCH, FOLDER, Array, Unwritten

if TYPE_CHECKING:
    from planted_bugs.table import Bug


def image_of(source: str, *, fixed: bool) -> cl.Image:
    """Compile a source with its bugs, or with their corrections, for the driver in use."""
    # Machine code for a GPU: line information is lost if the driver compiles PTX.
    is_emulated = cl.driver.driver_name() == "emulator"
    return _compiled(source, fixed, ARCH.get(source, "compute_80") if is_emulated else None)


@functools.cache
def _compiled(source: str, fixed: bool, arch: str | None) -> cl.Image:
    return cl.compile(
        (FOLDER / f"{source}.cu").read_text(),
        arch=arch,
        std="c++17",
        name=f"{source}.cu",
        include_dirs=[FOLDER],
        line_info=True,
        defines={"FIXED": 1} if fixed else {},
    )


def launch(bug: Bug, *, fixed: bool = False) -> None:
    """Launch a bug and wait for its end.

    Raises
    ------
    culaunch.DriverError
        If the driver reports an error of the kernel.
    """
    kernel = cl.load(image_of(bug.source, fixed=fixed))[bug.name]
    options = {name: value for name, value in bug.launch.items() if name != "time_limit"}
    arguments = [_make(argument) for argument in bug.arguments]
    kernel.configure(grid=bug.grid, block=bug.block, **options)(*arguments)
    cl.synchronize()


def _make(argument: Any) -> Any:
    if isinstance(argument, Unwritten):
        return cl.empty(argument.size, "i4")
    if not isinstance(argument, Array):
        return argument
    values = np.arange(argument.size, dtype=np.int32)
    if argument.value is not None:
        values[:] = argument.value
    return testing.to_driver(values)[: argument.shown]
