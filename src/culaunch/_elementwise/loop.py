"""The common part of the loops in generated kernels: layouts, loads, stores, the element's call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._core import NUMBERS
from culaunch._elementwise import dtypes as dt

if TYPE_CHECKING:
    from culaunch._elementwise.element_code import Array, ElementCode

BLOCK = NUMBERS["elementwise"]["BLOCK"]  # threads
PATCH = 4  # a thread of a tiled kernel computes 4 x 4 elements
TILE = NUMBERS["elementwise"]["TILE"]  # and a block 64 x 64: 16 x 16 threads


@dataclass(frozen=True)
class Layout:
    """The memory layout of a call's arrays, as far as the kernel depends on it."""

    kind: str
    """``"contiguous"``, ``"strided"``, or ``"tiled"`` if some array is contiguous along another
    dimension than the output."""
    vector: int
    """Elements of an array that are loaded or stored together."""
    rank: int
    """Number of dimensions, after merging those that can be merged."""
    wide: bool
    """Whether indices need 64 bits."""
    classes: str
    """For each output and input: ``u`` if contiguous along the innermost dimension, ``z`` for one
    element there, ``b`` if contiguous along the second one, ``s`` for anything else."""
    small: bool = False
    """Whether a thread processes one pack, to spread few elements over the device."""

    @property
    def suffix(self) -> str:
        """Its part of a kernel's name."""
        rank = "" if self.kind == "contiguous" else f"{self.rank}d"
        vector = f"_x{self.vector}" if self.vector > 1 else ""
        return (
            f"{self.kind}{rank}{vector}"
            + ("_64" if self.wide else "")
            + ("_small" if self.small else "")
        )


def unroll(code: ElementCode, layout: Layout) -> int:
    """Return how many packs a thread has in flight: enough for the memory, with few registers."""
    if layout.small:
        return 1
    # Each array's packs are in registers together, so more arrays mean fewer packs of each.
    arrays = max(1, sum(not array.is_raw for array in code.inputs))
    return max(1, min(4, 16 // layout.vector, 4 // arrays))


def index_type(layout: Layout) -> str:
    """Return the C++ type of indices."""
    return "unsigned long long" if layout.wide else "unsigned"


def call_compute(code: ElementCode, inputs: dict[str, str], index: str, count: str) -> str:
    """Write the call that computes one element."""
    arguments = [f"{array.name}_result" for array in code.outputs]
    for array in code.inputs:
        if array.is_raw:
            raw = f"{array.name}_in"
            arguments.append(f"{raw_type(array)}{{{raw}}}" if array.dtype.is_half else raw)
        else:
            arguments.append(loaded(inputs[array.name], array.dtype))
    arguments += [f"{scalar.name}_scalar" for scalar in code.scalars]
    if code.uses_index:
        arguments += [f"(long long)({index})", f"Indexer{{(long long)({count})}}"]
    return f"compute({', '.join(arguments)});"


def declared(code: ElementCode) -> str:
    """Write the declarations of the results."""
    return " ".join(f"{dt.compute(array.dtype)} {array.name}_result;" for array in code.outputs)


def mapped(code: ElementCode) -> list[Array]:
    """Return the inputs that are read element by element."""
    return [array for array in code.inputs if not array.is_raw]


def pointer(array: Array) -> str:
    """Return the name of the parameter that points to an array."""
    return f"{array.name}_{'out' if array.argument < 0 else 'in'}"


def loaded(code: str, dtype: dt.DType) -> str:
    """Write the conversion from the type in memory to the computed type."""
    kind = {"float16": "half", "bfloat16": "bfloat16"}.get(dtype.name)
    return f"load_{kind}({code})" if kind else code


def stored(array: Array) -> str:
    """Write the conversion of a result to the type in memory."""
    result = f"{array.name}_result"
    kind = {"float16": "half", "bfloat16": "bfloat16"}.get(array.dtype.name)
    return f"store_{kind}({result})" if kind else result


def raw_type(array: Array) -> str:
    """Return the C++ type of a raw argument."""
    if array.dtype.is_half:
        return "RawHalf" if array.dtype.name == "float16" else "RawBfloat16"
    return f"{dt.storage(array.dtype)}*"


def indented(lines: list[str]) -> str:
    """Join lines, two spaces in; directives start at the margin."""
    return "".join((line if line.startswith("#") else "  " + line) + "\n" for line in lines)
