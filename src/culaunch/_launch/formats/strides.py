"""Strides of arrays, in elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Tell whether an array is contiguous in C order, as an empty array is."""
    # The stride of a dimension with one element is never used, and frameworks set it to anything.
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected and 0 not in shape:
            return False
        expected *= size
    return True
