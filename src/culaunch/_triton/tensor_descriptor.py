"""``TensorDescriptor``: a tensor and the block that one access covers, without Triton."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._launch import DeviceArray

if TYPE_CHECKING:
    from typing_extensions import Self

_TYPE = re.compile(r"tensordesc<([^\[<>]*)\[([\d, ]+)\]>")
_MOST_DIMENSIONS = 5


@dataclass
class TensorDescriptor:
    """A tensor that a kernel accesses in blocks of one shape.

    The same as ``triton.tools.tensor_descriptor.TensorDescriptor``, for programs without Triton.
    Kernels of a saved set accept both.

    Parameters
    ----------
    base : array
        Any array that a kernel accepts as an argument.
    shape, strides : sequence of int
        The tensor's shape and strides in elements, with one to five dimensions.
    block_shape : sequence of int
        The shape of a block.
    padding : str, default "zero"
        The value that is read past the end: ``"zero"`` or ``"nan"``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or the numbers of dimensions differ.

    Examples
    --------
    >>> from culaunch import triton
    >>> matrix = triton.TensorDescriptor(x, shape=[16, 16], strides=[16, 1], block_shape=[8, 16])
    >>> matrix.padding
    'zero'
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"

    def __post_init__(self) -> None:
        ranks = [_rank(name, getattr(self, name)) for name in ("shape", "strides", "block_shape")]
        if len(set(ranks)) != 1 or not 1 <= ranks[0] <= _MOST_DIMENSIONS:
            raise ValueError(
                "shape, strides and block_shape must have the same number of dimensions, 1 to "
                f"{_MOST_DIMENSIONS} (got {ranks[0]}, {ranks[1]} and {ranks[2]})"
            )
        if self.padding not in ("zero", "nan"):
            raise ValueError(f'padding must be "zero" or "nan" (got {spell(self.padding)})')

    @classmethod
    def from_tensor(cls, tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> Self:
        """Return the descriptor of a whole tensor.

        Parameters
        ----------
        tensor : array
            Of PyTorch, NumPy, CuPy or culaunch, or another with ``__cuda_array_interface__``.
        block_shape : sequence of int
        padding : str, default "zero"

        Returns
        -------
        TensorDescriptor
            The descriptor. It keeps the tensor alive.

        Raises
        ------
        TypeError, ValueError
            As for the class; and if the strides of the tensor are not whole elements.
        """
        try:
            shape, strides = tuple(tensor.shape), _strides(tensor)
        except (AttributeError, KeyError, TypeError):
            raise TypeError(
                f"tensor must be an array with shape and strides (got {spell(tensor)}); or give "
                "them: TensorDescriptor(tensor, shape, strides, block_shape)"
            ) from None
        return cls(tensor, shape, strides, block_shape, padding)


def split_descriptor(kind: Any) -> tuple[str, tuple[int, ...]] | None:
    """Return the element type and the block of a descriptor's type; None for any other type."""
    match = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
    if match is None:
        return None
    return match[1], tuple(map(int, match[2].split(",")))


def descriptor_type(element: str, block: Sequence[int]) -> str:
    """Return Triton's type of a descriptor."""
    return f"tensordesc<{element}[{', '.join(map(str, block))}]>"


def _rank(name: str, sizes: Any) -> int:
    # The sizes may be symbolic numbers of a function's body.
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Sequence):
        raise TypeError(f"{name} must be a sequence of ints (got {spell(sizes)})")
    return len(sizes)


def _strides(tensor: Any) -> Sequence[int]:
    """Return the strides of a tensor in elements."""
    if callable(getattr(tensor, "stride", None)):
        return tensor.stride()  # type: ignore[no-any-return]
    if isinstance(tensor, DeviceArray):
        return _rows(tensor.shape)
    # Objects without these attributes, such as a body's arrays, may use another unit.
    interface = getattr(tensor, "__array_interface__", None) or tensor.__cuda_array_interface__
    if interface.get("strides") is None:  # C order
        return _rows(tensor.shape)
    steps, size = interface["strides"], tensor.dtype.itemsize
    if any(step % size for step in steps):
        raise ValueError(
            f"tensor has strides {tuple(steps)} in bytes, which are not multiples of its element "
            f"size, {size}: copy it first"
        )
    return [step // size for step in steps]


def _rows(shape: Sequence[int]) -> list[int]:
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * shape[i]
    return strides
