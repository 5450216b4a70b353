"""ldmatrix, stmatrix and movmatrix: 8 by 8 matrices of 16-bit elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_LANES = np.arange(32)


def ldmatrix_addresses(
    addresses: npt.NDArray[Any], count: int, *, trans: bool = False
) -> npt.NDArray[Any]:
    """Return the places of each lane's elements, for ldmatrix and stmatrix (.b16).

    Parameters
    ----------
    addresses : numpy.ndarray of integers
        Shape (warps, 32): the address operand of each lane. Lanes 0 to 7 hold the row addresses of
        the first matrix, lanes 8 to 15 those of the second, and so on. The others are not read.
    count : {1, 2, 4}
        Number of matrices, and of registers in each lane.
    trans : bool, optional
        ``.trans``.

    Returns
    -------
    numpy.ndarray
        Byte addresses with the dtype of `addresses`. Without `trans` the shape is (count, warps,
        32), and each is the address of a register's four bytes. With `trans` the shape is (count,
        2, warps, 32), and each is the address of two bytes, the low half of the register first.
    """
    if count not in (1, 2, 4):
        raise ValueError(f"count must be 1, 2 or 4 matrices (got {count})")
    # Lane 4 i + j receives elements 2 j and 2 j + 1 of row i: one register, from four bytes in a
    # row.
    group, member = _LANES // 4, _LANES % 4
    unit = addresses.dtype.type
    if not trans:
        offset = (4 * member).astype(unit)
        return np.stack([addresses[:, 8 * i + group] + offset for i in range(count)])
    # Transposed, lane 4 i + j receives column i of rows 2 j and 2 j + 1: two bytes of each.
    offset = (2 * group).astype(unit)
    halves = [
        addresses[:, 8 * i + 2 * member + half] + offset for i in range(count) for half in range(2)
    ]
    return np.stack(halves).reshape(count, 2, *addresses.shape)


def movmatrix(a: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Transpose an 8 by 8 matrix of 16-bit elements spread over a warp.

    Parameters
    ----------
    a : numpy.ndarray of uint32
        Shape (warps, 32).

    Returns
    -------
    numpy.ndarray of uint32
        Shape (warps, 32).
    """
    # The registers of the lanes, one after the other, are the matrix row by row.
    matrix = np.ascontiguousarray(a).view(np.uint16).reshape(-1, 8, 8)
    turned = np.ascontiguousarray(matrix.transpose(0, 2, 1))
    return turned.reshape(len(turned), -1).view(np.uint32)
