"""The loop over arrays that are contiguous along different dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.loop import (
    PATCH,
    TILE,
    call_compute,
    declared,
    indented,
    mapped,
    pointer,
    stored,
)

if TYPE_CHECKING:
    from culaunch._elementwise.element_code import Array, ElementCode
    from culaunch._elementwise.loop import Layout


def tiled(code: ElementCode, layout: Layout) -> tuple[str, list[str]]:
    """Write the loop over tiles of 64 x 64 elements, and its parameters."""
    inputs, outputs = mapped(code), code.outputs
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
    # At the array's edges, a patch is read and written element by element.
    whole = f"i0 + {PATCH} <= extent0 && i1 + {PATCH} <= extent1"
    lines.append(f"  const bool is_whole = {whole};")
    for a in arrays:
        parameters += [f"int {a.name}_stride{d}" for d in range(layout.rank)]
        place = " + ".join(f"i{d} * {a.name}_stride{d}" for d in range(layout.rank))
        const = "" if a.argument < 0 else "const "
        lines.append(f"  {const}{dt.storage(a.dtype)}* {a.name}_at = {pointer(a)} + {place};")
        lines.append(f"  {dt.storage(a.dtype)} {a.name}_patch[{PATCH}][{PATCH}];")
    for a in inputs:
        lines += _patch(a, classes[a.name], layout.vector, is_store=False)
    lines += ["#pragma unroll", f"  for (int r = 0; r < {PATCH}; ++r) {{", "#pragma unroll"]
    lines += [f"    for (int c = 0; c < {PATCH}; ++c) {{", f"      {declared(code)}"]
    values = {a.name: f"{a.name}_patch[r][c]" for a in inputs}
    lines.append("      " + call_compute(code, values, "0", "0"))
    lines += [f"      {a.name}_patch[r][c] = {stored(a)};" for a in outputs]
    lines += ["    }", "  }"]
    for a in outputs:
        lines += _patch(a, classes[a.name], layout.vector, is_store=True)
    lines += ["}"]
    return indented(lines), parameters


def _patch(array: Array, kind: str, vector: int, *, is_store: bool) -> list[str]:
    """Write the loads or the stores of a patch, together along the contiguous dimension."""
    name = array.name
    element = f"{name}_at[r * {name}_stride1 + c * {name}_stride0]"
    single = f"{element} = {name}_patch[r][c];" if is_store else (
        f"{name}_patch[r][c] = {element};"
    )  # fmt: skip
    lines = []
    if vector > 1 and kind in "ub":
        pack = f"Pack<{dt.storage(array.dtype)}, {PATCH}>"
        # Pack rows if the first dimension is contiguous, and columns if the second one is.
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
