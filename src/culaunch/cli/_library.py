"""The output of ``culaunch inspect`` for a library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import culaunch as cl
from culaunch._base.values import counted

if TYPE_CHECKING:
    from culaunch.triton import KernelSet

SUFFIX = ".culib"


def library_to_dict(path: str) -> dict[str, Any]:
    """Return the contents of a library: functions and kernels, or a Triton kernel."""
    library = cl.ship.load_library(path)
    if len(library) or library.kernels:
        return library.to_dict()
    return {"path": path, "format": "culib", "functions": [_load(path).to_manifest()]}


def library_lines(path: str) -> list[str]:
    """Return the lines to print: one for each kind of a function, or variant of a kernel."""
    library = cl.ship.load_library(path)
    if len(library) or library.kernels:
        return str(library).split("\n")
    kernels = _load(path)
    names = ", ".join(one.name for one in kernels.parameters)
    lines = [f"{path}: library", "", f"{kernels.name}({names}), {counted(len(kernels), 'variant')}"]
    if kernels.heuristics:
        lines.append(f"  every call must pass {', '.join(kernels.heuristics)}")
    if kernels.zeroes:
        lines.append(f"  {', '.join(kernels.zeroes)} set to zero before each launch")
    if kernels.blocks:
        lines.append(f"  blocks of {', '.join(kernels.blocks)} set before each launch")
    for name, value in kernels.computed.items():
        lines.append(f"  {name} = {value}")
    if kernels.grid is not None:
        lines.append(f"  grid {kernels.grid}")
    for one in kernels.variants:
        images = ", ".join(name for name in (one.image, one.ptx) if name)
        lines.append(
            f"  {one}; {32 * one.facts.num_warps} threads, {one.facts.shared} bytes shared, "
            f"Triton {one.facts.triton_version}; {images}"
        )
    return lines


def _load(path: str) -> KernelSet:
    # Images are inspected without the launch path, which this loads.
    from culaunch.triton import KernelSet

    return KernelSet.load(path)
