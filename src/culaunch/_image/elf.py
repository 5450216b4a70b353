"""ELF64 little-endian: the header, the sections, their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from culaunch._base.elf import (
    HEADER,
    SECTION_HEADER,
    SHN_XINDEX,
    SHT_NOBITS,
    SHT_NULL,
    SHT_SYMTAB,
    SYMBOL,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._image.reader import Reader


class Elf:
    """The parts of an ELF file that images use.

    Section headers are unpacked while one iterates and not kept: a file may state millions.

    Parameters
    ----------
    reader : Reader
        The whole file. The first 20 bytes are known to be those of a 64-bit little-endian ELF.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        header = reader.unpack(HEADER, 0, "the ELF header")
        self.abi_version: int = reader.view[8]
        self.type, self.machine, self.version = header[1:4]
        segments, offset, self.flags, _, segment, segment_count = header[5:11]
        entry, count, names = header[11:14]
        # Not used here, but if they are at the end of the file, this detects truncation.
        reader.window(segments, segment * segment_count, "the segment table")
        self._headers = reader.window(0, 0, "nothing")
        self._names = self._headers
        # No sections, which is legal for a program: there is just nothing to find.
        if offset == 0:
            return
        if entry != SECTION_HEADER.size:
            raise reader.error(f"is corrupt: section headers have {entry} bytes instead of 64", 58)
        first = SECTION_HEADER.unpack_from(
            reader.window(offset, SECTION_HEADER.size, "the section table").view, 0
        )
        # More than 65279 sections: the numbers that do not fit are in the first header.
        count = count or first[5]
        names = first[6] if names == SHN_XINDEX else names
        # Checked before anything is unpacked, since the count is the file's own word.
        if count > (len(reader) - offset) // SECTION_HEADER.size:
            raise reader.error(
                f"is truncated or corrupt: {count} section headers at byte {offset:#x} "
                f"do not fit in {len(reader):#x} bytes",
                60,
            )
        self._headers = reader.window(offset, count * SECTION_HEADER.size, "the section table")
        self._names = self.contents(self.section(names))

    def sections(self) -> Iterator[Section]:
        """Yield the section headers; all of them lie in the file."""
        for index, (name, kind, flags, _, offset, size, link, info, _, _) in enumerate(
            SECTION_HEADER.iter_unpack(self._headers.view)
        ):
            if kind not in (SHT_NULL, SHT_NOBITS) and offset + size > len(self.reader.view):
                raise self.reader.error(
                    f"is truncated or corrupt: section {index} ends at byte {offset + size:#x}, "
                    f"but the file has {len(self.reader):#x}",
                    min(offset, len(self.reader)),
                )
            yield Section(index, name, kind, flags, offset, size, link, info)

    def section(self, index: int) -> Section:
        """Return one section header."""
        if not 0 <= index < len(self._headers) // SECTION_HEADER.size:
            raise self.reader.error(f"is corrupt: section {index} does not exist", 0)
        name, kind, flags, _, offset, size, link, info, _, _ = SECTION_HEADER.unpack_from(
            self._headers.view, index * SECTION_HEADER.size
        )
        return Section(index, name, kind, flags, offset, size, link, info)

    def contents(self, section: Section) -> Reader:
        """Return a section's bytes: empty for one that takes no room in the file."""
        if section.type == SHT_NOBITS:
            return self.reader.window(0, 0, "nothing")
        return self.reader.window(section.offset, section.size, f"section {section.number}")

    def symbols(self) -> Iterator[Symbol]:
        """Yield the symbols of all tables."""
        for section in self.sections():
            if section.type != SHT_SYMTAB:
                continue
            names = self.contents(self.section(section.link))
            view = self.contents(section).view
            whole = len(view) - len(view) % SYMBOL.size
            for name, info, _, index, _, size in SYMBOL.iter_unpack(view[:whole]):
                yield Symbol(names, name, info >> 4, info & 15, index, size)

    def name(self, section: Section) -> str:
        """Return a section's name."""
        return self._names.name(section.name, f"the name of section {section.number}")

    def is_named(self, section: Section, prefix: bytes) -> bool:
        """Tell whether a section's name starts with a text, without reading all of it."""
        return self._names.view[section.name : section.name + len(prefix)] == prefix


class Symbol(NamedTuple):
    """One symbol."""

    names: Reader
    name: int  # offset in `names`: most names are never needed
    binding: int
    kind: int
    section: int  # its number, or a reserved one
    size: int

    def text(self, what: str) -> str:
        """Return its name; an error names the item that has the name."""
        return self.names.name(self.name, what)


class Section(NamedTuple):
    """One section header."""

    number: int
    name: int  # offset in the name table: most names are never needed
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
