"""The parts of ELF64 (little endian) that relocatable objects need. Names as in the gABI."""

from __future__ import annotations

import struct
from dataclasses import dataclass

ET_REL = 1
EHDR_SIZE, SHDR_SIZE, SYM_SIZE = 64, 64, 24

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_REL = 1, 2, 3, 4, 7, 9
SHT_GROUP, SHT_SYMTAB_SHNDX, SHT_LLVM_ADDRSIG = 17, 18, 0x6FFF4C03
SHF_ALLOC = 2
SHN_UNDEF = 0
STB_LOCAL, STB_GLOBAL = 0, 1
STT_NOTYPE, STT_OBJECT = 0, 1
STV_DEFAULT, STV_HIDDEN = 0, 2

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_SYM = struct.Struct("<IBBHQQ")


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
        ident, kind, machine, _, _, _, shoff, flags, _, _, _, _, shnum, shstrndx = _EHDR.unpack(
            data[:EHDR_SIZE]
        )
        return cls(ident, kind, machine, flags, shoff, shnum, shstrndx)

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        return _EHDR.pack(
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
        return cls(*_SHDR.unpack(data))

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        return _SHDR.pack(
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
        name, info, other, section, value, size = _SYM.unpack(data)
        return cls(name, info >> 4, info & 15, other & 3, section, value, size)

    def pack(self) -> bytes:
        """Return the 24 bytes."""
        info = self.binding << 4 | self.type
        return _SYM.pack(self.name, info, self.visibility, self.section, self.value, self.size)


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
