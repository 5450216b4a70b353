"""Cubins: ELF files of machine 190, ABI 7 (toolkits up to 12.9) and 8."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from culaunch._base.elf import (
    ET_REL,
    SHN_XINDEX,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
    SYMBOL,
)
from culaunch._image import attributes as attr
from culaunch._image.elf import Elf, Section
from culaunch._image.info import KernelInfo, ParameterInfo
from culaunch._image.kernel_params import ParamRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._image.budget import Budget
    from culaunch._image.reader import Reader

ABI_7, ABI_8 = 7, 8
_CUDA_INFO = 0x70000000
_CUDA_COMPAT = 0x70000086
_FUNCTION, _ENTRY = 2, 0x10
_ARCH_A_ABI_7, _ARCH_A_ABI_8 = 0x800, 0x8
# From sm_90 an executable's shared memory starts with a part that the system keeps.
_RESERVED_SHARED = 1024
_UNKNOWN_STACK = 0xFFFFFFFF

_INDEX = struct.Struct("<I")
_NOTE = struct.Struct("<III")
_TKINFO = 2000
_RELEASE = re.compile(rb"release (\d{1,3}\.\d{1,3}),")
# The compiler's command line in the toolkit note: the only place that tells `sm_100f`.
_ARGUMENT_ARCH = re.compile(rb"-arch[ =]sm_\d+([a-z]?)\b")


class Cubin:
    """One cubin. Making one reads the header; each property parses what it needs.

    Parameters
    ----------
    reader : Reader
        The cubin's bytes.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.elf = elf = Elf(reader)
        if elf.abi_version not in (ABI_7, ABI_8):
            raise reader.error(
                f"is a cubin with the unknown ABI {elf.abi_version} (7 and 8 are known)", 8
            )
        self.relocatable = elf.type == ET_REL
        # The architecture moved to the second byte with ABI 8, and the flag of `a` with it.
        self.sm = elf.flags & 0xFF if elf.abi_version == ABI_7 else elf.flags >> 8 & 0xFF
        if not self.sm:
            raise reader.error("is corrupt: the cubin has no architecture", 48)

    def arch(self) -> str:
        """Return the architecture with its suffix: ``"sm_90a"``."""
        return f"sm_{self.sm}{self._suffix()}"

    def toolkit(self) -> str | None:
        """Return the toolkit that made it: ABI 7 says it in the header, ABI 8 in a note."""
        if self.elf.abi_version == ABI_7:
            return _version(self.elf.version)
        for section in self.elf.sections():
            if section.type == SHT_NOTE:
                for kind, note in self._notes(section):
                    found = _RELEASE.search(note.view) if kind == _TKINFO else None
                    if found:
                        return found[1].decode()
        return None

    def kernels(self, budget: Budget) -> tuple[KernelInfo, ...]:
        """Parse every kernel, in the order of the symbol table."""
        builders = self._entries(budget)
        if not builders:
            return ()
        by_section = {builder.section: builder for builder in builders.values()}
        # Sections may overlap in a file that was made to: without a bound a small one could be read
        # as often as it has headers.
        left = len(self.reader)
        for section in self.elf.sections():
            if section.type == _CUDA_INFO:
                contents = self.elf.contents(section)
                left -= len(contents)
                if left < 0:
                    raise contents.error("is corrupt: its attribute sections overlap")
                if section.info in by_section:
                    by_section[section.info].read(contents)
                # The section without a number is about all kernels.
                elif not section.info:
                    _read_totals(contents, builders)
            elif (
                section.type == SHT_NOBITS
                and section.info in by_section
                and self.elf.is_named(section, b".nv.shared.")
            ):
                by_section[section.info].shared = section.size
        reserved = 0 if self.relocatable or self.sm < 90 else _RESERVED_SHARED
        fallback = self.toolkit()
        return tuple(builder.finish(budget, reserved, fallback) for builder in builders.values())

    def _suffix(self) -> str:
        flag = _ARCH_A_ABI_7 if self.elf.abi_version == ABI_7 else _ARCH_A_ABI_8
        if self.elf.flags & flag:
            return "a"
        if self.elf.abi_version == ABI_7:
            return ""
        suffix = ""
        for section in self.elf.sections():
            if section.type == _CUDA_COMPAT:
                record = attr.Record(self.elf.contents(section))
                if any(code == attr.ACCELERATOR_TARGET and record.value == 1 for code in record):
                    return "a"
            elif section.type == SHT_NOTE:
                for kind, note in self._notes(section):
                    found = _ARGUMENT_ARCH.search(note.view) if kind == _TKINFO else None
                    # Continue, because a later record of the accelerator's target is more reliable.
                    suffix = found[1].decode() if found else suffix
        return suffix

    def _notes(self, section: Section) -> Iterator[tuple[int, Reader]]:
        contents = self.elf.contents(section)
        position = 0
        while position < len(contents):
            name, size, kind = contents.unpack(_NOTE, position, "a note")
            start = position + _NOTE.size + (name + 3 & ~3)
            yield kind, contents.window(start, size, "a note")
            position = start + (size + 3 & ~3)

    def _entries(self, budget: Budget) -> dict[int, _Builder]:
        """Find the kernels: symbol index to builder."""
        found: dict[int, _Builder] = {}
        seen: set[str] = set()
        extended = self.reader.window(0, 0, "nothing")
        tables = []
        for section in self.elf.sections():
            if section.type == SHT_SYMTAB:
                tables.append(section)
            elif section.type == SHT_SYMTAB_SHNDX:
                extended = self.elf.contents(section)
        if len(tables) > 1:
            raise self.reader.error("is corrupt: it has two symbol tables", tables[1].offset)
        for table in tables:
            contents = self.elf.contents(table)
            if len(contents) % SYMBOL.size:
                raise contents.error(f"is corrupt: its symbol table has {len(contents)} bytes")
            names = self.elf.contents(self.elf.section(table.link))
            for index, (name, info, other, where, _, _) in enumerate(
                SYMBOL.iter_unpack(contents.view)
            ):
                # The visibility byte of a kernel has CUDA's bit for entries, and a device function
                # lacks it. A function without a section is defined elsewhere.
                if info & 0xF != _FUNCTION or not other & _ENTRY or not where:
                    continue
                text = where
                if where == SHN_XINDEX:
                    text = extended.unpack(_INDEX, index * 4, "a section index")[0]
                spelled = names.name(name, f"the name of symbol {index}")
                if spelled in seen:
                    raise names.error(f"is corrupt: kernel {spelled!r} appears twice", name)
                seen.add(spelled)
                budget.add_kernel(spelled, names)
                found[index] = _Builder(spelled, self.elf.section(text), self.relocatable)
        return found


