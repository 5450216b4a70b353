"""The records of ``.nv.info`` and ``.nv.compat`` sections."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

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


class Record(NamedTuple):
    """One record: its code, and its value (inline, or a window on the payload)."""

    code: int
    value: int
    payload: Reader

    def word(self) -> int:
        """Return the payload's one integer."""
        return self.payload.unpack(_WORD, 0, f"attribute {self.code:#04x}")[0]

    def pair(self) -> tuple[int, ...]:
        """Return the payload's symbol index and value."""
        return self.payload.unpack(_PAIR, 0, f"attribute {self.code:#04x}")

    def dims(self) -> tuple[int, int, int]:
        """Return the payload's three dimensions."""
        x, y, z = self.payload.unpack(_TRIPLE, 0, f"attribute {self.code:#04x}")
        return x, y, z

    def param(self) -> tuple[int, int, int, int]:
        """Return a parameter's ordinal, offset, size, and space (0 where it is not known)."""
        what = "a parameter record"
        if self.code == KPARAM_INFO_V2:
            _, ordinal, offset, size, pointee = self.payload.unpack(_PARAM_V2, 0, what)
            return ordinal, offset, size, pointee >> 8 & 0xF
        _, ordinal, offset, packed = self.payload.unpack(_PARAM, 0, what)
        return ordinal, offset, packed >> 18, packed >> 8 & 0xF


def records(section: Reader) -> Iterator[Record]:
    """Yield the records of one section; codes that nobody knows are for the caller to skip."""
    position = 0
    nothing = section.window(0, 0, "nothing")
    while position < len(section):
        form, code, value = section.unpack(_RECORD, position, "an attribute record")
        if form == _SIZED:
            payload = section.window(position + 4, value, f"the payload of attribute {code:#04x}")
            yield Record(code, value, payload)
            position += 4 + (value + 3 & ~3)
        elif form in (_NO_VALUE, _BYTE, _HALF):
            yield Record(code, value & 0xFF if form == _BYTE else value, nothing)
            position += 4
        else:
            raise section.error(f"is corrupt: attribute record of form {form}", position)
