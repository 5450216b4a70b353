"""An image put into an existing object file, under symbols that only that object sees.

``ld -r`` cannot do this: symbols must be global for it to join the two, and stay global. Here
the image becomes a new section of the object, and the object's undefined references become local
symbols in it. ELF wants local symbols before all others, so the table is reordered, and with it
everything that counts symbols: relocations, section groups. All other bytes stay as they are.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from culaunch._base.elf import (
    SHN_UNDEF,
    SHT_GROUP,
    SHT_LLVM_ADDRSIG,
    SHT_REL,
    SHT_RELA,
    STB_LOCAL,
    STV_DEFAULT,
)
from culaunch._base.values import counted
from culaunch._embed import elf
from culaunch._embed.object_file import ObjectFile
from culaunch._embed.object_writer import image_symbols, write_aligned, write_image
from culaunch._errors import ImageError
from culaunch._image.embedded import SECTION

if TYPE_CHECKING:
    from culaunch._embed.image_stream import ImageStream
    from culaunch._embed.machine import Machine
    from culaunch._embed.symbols import Symbols

_PIECE = 1 << 20


def merge_image(
    file: BinaryIO, path: str, stream: ImageStream, symbols: Symbols, machine: Machine | None
) -> None:
    """Write the object at `path` to `file`, with the image in it."""
    with open(path, "rb") as original:
        obj = ObjectFile.read(original, path, machine)
        # All that can be wrong with the object is found before anything is written.
        wanted = _wanted_symbols(obj, symbols)
        places = image_symbols(symbols, stream.size)
        order, table = _reordered(obj, wanted, places)
        # The object stays unchanged, with additions at its end, so no offset changes. Parts that
        # grow (the image, the section names, the section table) are written again at the end. Their
        # old copies remain as unused bytes.
        original.seek(0)
        shutil.copyfileobj(original, file, _PIECE)
        # The names of sections grow by one, and therefore the table of names moves to the end. The
        # names of symbols stay: the object already refers to the image's symbols.
        names = elf.Strings(obj.section_bytes(obj.header.shstrndx))
        image = write_image(file, stream, symbols, names.add(SECTION))
        names_at = write_aligned(file, bytes(names.data))

        # The section table follows everything whose offset it contains.
        sections = [_changed(obj, section, order, len(wanted)) for section in obj.sections]
        index = obj.header.shstrndx
        sections[index] = replace(sections[index], offset=names_at, size=len(names.data))
        sections.append(image)
        table_at = write_aligned(file, b"".join(section.pack() for section in sections))

        # Symbols are only put in another order, so their table, and the relocations that count
        # them, are written over the old ones in place.
        _write_at(file, obj.sections[obj.symtab].offset, table)
        for section in obj.sections:
            if section.type in (SHT_RELA, SHT_REL) and section.link == obj.symtab:
                _write_at(file, section.offset, _renumbered(obj, section, order))
    # The header last: until now it led to the old table of sections.
    header = replace(obj.header, shoff=table_at, shnum=len(sections))
    _write_at(file, 0, header.pack())


def asks_for(path: str, symbols: Symbols) -> bool:
    """Tell whether the object at `path` refers to an image that it does not have."""
    with open(path, "rb") as file:
        obj = ObjectFile.read(file, path, None)
        return any(
            symbol.section == SHN_UNDEF and obj.symbol_name(symbol) == symbols.data
            for symbol in obj.symbols
        )


def _wanted_symbols(obj: ObjectFile, symbols: Symbols) -> dict[int, str]:
    """Return which of the symbols the object refers to, by their number in its table."""
    names = set(symbols)
    wanted: dict[int, str] = {}
    asked: set[str] = set()
    # Before it are local symbols, which no reference to another object can be.
    first_global = obj.sections[obj.symtab].info
    for number, symbol in enumerate(obj.symbols):
        name = obj.symbol_name(symbol)
        if symbol.section == SHN_UNDEF:
            if name in names and number >= first_global:
                wanted[number] = name
            # The other names that it asks for are for the message: usually the two names differ by
            # a typo.
            if name.startswith(symbols.prefix):
                asked.add(name.removeprefix(symbols.prefix))
        # Defined: this is the output of an earlier call, and two images cannot have one name.
        elif name in names:
            raise ImageError(
                f"already has an image named {symbols.name!r}: start from the object that the "
                "compiler wrote",
                source=obj.path,
            )
    if symbols.data not in wanted.values():
        plain = sorted(n for n in asked if n.removesuffix("_end") not in asked - {n})
        hint = f"it refers to {', '.join(map(repr, plain))}" if plain else obj.why_nothing()
        raise ImageError(
            f"does not refer to an image named {symbols.name!r} (symbol {symbols.data}): {hint}",
            source=obj.path,
        )
    return wanted


def _reordered(
    obj: ObjectFile, wanted: dict[int, str], places: dict[str, tuple[int, int, int]]
) -> tuple[list[int], bytes]:
    """Return the new number of every symbol, and the new table."""
    section = len(obj.sections)  # the image's, which comes last
    first_global = obj.sections[obj.symtab].info
    count = len(obj.symbols)
    others = [n for n in range(first_global, count) if n not in wanted]
    # ELF wants all local symbols before the first global one. A symbol that becomes local moves to
    # the end of the local ones, and nothing else changes places.
    old_numbers = [*range(first_global), *wanted, *others]
    # By old number. All relocations and groups are renumbered with it.
    order = [0] * count
    for new, old in enumerate(old_numbers):
        order[old] = new
    raw = obj.section_bytes(obj.symtab)
    entries = [raw[i : i + elf.SYM_SIZE] for i in range(0, len(raw), elf.SYM_SIZE)]
    for number, name in wanted.items():
        value, size, kind = places[name]
        entries[number] = elf.Symbol(
            obj.symbols[number].name, STB_LOCAL, kind, STV_DEFAULT, section, value, size
        ).pack()
    return order, b"".join(entries[old] for old in old_numbers)


def _changed(obj: ObjectFile, section: elf.Section, order: list[int], added: int) -> elf.Section:
    """Return a section's header as the new symbol table asks for."""
    if section == obj.sections[obj.symtab]:
        # For a symbol table, info is the number of its first global symbol.
        return replace(section, info=section.info + added)
    if section.type == SHT_GROUP and section.link == obj.symtab:
        # For a group, which the linker keeps once, it is the number of the symbol that names it.
        return replace(section, info=order[section.info])
    if section.type == SHT_LLVM_ADDRSIG:
        # Symbol numbers again, for lld's folding of identical code; it skips one with no link.
        return replace(section, link=0)
    return section


def _renumbered(obj: ObjectFile, section: elf.Section, order: list[int]) -> bytes:
    """Return a relocation section with the new symbol numbers (upper half of ``r_info``)."""
    data = bytearray(obj.bytes_of(section))
    step = 24 if section.type == SHT_RELA else 16
    number = struct.Struct("<I")
    # An entry is the offset (8 bytes), then r_info, whose upper half is the symbol; RELA has 8
    # bytes of addend behind it.
    for at in range(12, len(data) - 3, step):
        (old,) = number.unpack_from(data, at)
        if old >= len(order):
            raise ImageError(
                f"has a relocation to symbol {old}, but only {counted(len(order), 'symbol')}",
                source=obj.path,
                offset=section.offset + at,
            )
        number.pack_into(data, at, order[old])
    return bytes(data)


def _write_at(file: BinaryIO, offset: int, data: bytes) -> None:
    file.seek(offset)
    file.write(data)
