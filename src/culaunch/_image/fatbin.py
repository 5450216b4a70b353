"""Fatbins: containers of cubins, PTX and LTO-IR for several architectures."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from culaunch._image.decompress import lz4_block, zstd_frame
from culaunch._image.reader import Reader
from culaunch._image.sniff import FATBIN_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._image.budget import Budget

PTX, CUBIN, LTOIR = 1, 2, 8
_KINDS = {PTX: "ptx", CUBIN: "cubin", LTOIR: "ltoir"}
_PREFIXES = {PTX: "compute_", LTOIR: "lto_"}

_LZ4, _ZSTD = 0x2000, 0x8000
_ARCH_A, _ARCH_F = 0x100000, 0x200000

_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_STEP = 1 << 16
_MAX_DEPTH = 4


class Entry:
    """One entry of a container. Its payload is opened on demand."""

    def __init__(self, container: Reader, offset: int) -> None:
        self.container = container
        fields = container.unpack(_ENTRY, offset, "a fatbin entry")
        self.kind, _, header, stored, compressed = fields[:5]
        self.sm, _, _, self.flags, _, unpacked = fields[8:14]
        # Newer toolkits may have longer headers; the beginning stays the same.
        if header < _ENTRY.size:
            raise container.error(
                f"is corrupt: the header of a fatbin entry has {header} bytes", offset
            )
        self.stored = container.window(offset + header, stored, "a fatbin entry")
        self.end = offset + header + stored
        self.compressed = compressed > 0
        if self.compressed:
            # Payloads are padded to eight bytes; a compressed one states its own size.
            self.stored = self.stored.window(0, compressed, "a compressed payload")
        self._unpacked = unpacked

    @property
    def format(self) -> str:
        """``"cubin"``, ``"ptx"``, ``"ltoir"``, or ``"kind-<n>"`` for an unknown kind."""
        return _KINDS.get(self.kind, f"kind-{self.kind}")

    @property
    def suffix(self) -> str:
        """The architecture's suffix, as the entry's flags say."""
        return "a" if self.flags & _ARCH_A else "f" if self.flags & _ARCH_F else ""

    @property
    def arch(self) -> str:
        """The architecture, as the entry says."""
        return f"{_PREFIXES.get(self.kind, 'sm_')}{self.sm}{self.suffix}"

    def open(self, budget: Budget) -> Reader:
        """Return the image, decompressed if it must be."""
        if not self.compressed:
            return self.stored
        if not budget.may_open(len(self.stored), self._unpacked):
            raise self.stored.error(
                f"is corrupt or hostile: {len(self.stored)} compressed bytes claim to be "
                f"{self._unpacked} uncompressed"
            )
        if self.flags & _ZSTD:
            data = zstd_frame(self.stored, self._unpacked)
        elif self.flags & _LZ4:
            data = lz4_block(self.stored, self._unpacked)
        else:
            raise self.stored.error(f"uses an unknown compression (flags {self.flags:#x})")
        where = f"{self.stored.source}, entry at {self.stored.base:#x}, uncompressed"
        return Reader(memoryview(data), where)


def entries(reader: Reader, depth: int = 0) -> Iterator[Entry]:
    """Yield the entries of every container; zeros may lie between and after containers."""
    position = _skip_zeros(reader, 0)
    while position < len(reader):
        if reader.view[position : position + 4] != FATBIN_MAGIC:
            head = bytes(reader.view[position : position + 4]).hex(" ")
            raise reader.error(f"is corrupt: a fatbin container cannot begin with {head}", position)
        _, version, header, size = reader.unpack(_CONTAINER, position, "a fatbin container")
        if version != 1 or header < _CONTAINER.size:
            raise reader.error(
                f"is a fatbin with the unknown version {version} (header of {header} bytes)",
                position + 4,
            )
        container = reader.window(position + header, size, "a fatbin container")
        offset = 0
        while offset < len(container):
            entry = Entry(container, offset)
            offset = entry.end
            yield from _unnest(entry, depth)
        # The section of a library has a container for each object that was linked, with padding in
        # between.
        position = _skip_zeros(reader, position + header + size)


def _unnest(entry: Entry, depth: int) -> Iterator[Entry]:
    """Yield an entry, or the entries of the container that it holds."""
    inner = entry.stored
    if inner.view[:4] != FATBIN_MAGIC:
        yield entry
    elif depth == _MAX_DEPTH:
        raise inner.error(f"is corrupt: its fatbins are nested more than {_MAX_DEPTH} deep")
    else:
        yield from entries(inner, depth + 1)


def _skip_zeros(reader: Reader, position: int) -> int:
    while position < len(reader):
        # In pieces, because the zeros may be megabytes, which should not be copied.
        step = bytes(reader.view[position : position + _STEP])
        rest = len(step.lstrip(b"\0"))
        position += len(step) - rest
        if rest:
            break
    return position
