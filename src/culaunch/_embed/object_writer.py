"""An object file that holds images and nothing else."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from culaunch._base.elf import (
    ET_REL,
    IDENT,
    SHF_ALLOC,
    SHT_NOTE,
    SHT_PROGBITS,
    SHT_STRTAB,
    SHT_SYMTAB,
    STB_GLOBAL,
    STT_NOTYPE,
    STT_OBJECT,
    STV_HIDDEN,
)
from culaunch._embed import elf
from culaunch._embed.machine import ALL_PROTECTIONS
from culaunch._image.embedded import ALIGN, SECTION, image_record, size_offset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._embed.image_stream import ImageStream
    from culaunch._embed.machine import Machine
    from culaunch._embed.symbols import Symbols

_IDENT = IDENT.ljust(16, b"\0")
_PROPERTY_HEADER = struct.Struct("<III4s")
_PROPERTY = struct.Struct("<IIII")


def write_object(file: BinaryIO, stream: ImageStream, symbols: Symbols, machine: Machine) -> None:
    """Write an object that defines `symbols`, hidden, over the bytes of `stream`."""
    write_objects(file, [(stream, symbols)], machine)


def write_objects(
    file: BinaryIO, images: Iterable[tuple[ImageStream, Symbols]], machine: Machine
) -> None:
    """Write an object with several images, each with its own symbols."""
    # Space for the header, which is written last: only then is the offset of the section table
    # known. Images are never in memory as a whole, so their sizes are unknown before writing.
    file.write(bytes(elf.EHDR_SIZE))
    names, strings = elf.Strings(), elf.Strings()
    section_name = names.add(SECTION)
    # ELF's tables of sections and of symbols both begin with an entry that is empty.
    sections = [elf.Section()]
    table = [elf.Symbol()]
    for stream, symbols in images:
        number = len(sections)
        sections.append(write_image(file, stream, symbols, section_name))
        for name, (value, size, kind) in image_symbols(symbols, stream.size).items():
            place = strings.add(name)
            table.append(elf.Symbol(place, STB_GLOBAL, kind, STV_HIDDEN, number, value, size))
    sections += [
        # Without it the linker takes the whole library for one that needs an executable stack.
        elf.Section(names.add(".note.GNU-stack"), SHT_PROGBITS, offset=file.tell(), align=1),
        _write_property(file, names.add(".note.gnu.property"), machine),
    ]
    symtab_at = write_aligned(file, b"".join(symbol.pack() for symbol in table))
    strtab_at = write_aligned(file, bytes(strings.data))
    sections += [
        elf.Section(
            names.add(".symtab"),
            SHT_SYMTAB,
            offset=symtab_at,
            size=len(table) * elf.SYM_SIZE,
            # The table of strings comes right after it.
            link=len(sections) + 1,
            info=1,
            align=8,
            entsize=elf.SYM_SIZE,
        ),
        elf.Section(
            names.add(".strtab"),
            SHT_STRTAB,
            offset=strtab_at,
            size=len(strings.data),
            align=1,
        ),
    ]
    own_name = names.add(".shstrtab")
    names_at = write_aligned(file, bytes(names.data))
    sections.append(
        elf.Section(own_name, SHT_STRTAB, offset=names_at, size=len(names.data), align=1)
    )
    table_at = write_aligned(file, b"".join(section.pack() for section in sections))
    count = len(sections)
    header = elf.Header(_IDENT, ET_REL, machine.e_machine, 0, table_at, count, count - 1)
    file.seek(0)
    file.write(header.pack())


def write_image(file: BinaryIO, stream: ImageStream, symbols: Symbols, name: int) -> elf.Section:
    """Append the image's record, it and its size as an integer; return the section's header."""
    offset = file.tell()
    gap = elf.padding(offset, ALIGN)
    record = image_record(symbols.name, stream.size)
    file.write(bytes(gap) + record)
    stream.copy_to(file)
    size_at = size_offset(stream.size)
    file.write(bytes(size_at - stream.size) + stream.size.to_bytes(8, "little"))
    return elf.Section(
        name,
        SHT_PROGBITS,
        SHF_ALLOC,
        offset=offset + gap,
        size=len(record) + size_at + 8,
        align=ALIGN,
    )


def image_symbols(symbols: Symbols, size: int) -> dict[str, tuple[int, int, int]]:
    """Return the value, size and type of every symbol over a section of `write_image`."""
    start = len(image_record(symbols.name, size))
    result = {symbols.data: (start, size, STT_OBJECT)}
    if symbols.size is not None:
        result[symbols.size] = (start + size_offset(size), 8, STT_OBJECT)
    if symbols.end is not None:
        result[symbols.end] = (start + size, 0, STT_NOTYPE)
    return result


def _write_property(file: BinaryIO, name: int, machine: Machine) -> elf.Section:
    # An NT_GNU_PROPERTY_TYPE_0 note (5), with one property of four bytes, padded to eight.
    body = _PROPERTY.pack(machine.property_type, 4, ALL_PROTECTIONS, 0)
    note = _PROPERTY_HEADER.pack(4, len(body), 5, b"GNU\0") + body
    offset = write_aligned(file, note)
    return elf.Section(name, SHT_NOTE, SHF_ALLOC, offset=offset, size=len(note), align=8)


def write_aligned(file: BinaryIO, data: bytes) -> int:
    """Append `data` at a multiple of 8 and return where that is."""
    file.write(bytes(elf.padding(file.tell(), 8)))
    offset = file.tell()
    file.write(data)
    return offset
