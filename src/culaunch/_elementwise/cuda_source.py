"""The CUDA source of a kernel: its code for one element in a loop for one layout of its arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.helper_files import helpers_for, pack
from culaunch._elementwise.loop import BLOCK, raw_type
from culaunch._elementwise.strided import contiguous, strided
from culaunch._elementwise.tiled import tiled

if TYPE_CHECKING:
    from culaunch._elementwise.element_code import ElementCode
    from culaunch._elementwise.loop import Layout


def kernel_name(code: ElementCode, layout: Layout) -> str:
    """Return the name of the kernel: its computation, its type and its layout."""
    dtype = code.outputs[0].dtype.name
    return f"{code.title}_{dtype}_{layout.suffix}"


def render(code: ElementCode, layout: Layout) -> str:
    """Write the source of the kernel."""
    writer = {"contiguous": contiguous, "strided": strided, "tiled": tiled}[layout.kind]
    loop, parameters = writer(code, layout)
    operands = [f"{dt.storage(array.dtype)}* {array.name}_out" for array in code.outputs]
    operands += [f"const {dt.storage(array.dtype)}* {array.name}_in" for array in code.inputs]
    operands += [f"{dt.compute(scalar.dtype)} {scalar.name}_scalar" for scalar in code.scalars]
    everything = ", ".join([*operands, *parameters])
    kernel = (
        f"__global__ void __launch_bounds__({BLOCK})\n{kernel_name(code, layout)}({everything}) "
        f"{{\n{loop}}}\n"
    )
    # One element's code does not depend on the layout. It comes before the loop, so sources for two
    # layouts begin alike.
    compute = _compute(code)
    needed = helpers_for(compute + kernel + code.preamble)
    parts = [pack(), needed, code.preamble, compute, kernel]
    return "\n".join(part for part in parts if part)


def _compute(code: ElementCode) -> str:
    """Write the function of one element."""
    parameters = [f"{dt.compute(array.dtype)}& {array.name}" for array in code.outputs]
    parameters += [
            f"const {raw_type(array)} {array.name}" if array.is_raw
            else f"{dt.compute(array.dtype)} {array.name}"
        for array in code.inputs
    ]  # fmt: skip
    parameters += [f"{dt.compute(scalar.dtype)} {scalar.name}" for scalar in code.scalars]
    if code.uses_index:
        parameters += ["const long long i", "const Indexer _ind"]
    body = "".join(f"  {line}\n" for line in code.body)
    return (
        f"// One element.\n__device__ __forceinline__ void compute({', '.join(parameters)}) {{\n"
        f"{body}}}\n"
    )
