"""Loops over contiguous arrays, and over strided or broadcast ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.loop import (
    BLOCK,
    call_compute,
    declared,
    indented,
    index_type,
    mapped,
    pointer,
    stored,
    unroll,
)

if TYPE_CHECKING:
    from culaunch._elementwise.element_code import Array, ElementCode
    from culaunch._elementwise.loop import Layout


def contiguous(code: ElementCode, layout: Layout) -> tuple[str, list[str]]:
    """Write the loop over contiguous arrays, and its parameters."""
    vector, index, times = layout.vector, index_type(layout), unroll(code, layout)
    inputs, outputs = mapped(code), code.outputs
    lines = [f"const {index} packs = size / {vector};"]
    step = BLOCK * times
    lines += [
        f"for ({index} first = blockIdx.x * ({index}){step} + threadIdx.x; first < packs;",
        f"     first += gridDim.x * ({index}){step}) {{",
    ]
    lines += [f"  Pack<{dt.storage(a.dtype)}, {vector}> {a.name}_pack[{times}];" for a in inputs]
    # Adjacent threads read adjacent packs. A thread's own packs are a block apart.
    at = f"first + u * {BLOCK}"
    # Load everything of a thread before its first computation, so several loads are in flight.
    if inputs:
        lines += ["#pragma unroll", f"  for (int u = 0; u < {times}; ++u) {{"]
        lines += [f"    if ({at} >= packs) continue;"]
        for a in inputs:
            pack = f"Pack<{dt.storage(a.dtype)}, {vector}>"
            source = f"reinterpret_cast<const {pack}*>({pointer(a)})"
            lines.append(f"    {a.name}_pack[u] = {source}[{at}];")
        lines += ["  }"]
    lines += ["#pragma unroll", f"  for (int u = 0; u < {times}; ++u) {{"]
    lines += [f"    if ({at} >= packs) continue;"]
    lines += [f"    Pack<{dt.storage(a.dtype)}, {vector}> {a.name}_pack;" for a in outputs]
    lines += ["#pragma unroll", f"    for (int k = 0; k < {vector}; ++k) {{"]
    lines.append(f"      {declared(code)}")
    values = {a.name: f"{a.name}_pack[u].at[k]" for a in inputs}
    lines.append("      " + call_compute(code, values, f"({at}) * {vector} + k", "size"))
    lines += [f"      {a.name}_pack.at[k] = {stored(a)};" for a in outputs]
    lines += ["    }"]
    for a in outputs:
        target = f"reinterpret_cast<Pack<{dt.storage(a.dtype)}, {vector}>*>({pointer(a)})"
        lines.append(f"    {target}[{at}] = {a.name}_pack;")
    lines += ["  }", "}"]
    if vector > 1:
        lines += [
            "// The rest is less than a pack.",
            f"const {index} i = packs * {vector} + threadIdx.x;",
            "if (blockIdx.x == 0 && i < size) {",
            f"  {declared(code)}",
            "  " + call_compute(code, {a.name: f"{pointer(a)}[i]" for a in inputs}, "i", "size"),
            *(f"  {pointer(a)}[i] = {stored(a)};" for a in outputs),
            "}",
        ]
    return indented(lines), [f"{index} size"]


def strided(code: ElementCode, layout: Layout) -> tuple[str, list[str]]:
    """Write the loop over arrays with strides, and its parameters."""
    vector, index, times = layout.vector, index_type(layout), unroll(code, layout)
    inputs, outputs = mapped(code), code.outputs
    arrays = [*outputs, *inputs]
    offset = "long long" if layout.wide else "int"
    classes = dict(zip((a.name for a in arrays), layout.classes, strict=True))
    # The innermost dimension of these arrays has stride 1, and is counted in packs. The others are
    # read element by element.
    packed = {a.name for a in arrays if vector > 1 and classes[a.name] == "u"}
    step = BLOCK * times

    def width(array: Array) -> int:
        return vector if array.name in packed else 1

    lines = [
        f"for ({index} first = blockIdx.x * ({index}){step} + threadIdx.x; first < size;",
        f"     first += gridDim.x * ({index}){step}) {{",
    ]
    lines += [f"  Pack<{dt.storage(a.dtype)}, {width(a)}> {a.name}_pack[{times}];" for a in inputs]
    lines += [f"  {offset} {a.name}_at[{times}];" for a in outputs]
    lines += ["#pragma unroll", f"  for (int u = 0; u < {times}; ++u) {{"]
    lines += [f"    {index} rest = first + u * {BLOCK};", "    if (rest >= size) continue;"]
    for d in range(layout.rank - 1):
        # A division by a number known at the launch becomes a multiplication. With 64 bits, this
        # would cost more than it saves.
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
            pack = f"Pack<{dt.storage(a.dtype)}, {width(a)}>"
            lines.append(
                f"    {a.name}_pack[u] = *reinterpret_cast<const {pack}*>({pointer(a)} + {place});"
            )
    lines += ["  }", "#pragma unroll", f"  for (int u = 0; u < {times}; ++u) {{"]
    lines += [f"    if (first + u * {BLOCK} >= size) continue;"]
    lines += [f"    Pack<{dt.storage(a.dtype)}, {vector}> {a.name}_pack;" for a in outputs]
    lines += ["#pragma unroll", f"    for (int k = 0; k < {vector}; ++k) {{"]
    lines.append(f"      {declared(code)}")
    values = {a.name: f"{a.name}_pack[u].at[{'k' if a.name in packed else 0}]" for a in inputs}
    element = f"(first + u * {BLOCK}) * ({index}){vector} + k"
    lines.append("      " + call_compute(code, values, element, f"size * {vector}"))
    lines += [f"      {a.name}_pack.at[k] = {stored(a)};" for a in outputs]
    lines += ["    }"]
    for a in outputs:
        target = f"reinterpret_cast<Pack<{dt.storage(a.dtype)}, {vector}>*>"
        lines.append(f"    *{target}({pointer(a)} + {a.name}_at[u]) = {a.name}_pack;")
    lines += ["  }", "}"]
    return indented(lines), parameters
