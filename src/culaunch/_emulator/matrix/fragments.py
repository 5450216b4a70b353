"""Finds the lane and the register of each element of a matrix: the fragments of mma.

All shapes except m8n8k4 of f16 follow one rule. Lanes form eight groups of four. A register holds E
elements next to each other along k. The four lanes of a group hold 4 E of them. Each further pair
of registers holds the next 4 E; if the matrix has eight rows, each further register does.
"""

from __future__ import annotations

import functools
import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from culaunch._emulator.matrix.elements import per_register

Indices: TypeAlias = npt.NDArray[Any]

_FLOATS = {"f16", "bf16"}
_OCTETS = {"s8", "u8", "e4m3", "e5m2"}
_NIBBLES = {"s4", "u4"}

#: The types that each shape multiplies.
SHAPES = {
    "m8n8k4": {"f16", "f64"},
    "m8n8k16": {"s8", "u8"},
    "m8n8k32": _NIBBLES,
    "m8n8k128": {"b1"},
    "m16n8k4": {"tf32", "f64"},
    "m16n8k8": _FLOATS | {"tf32", "f64"},
    "m16n8k16": _FLOATS | _OCTETS | {"f64"},
    "m16n8k32": _OCTETS | _NIBBLES,
    "m16n8k64": _NIBBLES,
    "m16n8k128": {"b1"},
    "m16n8k256": {"b1"},
}


def extents(shape: str) -> tuple[int, int, int]:
    """Return m, n and k of a shape such as ``"m16n8k16"``."""
    match = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    if not match:
        raise ValueError(f"shape must be spelled as in m16n8k16 (got {shape!r})")
    m, n, k = map(int, match.groups())
    return m, n, k


def gather(elements: npt.NDArray[Any], places: Indices) -> npt.NDArray[Any]:
    r"""Bring elements of shape (warps, 32, n) into the shape (warps, \\*places.shape)."""
    # A place counts the lanes of a warp and the elements of each, so one index finds it.
    flat = elements.reshape(len(elements), -1)
    return flat[:, places]


def scatter(matrix: npt.NDArray[Any], places: Indices) -> npt.NDArray[Any]:
    """Bring a matrix back into the shape (warps, 32, n): the inverse of `gather`."""
    warps = len(matrix)
    flat = np.empty((warps, places.size), matrix.dtype)
    flat[:, places.ravel()] = matrix.reshape(warps, -1)
    return flat.reshape(warps, 32, -1)


# The tables of PTX ISA, "Matrix Fragments for mma", as formulas: one for each matrix. They depend
# only on the shape, and there are a dozen shapes.
@functools.cache
def a_places(shape: str, kind: str) -> Indices:
    """Return, for each row and column of A, lane times elements a lane plus element."""
    m, _, k = extents(shape)
    width, rows = per_register(kind), m // 8
    count = m * k // 32
    row, column = np.indices((m, k))
    lane = row % 8 * 4 + column // width % 4
    register = column // (4 * width) * rows + row // 8
    places: Indices = lane * count + register * width + column % width
    return places


@functools.cache
def b_places(shape: str, kind: str) -> Indices:
    """Return the same for B."""
    _, n, k = extents(shape)
    width = per_register(kind)
    row, column = np.indices((k, n))
    lane = column * 4 + row // width % 4
    element = row // (4 * width) * width + row % width
    places: Indices = lane * (k * n // 32) + element
    return places


@functools.cache
def c_places(shape: str) -> Indices:
    """Return the same for C and D."""
    m, n, _ = extents(shape)
    row, column = np.indices((m, n))
    lane = row % 8 * 4 + column // 2
    places: Indices = lane * (m * n // 32) + row // 8 * 2 + column % 2
    return places


@functools.cache
def quad_places(operand: str, layout: str) -> Indices:
    """Return the places of m8n8k4 of f16: four products, each of two groups of four lanes.

    Parameters
    ----------
    operand : {"a", "b", "c"}
        The matrix.
    layout : {"row", "col", "f16", "f32"}
        Of `a` and `b` the layout, of `c` the type.
    """
    if operand == "c":
        count = 8
        product, long, column = np.indices((4, 8, 8))
        if layout == "f16":
            # The accumulator of this old shape is laid out by its type: f16 in rows, f32 in a
            # pattern of pairs.
            inner, element = long % 4, column
        else:
            inner = (long & 1) + (column & 2)
            element = (long & 2) + (column & 4) + (column & 1)
    else:
        count = 4
        product, row, column = np.indices((4, 8, 4) if operand == "a" else (4, 4, 8))
        long, short = (row, column) if operand == "a" else (column, row)
        inner, element = short, long % 4
        if (operand == "a") == (layout == "row"):
            inner, element = element, inner
    # Eight rows (of B: columns) are split between the two groups of four lanes.
    lane = product * 4 + inner + long // 4 * 16
    places: Indices = lane * count + element
    return places
