"""C's printf on a device's argument buffer."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXeEfFgGaAcspn%])"
)
_LONG = {"l", "ll", "j", "z", "t"}


def format_message(reader: LaneReader, format_address: int, buffer: int) -> tuple[str, int]:
    """Format one lane's message; return it and the number of its arguments."""
    text = reader.string(format_address)
    arguments = _Arguments(reader, buffer)
    return _CONVERSION.sub(lambda match: _convert(match, arguments), text), arguments.count


class _Arguments:
    """The values after the format: each is at a multiple of its size."""

    def __init__(self, reader: LaneReader, buffer: int) -> None:
        self.reader = reader
        self.at = buffer
        self.count = 0

    def word(self, size: int) -> int:
        # The layout that compilers use for vprintf: every argument at a multiple of its own size.
        self.at = -(-self.at // size) * size
        value = self.reader.word(self.at, size)
        self.at += size
        self.count += 1
        return value

    def signed(self, size: int) -> int:
        value = self.word(size)
        return value - (1 << 8 * size) if value >> (8 * size - 1) else value


def _convert(match: re.Match[str], arguments: _Arguments) -> str:
    kind, flags = match["kind"], match["flags"]
    if kind == "%":
        return "%"
    width, precision = match["width"] or "", match["precision"]
    if width == "*":
        # As in C, a negative width means left-justified.
        number = arguments.signed(4)
        flags, width = (flags + "-", str(-number)) if number < 0 else (flags, str(number))
    if precision == "*":
        precision = str(arguments.signed(4))
    spec = flags + width + ("" if precision is None else f".{precision or 0}")
    size = 8 if match["length"] in _LONG else 4
    if kind in "di":
        return f"%{spec}d" % _shrink(arguments.signed(size), match["length"])
    if kind in "ouxX":
        value = arguments.word(size)
        value &= {"hh": 0xFF, "h": 0xFFFF}.get(match["length"] or "", value)
        return f"%{spec}{'d' if kind == 'u' else kind}" % value
    if kind == "c":
        return f"%{flags}{width}c" % (arguments.word(4) & 0xFF)
    if kind == "s":
        return f"%{spec}s" % arguments.reader.string(arguments.word(8))
    if kind == "p":
        return f"%{flags}{width}s" % f"{arguments.word(8):#x}"
    value_f = struct.unpack("<d", arguments.word(8).to_bytes(8, "little"))[0]
    if kind in "aA":
        text = float.hex(value_f)
        return f"%{flags}{width}s" % (text.upper() if kind == "A" else text)
    return str(f"%{spec}{kind}" % value_f)


def _shrink(value: int, length: str | None) -> int:
    bits = {"hh": 8, "h": 16}.get(length or "")
    if bits is None:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


class LaneReader:
    """Reads memory through one lane's generic addresses."""

    def __init__(self, group: Group, lane: int) -> None:
        self.group = group.narrow(np.array([lane]))

    def word(self, address: int, size: int) -> int:
        """Return an unsigned word."""
        where = np.array([address], np.uint64)
        pieces = LOCATORS[""](self.group, where, size, "read")
        return int(load(self.group, pieces, size, 1)[0][0])

    def string(self, address: int) -> str:
        """Return the text up to the zero byte at or after `address`."""
        found = bytearray()
        # Byte by byte through the checks of memory: a text that never ends stops at the end of its
        # allocation.
        while byte := self.word(address + len(found), 1):
            found.append(byte)
        return found.decode("utf-8", "replace")
