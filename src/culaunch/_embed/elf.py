"""The parts of ELF64 (little endian) that relocatable objects need, read and written."""

from __future__ import annotations

from dataclasses import dataclass

from culaunch._base.elf import (
    HEADER,
    SECTION_HEADER,
    SHN_UNDEF,
    STB_LOCAL,
    STT_NOTYPE,
    STV_DEFAULT,
    SYMBOL,
)

EHDR_SIZE, SHDR_SIZE, SYM_SIZE = HEADER.size, SECTION_HEADER.size, SYMBOL.size


@dataclass(frozen=True)
class Header:
    """The ELF header, as far as a relocatable object uses it."""

    ident: bytes
    type: int
    machine: int
    flags: int
    shoff: int
    shnum: int
    shstrndx: int

    @classmethod
    def unpack(cls, data: bytes) -> Header:
        """Read the first 64 bytes of a file."""
        ident, kind, machine, _, _, _, shoff, flags, _, _, _, _, shnum, shstrndx = HEADER.unpack(
            data[:EHDR_SIZE]
        )
        return cls(ident, kind, machine, flags, shoff, shnum, shstrndx)

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        # The fields of 1 and 0 are the same in every relocatable object: the version, no entry
        # point, no segments.
        return HEADER.pack(
            self.ident,
            self.type,
            self.machine,
            1,
            0,
            0,
            self.shoff,
            self.flags,
            EHDR_SIZE,
            0,
            0,
            SHDR_SIZE,
            self.shnum,
            self.shstrndx,
        )


@dataclass(frozen=True)
class Section:
    """A section header."""

    name: int = 0
    type: int = 0
    flags: int = 0
    addr: int = 0
    offset: int = 0
    size: int = 0
    link: int = 0
    info: int = 0
    align: int = 0
    entsize: int = 0

    @classmethod
    def unpack(cls, data: bytes) -> Section:
        """Read one entry of the section table."""
        return cls(*SECTION_HEADER.unpack(data))

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        return SECTION_HEADER.pack(
            self.name,
            self.type,
            self.flags,
            self.addr,
            self.offset,
            self.size,
            self.link,
            self.info,
            self.align,
            self.entsize,
        )


@dataclass(frozen=True)
class Symbol:
    """An entry of the symbol table."""

    name: int = 0
    binding: int = STB_LOCAL
    type: int = STT_NOTYPE
    visibility: int = STV_DEFAULT
    section: int = SHN_UNDEF
    value: int = 0
    size: int = 0

    @classmethod
    def unpack(cls, data: bytes) -> Symbol:
        """Read one entry."""
        name, info, other, section, value, size = SYMBOL.unpack(data)
        # One byte holds binding and type. The two lowest bits of another byte are the visibility.
        return cls(name, info >> 4, info & 15, other & 3, section, value, size)

    def pack(self) -> bytes:
        """Return the 24 bytes."""
        info = self.binding << 4 | self.type
        return SYMBOL.pack(self.name, info, self.visibility, self.section, self.value, self.size)


class Strings:
    """A string table that grows.

    Parameters
    ----------
    start : bytes
        An existing table to add to.
    """

    def __init__(self, start: bytes = b"\0") -> None:
        self.data = bytearray(start)

    def add(self, text: str) -> int:
        """Append a string and return its offset."""
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


def padding(position: int, align: int) -> int:
    """Return how many bytes are missing to the next multiple of `align`."""
    return -position % align