class _Builder:
    """Collects the facts about one kernel from several sections."""

    def __init__(self, name: str, text: Section, relocatable: bool) -> None:
        self.name = name
        self.section = text.number
        # Before sm_90, the section header also contains the registers.
        self.registers: int | None = text.info >> 24 or None
        self.barriers: int | None = text.flags >> 20 & 0x7F
        # The linker lays out the shared memory of relocatable code, so it is unknown before
        # linking.
        self.shared = None if relocatable else 0
        self.stack: int | None = None
        self.max_cluster_rank: int | None = None
        self.toolkit: str | None = None
        self.dims: dict[int, tuple[int, int, int]] = {}
        self.attributes: Reader | None = None
        self.params = ParamRecords()

    def read(self, contents: Reader) -> None:
        """Take the kernel's own attributes."""
        if self.attributes is not None:
            raise contents.error(f"is corrupt: kernel {self.name!r} has two attribute sections")
        self.attributes = contents
        record = attr.Record(contents)
        for code in record:
            if code in (attr.KPARAM_INFO, attr.KPARAM_INFO_V2):
                self.params.add(record, contents)
            elif code == attr.CBANK_PARAM_SIZE:
                self.params.total = record.value
            elif code in (attr.MAX_THREADS, attr.REQNTID, attr.CTA_PER_CLUSTER):
                self.dims[code] = record.dims()
            elif code == attr.MAX_CLUSTER_RANK:
                self.max_cluster_rank = record.word()
            elif code == attr.CUDA_API_VERSION:
                self.toolkit = _version(record.word())
            elif code == attr.NUM_BARRIERS:
                self.barriers = record.value

    def finish(self, budget: Budget, reserved: int, toolkit: str | None) -> KernelInfo:
        """Return the known facts."""
        demangled, types = budget.spell(self.name)
        params: tuple[ParameterInfo, ...] = ()
        if self.attributes is not None:
            params = self.params.finish(types, budget, self.attributes)
        return KernelInfo(
            name=self.name,
            demangled=demangled,
            parameters=params,
            registers=self.registers,
            static_shared=None if self.shared is None else max(0, self.shared - reserved),
            stack=self.stack,
            barriers=self.barriers,
            max_threads=self.dims.get(attr.MAX_THREADS),
            required_threads=self.dims.get(attr.REQNTID),
            cluster=self.dims.get(attr.CTA_PER_CLUSTER),
            max_cluster_rank=self.max_cluster_rank,
            toolkit=self.toolkit or toolkit,
        )


def _read_totals(contents: Reader, builders: dict[int, _Builder]) -> None:
    """Take registers and stack frames, which one section lists for all kernels."""
    record = attr.Record(contents)
    for code in record:
        if code in (attr.REGCOUNT, attr.FRAME_SIZE):
            symbol, value = record.pair()
            builder = builders.get(symbol)
            if builder is None:
                continue
            if code == attr.REGCOUNT:
                builder.registers = value
            elif value != _UNKNOWN_STACK:
                builder.stack = value


def _version(number: int) -> str:
    return f"{number // 10}.{number % 10}"
