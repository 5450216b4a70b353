"""wmma: the older matrix instructions, whose fragment layout PTX leaves open.

Therefore this module defines its own layout. The elements of A by rows, of B by columns, and of C
and D by rows, are dealt to the lanes in order. Each lane gets as many as its registers hold. If the
warp's registers hold more than the matrix (f16), the lanes after the last element start again at
the first one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from culaunch._emulator.matrix.elements import WIDTHS, Elements, Registers, pack, unpack
from culaunch._emulator.matrix.fragments import extents
from culaunch._emulator.matrix.product import multiply_add

_WIDE = {"m16n16k16", "m32n8k16", "m8n32k16"}
_SHAPES = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), _WIDE),
    "tf32": {"m16n16k8"},
    "f64": {"m8n8k4"},
    **{key: {"m8n8k32"} for key in ("s4", "u4")},
    "b1": {"m8n8k128"},
}


def wmma_access(
    shape: str, operand: str, kind: str, layout: str, stride: int | npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], int]:
    """Return where wmma.load and wmma.store find the items of each lane.

    Parameters
    ----------
    shape : str
        Such as ``"m16n16k16"``.
    operand : {"a", "b", "c", "d"}
        The matrix.
    kind : str
        The type of its elements.
    layout : {"row", "col"}
        Its layout in memory.
    stride : int or numpy.ndarray
        Elements between rows (columns); an array of shape (warps,) or (warps, 32) for each warp.

    Returns
    -------
    offsets : numpy.ndarray of int64
        Bytes from the address operand, of shape (warps, 32, items); warps is 1 for an int.
    size : int
        Bytes of an item: of an element, or of a whole register where elements are narrower
        than a byte.
    """
    rows, columns, count = _dimensions(shape, operand, kind)
    # Programs must not rely on the layout (PTX ISA, "wmma"), and so any one will do that load,
    # product and store agree on.
    place = np.arange(32 * count).reshape(32, count) % (rows * columns)
    if operand == "b":
        column, row = np.divmod(place, rows)
    else:
        row, column = np.divmod(place, columns)
    if layout not in ("row", "col"):
        raise ValueError(f"layout must be row or col (got {layout!r})")
    steps = np.asarray(stride, np.int64)
    steps = steps.reshape(len(steps), -1)[:, :1, None] if steps.ndim else steps.reshape(1, 1, 1)
    outer, inner = (row, column) if layout == "row" else (column, row)
    element = outer * steps + inner
    width = WIDTHS[kind]
    if width >= 8:
        return element * (width // 8), width // 8
    # These lie along k, row by row or column by column: a register is four bytes in a row.
    return element[..., :: 32 // width] * width // 8, 4


def wmma_pack(kind: str, items: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Make registers of the items that were loaded.

    Parameters
    ----------
    kind : str
        The type of an element.
    items : numpy.ndarray
        Shape (warps, 32, items), unsigned integers of the items' size.

    Returns
    -------
    list of numpy.ndarray
        Registers, each of shape (warps, 32).
    """
    if WIDTHS[kind] < 8:
        return [np.ascontiguousarray(items[..., i]) for i in range(items.shape[-1])]
    return pack(kind, items)


def wmma_unpack(kind: str, registers: Registers) -> Elements:
    """Return the items to store: the inverse of `wmma_pack`."""
    if WIDTHS[kind] < 8:
        return np.stack(list(registers), axis=-1)
    return unpack(kind, registers)


def wmma_mma(
    shape: str,
    types: tuple[str, str, str, str],
    a: Registers,
    b: Registers,
    c: Registers,
    *,
    satfinite: bool = False,
    operation: str = "and",
    rounding: str = "rn",
) -> list[npt.NDArray[Any]]:
    """Multiply fragments and add; parameters and rounding are those of `mma`.

    The layouts that wmma.mma names were those of the loads: fragments no longer have them.
    """
    fragments = []
    for operand, kind, registers in zip("abc", types[1:], (a, b, c), strict=True):
        rows, columns, count = _dimensions(shape, operand, kind)
        elements = unpack(kind, registers)
        if elements.shape[-1] != count:
            expected = count * WIDTHS[kind] // (64 if kind == "f64" else 32)
            raise ValueError(
                f"{operand} must have {expected} registers for {shape} of {kind} "
                f"(got {len(registers)})"
            )
        # Registers past the matrix's elements repeat the first ones, and are left out.
        flat = elements.reshape(len(elements), -1)[:, : rows * columns]
        if operand == "b":
            fragments.append(flat.reshape(-1, columns, rows).transpose(0, 2, 1))
        else:
            fragments.append(flat.reshape(-1, rows, columns))
    result = multiply_add(
        types, *fragments, satfinite=satfinite, operation=operation, rounding=rounding
    )
    return pack(types[0], result.reshape(len(result), 32, -1))


def _dimensions(shape: str, operand: str, kind: str) -> tuple[int, int, int]:
    # Rows, columns, and elements that one lane holds.
    m, n, k = extents(shape)
    if operand in ("c", "d"):
        return m, n, m * n // 32
    if shape not in _SHAPES.get(kind, set()):
        known = ", ".join(sorted(_SHAPES.get(kind, set()))) or "no shape"
        raise ValueError(f"wmma of {kind} has {known} (got {shape})")
    rows, columns = (m, k) if operand == "a" else (k, n)
    return rows, columns, 16 if kind == "f16" else rows * columns // 32
