"""The CUDA source of a program for one layout of its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._elementwise._helpers import PACK, helpers_for

if TYPE_CHECKING:
    from culaunch._elementwise import _dtypes as dt
    from culaunch._elementwise._program import Array, Program

BLOCK = 256  # threads; csrc/elementwise_layout.h has the same
PATCH = 4  # a thread of a tiled kernel computes 4 x 4 elements
TILE = 64  # and a block 64 x 64: 16 x 16 threads


@dataclass(frozen=True)
class Layout:
    """How the arrays of a call lie in memory, as far as the kernel depends on it.

    Attributes
    ----------
    kind : str
        ``"contiguous"``; ``"strided"``; or ``"tiled"``, where some array is contiguous along
        another dimension than the output.
    vector : int
        Elements of an array that are loaded or stored together.
    rank : int
        Dimensions, after those that can be one were made one.
    wide : bool
        Whether indices need 64 bits.
    classes : str
        Of each output and input: ``u`` contiguous along the innermost dimension, ``z`` one element
        there, ``b`` contiguous along the second, ``s`` anything else.
    """

    kind: str
    vector: int
    rank: int
    wide: bool
    classes: str

    @property
    def suffix(self) -> str:
        """Its part of a kernel's name."""
        rank = "" if self.kind == "contiguous" else f"{self.rank}d"
        vector = f"_x{self.vector}" if self.vector > 1 else ""
        return f"{self.kind}{rank}{vector}" + ("_64" if self.wide else "")


def kernel_name(program: Program, layout: Layout) -> str:
    """Give the name of the kernel: what it computes, in which type, for which layout."""
    dtype = program.outputs[0].dtype.name
    return f"{program.title}_{dtype}_{layout.suffix}"


def render(program: Program, layout: Layout) -> str:
    """Write the source of the kernel."""
    writer = {"contiguous": _contiguous, "strided": _strided, "tiled": _tiled}[layout.kind]
    loop, parameters = writer(program, layout)
    operands = [f"{array.dtype.storage}* {array.name}_out" for array in program.outputs]
    operands += [f"const {array.dtype.storage}* {array.name}_in" for array in program.inputs]
    operands += [f"{scalar.dtype.compute} {scalar.name}_scalar" for scalar in program.scalars]
    everything = ", ".join([*operands, *parameters])
    kernel = (
        f"__global__ void __launch_bounds__({BLOCK})\n{kernel_name(program, layout)}({everything}) "
        f"{{\n{loop}}}\n"
    )
    compute = _compute(program)
    needed = helpers_for(compute + kernel + program.preamble)
    parts = [PACK, needed, program.preamble, compute, kernel]
    return "\n".join(part for part in parts if part)


