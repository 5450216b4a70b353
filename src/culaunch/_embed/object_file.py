"""An object file that a compiler wrote, read as far as adding to it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from culaunch._base.elf import ET_REL, IDENT, MAGIC, SHT_GROUP, SHT_SYMTAB, SHT_SYMTAB_SHNDX
from culaunch._embed import elf
from culaunch._embed.machine import MACHINES
from culaunch._errors import ImageError

if TYPE_CHECKING:
    from culaunch._embed.machine import Machine

_BITCODE = b"BC\xc0\xde"


@dataclass(frozen=True)
class ObjectFile:
    """Headers, symbols and, on demand, sections of a relocatable ELF object."""

    path: str
    file: BinaryIO
    header: elf.Header
    sections: tuple[elf.Section, ...]
    symtab: int
    symbols: tuple[elf.Symbol, ...]
    symbol_names: bytes

    @classmethod
    def read(cls, file: BinaryIO, path: str, machine: Machine | None) -> ObjectFile:
        """Read an object; refuse other files, and objects for another machine than `machine`."""
        size = file.seek(0, 2)
        header = _read_header(file, path, size, machine)
        table = _slice(
            file, path, size, header.shoff, header.shnum * elf.SHDR_SIZE, "section table"
        )
        sections = tuple(
            elf.Section.unpack(table[at : at + elf.SHDR_SIZE])
            for at in range(0, len(table), elf.SHDR_SIZE)
        )
        for section in sections:
            # Types 0 (unused) and 8 (NOBITS) have no bytes in the file, regardless of their
            # headers.
            if section.type not in (0, 8) and section.offset + section.size > size:
                raise ImageError("is truncated: a section ends past the file", source=path)
        symtabs = [i for i, section in enumerate(sections) if section.type == SHT_SYMTAB]
        if len(symtabs) != 1:
            raise ImageError(
                "has no symbol table: compile it without -s, and do not strip it", source=path
            )
        symtab = sections[symtabs[0]]
        if symtab.link >= len(sections) or header.shstrndx >= len(sections):
            raise ImageError("has a section index past its section table", source=path)
        # 16-bit section numbers are too small here. A table next to the symbol table has the rest,
        # and would also have to be reordered.
        if any(section.type == SHT_SYMTAB_SHNDX for section in sections):
            raise ImageError(
                "has more than 65,279 sections, which cannot be merged: write the image to a "
                "separate object (without merge_with) and link both",
                source=path,
            )
        raw = _slice(file, path, size, symtab.offset, symtab.size, "symbol table")
        if len(raw) % elf.SYM_SIZE or symtab.info > len(raw) // elf.SYM_SIZE:
            raise ImageError("has a malformed symbol table", source=path, offset=symtab.offset)
        symbols = tuple(
            elf.Symbol.unpack(raw[at : at + elf.SYM_SIZE])
            for at in range(0, len(raw), elf.SYM_SIZE)
        )
        strings = sections[symtab.link]
        names = _slice(file, path, size, strings.offset, strings.size, "string table")
        loaded = cls(path, file, header, sections, symtabs[0], symbols, names)
        loaded._check_numbers()
        return loaded

    def section_bytes(self, index: int) -> bytes:
        """Return the bytes of a section."""
        return self.bytes_of(self.sections[index])

    def bytes_of(self, section: elf.Section) -> bytes:
        """Return the bytes of a section, by its header."""
        self.file.seek(section.offset)
        return self.file.read(section.size)

    def symbol_name(self, symbol: elf.Symbol) -> str:
        """Return a symbol's name."""
        end = self.symbol_names.find(b"\0", symbol.name)
        return self.symbol_names[symbol.name : end].decode("utf-8", "replace")

    def why_nothing(self) -> str:
        """Say why an object may ask for no image at all."""
        names = self.section_bytes(self.header.shstrndx)
        if b".gnu.lto_" in names:
            return "it was compiled with -flto, which leaves no symbols: compile it with -fno-lto"
        return "it uses no CULAUNCH_EMBED_CUBIN: give the macro and this call the same name"

    def _check_numbers(self) -> None:
        for section in self.sections:
            if section.type == SHT_GROUP and section.info >= len(self.symbols):
                raise ImageError("has a section group without its symbol", source=self.path)


def _read_header(file: BinaryIO, path: str, size: int, machine: Machine | None) -> elf.Header:
    file.seek(0)
    head = file.read(elf.EHDR_SIZE)
    if head[:4] == _BITCODE:
        raise ImageError(
            "is LLVM bitcode (clang -flto), which has no symbols yet: compile it with -fno-lto",
            source=path,
        )
    if head[:4] != MAGIC or len(head) < elf.EHDR_SIZE:
        raise ImageError("is not an ELF object file", source=path, offset=0)
    if head[4:6] != IDENT[4:6]:
        raise ImageError("is not a 64-bit little-endian object", source=path, offset=4)
    header = elf.Header.unpack(head)
    if header.type != ET_REL:
        raise ImageError(
            "must be a relocatable object (the output of `c++ -c`), not a program or a library",
            source=path,
            offset=16,
        )
    known = {m.e_machine: m.name for m in MACHINES}
    if header.machine not in known:
        raise ImageError(
            f"is for ELF machine {header.machine}, but only {', '.join(known.values())} are "
            "supported",
            source=path,
            offset=18,
        )
    if machine is not None and machine.e_machine != header.machine:
        raise ImageError(
            f"is for {known[header.machine]}, but machine={machine.name!r} was requested",
            source=path,
            offset=18,
        )
    if header.shoff == 0 or header.shnum == 0 or header.shoff > size:
        raise ImageError("has no section table", source=path, offset=40)
    return header


def _slice(file: BinaryIO, path: str, size: int, offset: int, length: int, what: str) -> bytes:
    if offset + length > size:
        raise ImageError(f"is truncated: the {what} ends past the file", source=path, offset=offset)
    file.seek(offset)
    return file.read(length)
