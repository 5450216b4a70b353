"""The records of ``.nv.info`` and ``.nv.compat`` sections."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._image.reader import Reader

# Codes of .nv.info; their names are those that cuobjdump prints, less EIATTR_.
MAX_THREADS = 0x05
REQNTID = 0x10
FRAME_SIZE = 0x11
KPARAM_INFO = 0x17
CBANK_PARAM_SIZE = 0x19
REGCOUNT = 0x2F
CUDA_API_VERSION = 0x37
CTA_PER_CLUSTER = 0x3D
MAX_CLUSTER_RANK = 0x3F
KPARAM_INFO_V2 = 0x45
NUM_BARRIERS = 0x4C

# Codes of .nv.compat.
ACCELERATOR_TARGET = 9

_NO_VALUE, _BYTE, _HALF, _SIZED = 1, 2, 3, 4
_RECORD = struct.Struct("<BBH")
_WORD = struct.Struct("<I")
_PAIR = struct.Struct("<II")
_TRIPLE = struct.Struct("<III")
_PARAM = struct.Struct("<IHHI")
_PARAM_V2 = struct.Struct("<IHHHH")


class Record:
    """One record. The loop over a section moves one object along, as there may be millions.

    Parameters
    ----------
    section : Reader
        The section that the record is in.

    Attributes
    ----------
    code : int
        The number of the attribute.
    value : int
        The value, or the payload's size.
    """

    __slots__ = ("_offset", "_section", "code", "value")

    def __init__(self, section: Reader) -> None:
        self._section = section
        self._offset = self.code = self.value = 0

    def __iter__(self) -> Iterator[int]:
        """Go through the section and yield each code. Callers skip unknown codes."""
        section = self._section
        view, end = section.view, len(section.view)
        position = 0
        while position < end:
            if position + _RECORD.size > end:
                raise section.error("is truncated in an attribute record", position)
            form, self.code, value = _RECORD.unpack_from(view, position)
            self._offset = position = position + _RECORD.size
            if form == _SIZED:
                if position + value > end:
                    raise section.error(
                        f"is truncated: attribute {self.code:#04x} needs {value} bytes", position
                    )
                # Payloads are padded to words.
                position += value + 3 & ~3
            elif form == _BYTE:
                value &= 0xFF
            elif form not in (_NO_VALUE, _HALF):
                raise section.error(
                    f"is corrupt: an attribute record has the unknown form {form}", position
                )
            self.value = value
            yield self.code

    def word(self) -> int:
        """Return the payload's one integer."""
        return self._payload(_WORD)[0]

    def pair(self) -> tuple[int, ...]:
        """Return the payload's symbol index and value."""
        return self._payload(_PAIR)

    def dims(self) -> tuple[int, int, int]:
        """Return the payload's three dimensions."""
        x, y, z = self._payload(_TRIPLE)
        return x, y, z

    def param(self) -> tuple[int, int, int, int]:
        """Return a parameter's ordinal, offset, size, and space (0 if it is not known)."""
        if self.code == KPARAM_INFO_V2:
            _, ordinal, offset, size, pointee = self._payload(_PARAM_V2)
            return ordinal, offset, size, pointee >> 8 & 0xF
        _, ordinal, offset, packed = self._payload(_PARAM)
        # The size shares its word with flags: it is in the upper 14 bits. From V2 on the size has
        # its own field.
        return ordinal, offset, packed >> 18, packed >> 8 & 0xF

    def _payload(self, layout: struct.Struct) -> tuple[int, ...]:
        if self.value < layout.size or self._offset + layout.size > len(self._section.view):
            raise self._section.error(
                f"is corrupt: attribute {self.code:#04x} has {self.value} bytes", self._offset
            )
        return layout.unpack_from(self._section.view, self._offset)
