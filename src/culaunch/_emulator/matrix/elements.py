"""Elements of a matrix in registers: how wide they are, and taking registers apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Registers: TypeAlias = Sequence[npt.NDArray[Any]]
Elements: TypeAlias = npt.NDArray[Any]

#: Bits of an element of each type.
WIDTHS = {
    "f64": 64,
    **dict.fromkeys(("f32", "s32", "tf32"), 32),
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("s8", "u8", "e4m3", "e5m2"), 8),
    **dict.fromkeys(("e2m3", "e3m2"), 6),
    **dict.fromkeys(("s4", "u4", "e2m1"), 4),
    "b1": 1,
}


def per_register(kind: str) -> int:
    """Return how many elements of a type one register holds."""
    return max(32 // WIDTHS[kind], 1)


def unpack(kind: str, registers: Registers) -> Elements:
    """Take registers apart.

    Returns
    -------
    numpy.ndarray
        Shape ``(warps, 32, elements)``, the lowest element of the first register first; unsigned
        integers as wide as the type, uint8 for the narrower ones.
    """
    width = WIDTHS[kind]
    if width == 64:
        return np.stack([r.view(np.uint64) for r in registers], axis=-1)
    # The lowest element is in the lowest bits of the first register: little-endian words lie that
    # way.
    words = np.stack([r.view(np.uint32) for r in registers], axis=-1)
    if width >= 8:
        return words.view(f"u{width // 8}")
    octets = words.view(np.uint8)
    if width == 4:
        # The low half of a byte comes first.
        nibbles = np.stack([octets & np.uint8(15), octets >> np.uint8(4)], axis=-1)
        return nibbles.reshape(*words.shape[:-1], -1)
    return np.unpackbits(octets, axis=-1, bitorder="little")


def pack(kind: str, elements: Elements) -> list[npt.NDArray[Any]]:
    """Put the elements of each lane into registers: the inverse of `unpack`."""
    width = WIDTHS[kind]
    if width == 4:
        elements = elements[..., ::2] | (elements[..., 1::2] << np.uint8(4))
    elif width == 1:
        elements = np.packbits(elements, axis=-1, bitorder="little")
    words = np.ascontiguousarray(elements).view(np.uint64 if width == 64 else np.uint32)
    return [np.ascontiguousarray(words[..., i]) for i in range(words.shape[-1])]
