"""mma.sync: one product of small matrices for each warp."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from culaunch._emulator.matrix.elements import WIDTHS, Elements, Registers, pack, unpack
from culaunch._emulator.matrix.fragments import (
    SHAPES,
    Indices,
    a_places,
    b_places,
    c_places,
    extents,
    gather,
    quad_places,
    scatter,
)
from culaunch._emulator.matrix.product import multiply_add
from culaunch._emulator.matrix.sparse import expand


def mma(
    shape: str,
    types: tuple[str, str, str, str],
    a: Registers,
    b: Registers,
    c: Registers,
    *,
    layouts: tuple[str, str] = ("row", "col"),
    satfinite: bool = False,
    operation: str = "and",
    rounding: str = "rn",
    codes: npt.NDArray[Any] | None = None,
) -> list[npt.NDArray[Any]]:
    """Multiply matrices that are spread over the lanes of warps, and add.

    Parameters
    ----------
    shape : str
        Such as ``"m16n8k16"``.
    types : tuple of str
        The types of D, A, B and C, in the instruction's order: ``("f32", "f16", "f16", "f32")``.
    a, b, c : sequence of numpy.ndarray
        The registers of the operands, each of shape (warps, 32), uint32 or for f64 uint64.
    layouts : tuple of str, optional
        Of A and B. Only m8n8k4 of f16 has others than row and col.
    satfinite : bool, optional
        Clamp integer results.
    operation : {"and", "xor"}, optional
        For b1: what ``.popc`` counts.
    rounding : {"rn", "rz", "rm", "rp"}, optional
        For f64.
    codes : numpy.ndarray, optional
        The metadata of a sparse A: four bits for each chunk, of shape (warps, m, chunks).

    Returns
    -------
    list of numpy.ndarray
        The registers of D, new arrays.

    Raises
    ------
    ValueError
        A shape or type that there is not, or a wrong number of registers.
    """
    stored = shape if codes is None else _halved(shape, types[1])
    places = _places(stored, shape, types, layouts)
    matrices = [
        gather(_fragment(name, shape, kind, registers, where.size), where)
        for name, kind, registers, where in zip("abc", types[1:], (a, b, c), places, strict=True)
    ]
    if codes is not None:
        matrices[0] = expand(matrices[0], codes)
    result = multiply_add(
        types, *matrices, satfinite=satfinite, operation=operation, rounding=rounding
    )
    if _is_quad(shape, types):
        return pack(types[0], scatter(result, quad_places("c", types[0])))
    return pack(types[0], scatter(result, places[2]))


def _halved(shape: str, kind: str) -> str:
    """Return the shape of the product whose A has the registers of a sparse one."""
    m, n, k = extents(shape)
    if m != 16 or kind in ("f64", "b1"):
        raise ValueError(f"there is no sparse matrix of {kind} in {shape}")
    return f"m{m}n{n}k{k // 2}"


def _places(
    stored: str, shape: str, types: tuple[str, str, str, str], layouts: tuple[str, str]
) -> tuple[Indices, Indices, Indices]:
    extents(shape)
    _, a, b, c = types
    kinds = SHAPES.get(stored, set())
    if not {a, b} <= kinds:
        known = ", ".join(sorted(kinds)) or "nothing"
        raise ValueError(f"mma of shape {shape} multiplies {known} (got {a} and {b})")
    if _is_quad(shape, types):
        return quad_places("a", layouts[0]), quad_places("b", layouts[1]), quad_places("c", c)
    if layouts != ("row", "col"):
        raise ValueError(f"layouts must be row and col for {shape} of {a} (got {layouts})")
    return a_places(stored, a), b_places(shape, b), c_places(shape)


def _is_quad(shape: str, types: tuple[str, str, str, str]) -> bool:
    return shape == "m8n8k4" and types[1] == "f16"


def _fragment(name: str, shape: str, kind: str, registers: Registers, size: int) -> Elements:
    # Every lane holds the same share of the matrix, in registers of 32 bits, of f64 of 64.
    expected = size * WIDTHS[kind] // 32 // (64 if kind == "f64" else 32)
    if len(registers) != expected:
        raise ValueError(
            f"{name} must have {expected} registers for {shape} of {kind} (got {len(registers)})"
        )
    return unpack(kind, [np.atleast_2d(r) for r in registers])