def unroll(program: Program, layout: Layout) -> int:
    """Give how many packs a thread has in flight: enough bytes for the memory, few registers."""
    arrays = max(1, sum(not array.is_raw for array in program.inputs))
    return max(1, min(4, 16 // layout.vector, 4 // arrays))


def _index_type(layout: Layout) -> str:
    return "unsigned long long" if layout.wide else "unsigned"


def _compute(program: Program) -> str:
    """Write the function of one element."""
    parameters = [f"{array.dtype.compute}& {array.name}" for array in program.outputs]
    parameters += [
            f"const {_raw_type(array)} {array.name}" if array.is_raw
            else f"{array.dtype.compute} {array.name}"
        for array in program.inputs
    ]  # fmt: skip
    parameters += [f"{scalar.dtype.compute} {scalar.name}" for scalar in program.scalars]
    if program.uses_index:
        parameters += ["const long long i", "const Indexer _ind"]
    body = "".join(f"  {line}\n" for line in program.body)
    return (
        f"// One element.\n__device__ __forceinline__ void compute({', '.join(parameters)}) {{\n"
        f"{body}}}\n"
    )


def _raw_type(array: Array) -> str:
    if array.dtype.is_half:
        return "RawHalf" if array.dtype.name == "float16" else "RawBfloat16"
    return f"{array.dtype.storage}*"


def _call(program: Program, inputs: dict[str, str], index: str, count: str) -> str:
    arguments = [f"{array.name}_result" for array in program.outputs]
    for array in program.inputs:
        if array.is_raw:
            raw = f"{array.name}_in"
            arguments.append(f"{_raw_type(array)}{{{raw}}}" if array.dtype.is_half else raw)
        else:
            arguments.append(_loaded(inputs[array.name], array.dtype))
    arguments += [f"{scalar.name}_scalar" for scalar in program.scalars]
    if program.uses_index:
        arguments += [f"(long long)({index})", f"Indexer{{(long long)({count})}}"]
    return f"compute({', '.join(arguments)});"


def _loaded(code: str, dtype: dt.DType) -> str:
    kind = {"float16": "half", "bfloat16": "bfloat16"}.get(dtype.name)
    return f"load_{kind}({code})" if kind else code


def _stored(array: Array) -> str:
    result = f"{array.name}_result"
    kind = {"float16": "half", "bfloat16": "bfloat16"}.get(array.dtype.name)
    return f"store_{kind}({result})" if kind else result


def _declared(program: Program) -> str:
    return " ".join(f"{array.dtype.compute} {array.name}_result;" for array in program.outputs)


def _mapped(program: Program) -> list[Array]:
    return [array for array in program.inputs if not array.is_raw]


def _pointer(array: Array) -> str:
    return f"{array.name}_{'out' if array.argument < 0 else 'in'}"


def _contiguous(program: Program, layout: Layout) -> tuple[str, list[str]]:
    vector, index, times = layout.vector, _index_type(layout), unroll(program, layout)
    inputs, outputs = _mapped(program), program.outputs
    lines = [f"const {index} packs = size / {vector};"]
    step = BLOCK * times
    lines += [
        f"for ({index} first = blockIdx.x * ({index}){step} + threadIdx.x; first < packs;",
        f"     first += gridDim.x * ({index}){step}) {{",
    ]
    lines += [f"  Pack<{a.dtype.storage}, {vector}> {a.name}_pack[{times}];" for a in inputs]
    at = f"first + u * {BLOCK}"
    if inputs:
        lines += ["#pragma unroll", f"  for (int u = 0; u < {times}; ++u) {{"]
        lines += [f"    if ({at} >= packs) continue;"]
        for a in inputs:
            pack = f"Pack<{a.dtype.storage}, {vector}>"
            source = f"reinterpret_cast<const {pack}*>({_pointer(a)})"
            lines.append(f"    {a.name}_pack[u] = {source}[{at}];")
        lines += ["  }"]
    lines += ["#pragma unroll", f"  for (int u = 0; u < {times}; ++u) {{"]
    lines += [f"    if ({at} >= packs) continue;"]
    lines += [f"    Pack<{a.dtype.storage}, {vector}> {a.name}_pack;" for a in outputs]
    lines += ["#pragma unroll", f"    for (int k = 0; k < {vector}; ++k) {{"]
    lines.append(f"      {_declared(program)}")
    values = {a.name: f"{a.name}_pack[u].at[k]" for a in inputs}
    lines.append("      " + _call(program, values, f"({at}) * {vector} + k", "size"))
    lines += [f"      {a.name}_pack.at[k] = {_stored(a)};" for a in outputs]
    lines += ["    }"]
    for a in outputs:
        target = f"reinterpret_cast<Pack<{a.dtype.storage}, {vector}>*>({_pointer(a)})"
        lines.append(f"    {target}[{at}] = {a.name}_pack;")
    lines += ["  }", "}"]
    if vector > 1:
        lines += [
            "// What is left over is less than a pack.",
            f"const {index} i = packs * {vector} + threadIdx.x;",
            "if (blockIdx.x == 0 && i < size) {",
            f"  {_declared(program)}",
            "  " + _call(program, {a.name: f"{_pointer(a)}[i]" for a in inputs}, "i", "size"),
            *(f"  {_pointer(a)}[i] = {_stored(a)};" for a in outputs),
            "}",
        ]
    return _indented(lines), [f"{index} size"]


def _strided(program: Program, layout: Layout) -> tuple[str, list[str]]:
    vector, index, times = layout.vector, _index_type(layout), unroll(program, layout)
    inputs, outputs = _mapped(program), program.outputs
    arrays = [*outputs, *inputs]
    offset = "long long" if layout.wide else "int"
    classes = dict(zip((a.name for a in arrays), layout.classes, strict=True))
    packed = {a.name for a in arrays if vector > 1 and classes[a.name] == "u"}
    step = BLOCK * times

    def width(array: Array) -> int:
        return vector if array.name in packed else 1

    lines = [
        f"for ({index} first = blockIdx.x * ({index}){step} + threadIdx.x; first < size;",
        f"     first += gridDim.x * ({index}){step}) {{",
    ]
    lines += [f"  Pack<{a.dtype.storage}, {width(a)}> {a.name}_pack[{times}];" for a in inputs]
    lines += [f"  {offset} {a.name}_at[{times}];" for a in outputs]
    lines += ["#pragma unroll", f"  for (int u = 0; u < {times}; ++u) {{"]
    lines += [f"    {index} rest = first + u * {BLOCK};", "    if (rest >= size) continue;"]
    for d in range(layout.rank - 1):
        quotient = f"rest / extent{d}" if layout.wide else f"divide{d}(rest)"
        size = f"extent{d}" if layout.wide else f"divide{d}.divisor"
        lines += [
            f"    const {index} after{d} = {quotient};",
            f"    const {offset} i{d} = rest - after{d} * {size};",
            f"    rest = after{d};",
        ]
    lines.append(f"    const {offset} i{layout.rank - 1} = rest;")
    parameters = [f"{index} size"]
    parameters += [
        f"{index} extent{d}" if layout.wide else f"Division divide{d}"
        for d in range(layout.rank - 1)
    ]
    for a in arrays:
        terms = []
        for d in range(layout.rank):
            if vector > 1 and d == 0:
                terms += [f"i0 * {vector}"] if a.name in packed else []
                continue
            parameters.append(f"{offset} {a.name}_stride{d}")
            terms.append(f"i{d} * {a.name}_stride{d}")
        place = " + ".join(terms) or "0"
        if a.argument < 0:
            lines.append(f"    {a.name}_at[u] = {place};")
        else:
            pack = f"Pack<{a.dtype.storage}, {width(a)}>"
            lines.append(
                f"    {a.name}_pack[u] = *reinterpret_cast<const {pack}*>({_pointer(a)} + {place});"
            )
    lines += ["  }", "#pragma unroll", f"  for (int u = 0; u < {times}; ++u) {{"]
    lines += [f"    if (first + u * {BLOCK} >= size) continue;"]
    lines += [f"    Pack<{a.dtype.storage}, {vector}> {a.name}_pack;" for a in outputs]
    lines += ["#pragma unroll", f"    for (int k = 0; k < {vector}; ++k) {{"]
    lines.append(f"      {_declared(program)}")
    values = {a.name: f"{a.name}_pack[u].at[{'k' if a.name in packed else 0}]" for a in inputs}
    element = f"(first + u * {BLOCK}) * ({index}){vector} + k"
    lines.append("      " + _call(program, values, element, f"size * {vector}"))
    lines += [f"      {a.name}_pack.at[k] = {_stored(a)};" for a in outputs]
    lines += ["    }"]
    for a in outputs:
        target = f"reinterpret_cast<Pack<{a.dtype.storage}, {vector}>*>"
        lines.append(f"    *{target}({_pointer(a)} + {a.name}_at[u]) = {a.name}_pack;")
    lines += ["  }", "}"]
    return _indented(lines), parameters


def _tiled(program: Program, layout: Layout) -> tuple[str, list[str]]:
    inputs, outputs = _mapped(program), program.outputs
    arrays = [*outputs, *inputs]
    classes = dict(zip((a.name for a in arrays), layout.classes, strict=True))
    outer = range(2, layout.rank)
    lines = [
        "// A warp takes 8 x 4 patches of 4 x 4 elements: whole sectors along both dimensions.",
        "const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
        f"const int column = (lane % 8 + warp % 2 * 8) * {PATCH};",
        f"const int row = (lane / 8 + warp / 2 * 4) * {PATCH};",
        "for (unsigned tile = blockIdx.x; tile < size; tile += gridDim.x) {",
        "  const unsigned after0 = divide0(tile), after1 = divide1(after0);",
        f"  const int i0 = (tile - after0 * divide0.divisor) * {TILE} + column;",
        f"  const int i1 = (after0 - after1 * divide1.divisor) * {TILE} + row;",
        "  if (i0 >= extent0 || i1 >= extent1) continue;",
        "  unsigned rest = after1;",
    ]
    parameters = ["unsigned size", "Division divide0", "Division divide1"]
    for d in outer[:-1]:
        parameters.append(f"Division divide{d}")
        lines += [
            f"  const unsigned after{d} = divide{d}(rest);",
            f"  const int i{d} = rest - after{d} * divide{d}.divisor;",
            f"  rest = after{d};",
        ]
    if outer:
        lines.append(f"  const int i{outer[-1]} = rest;")
    parameters += ["int extent0", "int extent1"]
    whole = f"i0 + {PATCH} <= extent0 && i1 + {PATCH} <= extent1"
    lines.append(f"  const bool is_whole = {whole};")
    for a in arrays:
        parameters += [f"int {a.name}_stride{d}" for d in range(layout.rank)]
        place = " + ".join(f"i{d} * {a.name}_stride{d}" for d in range(layout.rank))
        const = "" if a.argument < 0 else "const "
        lines.append(f"  {const}{a.dtype.storage}* {a.name}_at = {_pointer(a)} + {place};")
        lines.append(f"  {a.dtype.storage} {a.name}_patch[{PATCH}][{PATCH}];")
    for a in inputs:
        lines += _patch(a, classes[a.name], layout.vector, is_store=False)
    lines += ["#pragma unroll", f"  for (int r = 0; r < {PATCH}; ++r) {{", "#pragma unroll"]
    lines += [f"    for (int c = 0; c < {PATCH}; ++c) {{", f"      {_declared(program)}"]
    values = {a.name: f"{a.name}_patch[r][c]" for a in inputs}
    lines.append("      " + _call(program, values, "0", "0"))
    lines += [f"      {a.name}_patch[r][c] = {_stored(a)};" for a in outputs]
    lines += ["    }", "  }"]
    for a in outputs:
        lines += _patch(a, classes[a.name], layout.vector, is_store=True)
    lines += ["}"]
    return _indented(lines), parameters


def _patch(array: Array, kind: str, vector: int, *, is_store: bool) -> list[str]:
    """Write the loads of a patch, or its stores: together along the contiguous dimension."""
    name = array.name
    element = f"{name}_at[r * {name}_stride1 + c * {name}_stride0]"
    single = f"{element} = {name}_patch[r][c];" if is_store else (
        f"{name}_patch[r][c] = {element};"
    )  # fmt: skip
    lines = []
    if vector > 1 and kind in "ub":
        pack = f"Pack<{array.dtype.storage}, {PATCH}>"
        outer, inner = ("r", "c") if kind == "u" else ("c", "r")
        stride = f"{name}_stride{1 if kind == 'u' else 0}"
        const = "" if is_store else "const "
        place = f"reinterpret_cast<{const}{pack}*>({name}_at + {outer} * {stride})"
        lines += ["  if (is_whole) {", "#pragma unroll"]
        lines += [f"    for (int {outer} = 0; {outer} < {PATCH}; ++{outer}) {{"]
        copy = f"{name}_patch[r][c] = pack.at[{inner}];"
        if is_store:
            lines += [f"      {pack} pack;", "#pragma unroll"]
            copy = f"pack.at[{inner}] = {name}_patch[r][c];"
        else:
            lines += [f"      const {pack} pack = *{place};", "#pragma unroll"]
        lines += [f"      for (int {inner} = 0; {inner} < {PATCH}; ++{inner}) {copy}"]
        if is_store:
            lines += [f"      *{place} = pack;"]
        lines += ["    }", "  } else {"]
    else:
        lines += ["  {"]
    return [
        *lines,
        "#pragma unroll",
        f"    for (int r = 0; r < {PATCH}; ++r) {{",
        "#pragma unroll",
        f"      for (int c = 0; c < {PATCH}; ++c) {{",
        f"        if (i0 + c < extent0 && i1 + r < extent1) {single}",
        "      }",
        "    }",
        "  }",
    ]


def _indented(lines: list[str]) -> str:
    return "".join((line if line.startswith("#") else "  " + line) + "\n" for line in lines)
